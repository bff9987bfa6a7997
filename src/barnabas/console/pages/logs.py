"""The log lines of this broker, filtered here, as they come; and the levels of its loggers."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, respond
from barnabas.console.live import lively
from barnabas.console.pages.overview import sees_broker
from barnabas.logging.loggers import LOGGERS, ROOT

LIVE_S = 1.0
LINES_SHOWN = 200
LEVELS = {
    "TRACE": 0,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
}
MARKS = {"WARN": "warn", "ERROR": "bad", "FATAL": "bad"}
NAMES = (ROOT, *(each.name for each in LOGGERS))

COLUMNS = (
    Column("time_ms", "Time", "time"),
    Column("severity", "Level"),
    Column("logger", "Logger"),
    Column("text", "Line", "lines"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def logs(request: Request) -> Response:
        given = request.query_params
        level = given.get("level", "TRACE")
        logger, q = given.get("logger", "").strip(), given.get("q", "")
        allowed = sees_broker(context, request)
        found = (
            context.window.log_lines(
                level=LEVELS.get(level, 0), logger=logger, text=q, limit=LINES_SHOWN
            )
            if allowed
            else ()
        )
        rows: list[Row] = [
            {
                "name": str(each.number),
                "time_ms": each.time_ms,
                "severity": each.level_name,
                "logger": each.logger,
                "text": each.text,
                "level": MARKS.get(each.level_name, ""),
            }
            for each in found
        ]
        listing = Listing(
            f"Log of broker {context.door.broker_id}",
            "/logs",
            COLUMNS,
            rows,
            intro="What this broker's process has logged lately, kept in memory while the console "
            "is on.",
            caption=f"The newest {LINES_SHOWN} lines that pass, the newest first",
            empty="No line passes."
            if allowed
            else "You may not see the log: this needs DESCRIBE on the cluster.",
            command=f"barnabas configs describe --broker-loggers {context.door.broker_id}",
            q=q,
            filters={"level": given.get("level", ""), "logger": logger},
            live=True,
        )
        values = {
            "level": level if level in LEVELS else "TRACE",
            "levels": list(LEVELS),
            "logger": logger,
            "loggers": NAMES,
            "broker": context.door.broker_id,
        }
        return respond(context, request, listing, "logs.html", values)

    return [Route(path, lively(context, logs, LIVE_S)) for path in both("/logs")]
