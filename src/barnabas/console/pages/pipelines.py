"""Spark queries that commit to groups: their batches, their lag, and how it moves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.groups import list_groups_of
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.groups import ASK_MS, lag_rows, noted
from barnabas.console.pages.topic import failing
from barnabas.console.segments import segment
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.query_progress import QueryProgress, read_progress

GROUPS_MAX = 200
"""Groups without members whose offsets are looked at."""
LIVE_S = 10.0

COLUMNS = (
    Column("name", "Group", sorts=True, link="href"),
    Column("kind", "Spark", sorts=True),
    Column("query", "Query"),
    Column("batches", "Batches", "number", sorts=True),
    Column("last_ms", "Last batch", "time", sorts=True),
    Column("began_ms", "Reads since", "time"),
    Column("lag", "Lag in offsets", "number", sorts=True),
    Column("lag_ms", "Lag in time", "ms", sorts=True),
    Column("rate", "Offsets per second", "number"),
    Column("trend", "Lag"),
    Column("topics", "Topics", link="topic_href"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def pipelines(request: Request) -> Response:
        client = context.session(request).client
        q = request.query_params.get("q", "")
        names: list[str] = []
        missing = []
        for broker_id, found in (await list_groups_of(client, timeout_ms=ASK_MS)).items():
            if isinstance(found, RequestError):
                missing.append(f"Broker {broker_id} did not say its groups: {found}")
                continue
            # A query has no members: nobody else decides what it reads.
            names += [
                each.name
                for each in found
                if each.state == "Empty" and q.lower() in each.name.lower()
            ]
        names.sort()
        if len(names) > GROUPS_MAX:
            missing.append(
                f"Only the first {GROUPS_MAX} of {len(names):,} groups without members were looked "
                "at: filter by name."
            )
        looked = await asyncio.gather(
            *(look(context, request, name) for name in names[:GROUPS_MAX])
        )
        rows = [row for row in looked if row is not None]
        listing = Listing(
            "Pipelines",
            "/pipelines",
            COLUMNS,
            rows,
            intro="Spark queries that commit their progress to a group: sources with offsetGroup, "
            "and sinks with exactlyOnce.",
            caption=f"{len(rows):,} queries, the one with the latest batch first",
            empty="No query has committed its progress, or none that you may see.",
            command="barnabas groups list",
            q=q,
            searches=True,
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request, default="-last_ms")
        return respond(context, request, listing)

    return [Route(path, lively(context, pipelines, LIVE_S)) for path in both("/pipelines")]


async def look(context: Context, request: Request, name: str) -> Row | None:
    """Return a group as a pipeline; None if no Spark query has committed to it."""
    client = context.session(request).client
    rows = await failing(lag_rows(context, client, name))
    if isinstance(rows, BarnabasError):
        return None
    said = [(each, row) for row in rows if (each := read_progress(row["metadata"])) is not None]
    if not said:
        return None
    progress = max((each for each, _ in said), key=lambda each: each.at_ms)
    return _row(name, progress, rows) | (
        {} if progress.is_sink else _moving(noted(context, request, name, rows))
    )


def _row(name: str, progress: QueryProgress, rows: Sequence[Row]) -> Row:
    topics = sorted({row["topic"] for row in rows})
    return {
        "name": name,
        "href": f"/groups/{segment(name)}",
        "kind": f"sink, task {progress.task}" if progress.is_sink else "source",
        "query": progress.query,
        "batches": progress.batch,
        "last_ms": progress.at_ms,
        "began_ms": progress.began_ms,
        "lag": None,
        "lag_ms": None,
        "rate": None,
        "trend": "",
        "topics": ", ".join(topics),
        "topic_href": f"/topics/{segment(topics[0])}",
    }


def _moving(movement: dict[str, Any]) -> Row:
    return {
        "lag": movement["lag"],
        "lag_ms": movement["lag_ms"],
        "rate": movement["read"],
        "trend": movement["trend"],
    }
