"""Requests of this broker's clients: what waits now, the slowest, the last ones, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, respond
from barnabas.console.live import lively
from barnabas.console.pages.overview import sees_broker
from barnabas.console.window import RequestsSeen

ROWS_SHOWN = 50

WHO = (
    Column("client_id", "Client id"),
    Column("principal", "Principal"),
    Column("host", "Host"),
)
PHASES = (
    Column("total_ms", "In all", "exact"),
    Column("queue_ms", "Queue", "exact"),
    Column("local_ms", "Local", "exact"),
    Column("remote_ms", "Remote", "exact"),
    Column("throttle_ms", "Throttle", "exact"),
    Column("send_ms", "Send", "exact"),
)
ANSWERED = (
    Column("time_ms", "Answered", "time"),
    Column("api", "API"),
    Column("version", "Version", "number"),
    *PHASES,
    Column("size_bytes", "Size", "size"),
    Column("error", "Error"),
    *WHO,
)
WAITING = (
    Column("api", "API"),
    Column("waiting_ms", "Waits", "ms"),
    Column("awaits", "For"),
    *WHO,
)
ERRORS = (
    Column("api", "API"),
    Column("error", "Error"),
    Column("count", "Times", "number"),
    Column("last_ms", "Last", "time"),
    Column("client_id", "Client id"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def requests(request: Request) -> Response:
        allowed = sees_broker(context, request)
        seen = context.window.requests() if allowed else RequestsSeen((), (), (), (), 0)
        values: dict[str, Any] = {
            "listings": [_shortened(each) for each in lists_of(seen)],
            "allowed": allowed,
        }
        return context.templates.page(request, "requests.html", values, live="requests_live.html")

    async def one(request: Request) -> Response:
        if not sees_broker(context, request):
            raise HTTPException(
                403, "You may not see requests: this needs DESCRIBE on the cluster."
            )
        wanted = request.url.path.rpartition(".")[0]
        for listing in lists_of(context.window.requests()):
            if listing.base == wanted:
                return respond(context, request, listing)
        raise HTTPException(404, "There is no such list of requests.")

    return [
        Route("/requests", lively(context, requests, 2.0)),
        Route("/requests/{name}.json", one),
        Route("/requests/{name}.csv", one),
    ]


def lists_of(seen: RequestsSeen) -> list[Listing]:
    """Return the four lists of the page."""
    return [
        Listing(
            "Waiting now",
            "/requests/waiting",
            WAITING,
            _rows(seen.waiting),
            caption=f"{seen.waiting_count:,} requests wait at this moment, the longest first",
            empty="No request waits.",
        ),
        Listing(
            "Slowest",
            "/requests/slowest",
            ANSWERED,
            _rows(seen.slowest),
            caption="Those of the last minutes that took longest; of a Fetch, without its wait "
            "for records",
            empty="There were no requests.",
        ),
        Listing(
            "Errors",
            "/requests/errors",
            ERRORS,
            _rows(seen.errors),
            caption="Errors that clients were answered since the console began, by API and client",
            empty="No client was answered an error.",
        ),
        Listing(
            "Latest",
            "/requests/latest",
            ANSWERED,
            _rows(seen.recent),
            caption="One a second of each connection, and all errors; without those of consoles",
            empty="There were no requests.",
        ),
    ]


def _rows(seen: Sequence[Any]) -> list[Row]:
    rows = []
    for each in seen:
        row: Row = asdict(each)
        if "queue_ms" in row:
            row["total_ms"] = each.total_ms
        if row.get("error"):
            row["level"] = "warn"
        rows.append(row)
    return rows


def _shortened(listing: Listing) -> Listing:
    listing.rows = listing.rows[:ROWS_SHOWN]
    return listing
