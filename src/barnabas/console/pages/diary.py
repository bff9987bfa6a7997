"""The diary: what was decided, and why."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.pages.overview import visible_entries

ENTRIES_MAX = 1000

COLUMNS = (
    Column("time_ms", "Time", "time"),
    Column("subject", "Of"),
    Column("event", "Event"),
    Column("cause", "Cause"),
    Column("text", "What happened"),
    Column("count", "Times", "number"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def diary(request: Request) -> Response:
        subject = request.query_params.get("q", "")
        entries = context.window.diary(subject, ENTRIES_MAX)
        entries = visible_entries(context, request, entries)
        rows: list[Row] = [
            {
                "name": f"{10**15 - each.time_ms:016} {at:05}",
                "time_ms": each.time_ms,
                "subject": each.subject,
                "event": each.event,
                "cause": each.cause,
                "text": each.text,
                "count": each.count,
            }
            for at, each in enumerate(entries or ())
        ]
        listing = Listing(
            "Diary",
            "/diary",
            COLUMNS,
            rows,
            intro="Why groups rebalanced, replicas fell behind, leaders changed and clients were "
            "rejected.",
            caption="The newest first",
            empty="This broker keeps no diary."
            if entries is None
            else "Nothing was noted, or nothing that you may see.",
            command="barnabas diary",
            q=subject,
            searches=True,
        )
        page_of(rows, listing, request)
        return respond(context, request, listing)

    return [Route(path, diary) for path in both("/diary")]
