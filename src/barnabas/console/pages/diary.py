"""The diary: what the brokers of the cluster decided, and why."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.overview import sees_broker
from barnabas.console.subject_links import link_of
from barnabas.console.window import Diary
from barnabas.diary.catalogue import EVENTS
from barnabas.diary.entry import Entry

ENTRIES_MAX = 500
KINDS = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENTS))
NOT_SEEN = "You may not see the diary: this needs DESCRIBE on the cluster."

COLUMNS = (
    Column("time_ms", "Time", "time"),
    Column("subject", "Of", link="href"),
    Column("event", "Event"),
    Column("cause", "Cause"),
    Column("text", "What happened"),
    Column("count", "Times", "number"),
    Column("broker", "Broker", "number"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def diary(request: Request) -> Response:
        q, kind = request.query_params.get("q", ""), request.query_params.get("kind", "")
        text = q.lower()

        def is_wanted(entry: Entry) -> bool:
            return (not kind or entry.event.partition(".")[0] == kind) and (
                not text or text in f"{entry.subject} {entry.event} {entry.cause}".lower()
            )

        allowed = sees_broker(context, request)
        found = await context.window.diary(ENTRIES_MAX, is_wanted) if allowed else Diary(())
        rows: list[Row] = [
            {
                "name": f"{10**15 - each.time_ms:016} {at:05}",
                "time_ms": each.time_ms,
                "subject": each.subject,
                "href": link_of(each.subject),
                "event": each.event,
                "cause": each.cause,
                "text": each.text,
                "count": each.count,
                "broker": each.broker,
            }
            for at, each in enumerate(found.entries)
        ]
        listing = Listing(
            "Diary",
            "/diary",
            COLUMNS,
            rows,
            intro="What the brokers decided, and why: leaders, in-sync replicas, rebalances, "
            "rejected and throttled clients, changes.",
            caption=f"At most {ENTRIES_MAX:,} entries, the newest first",
            empty="There is no such entry." if allowed else NOT_SEEN,
            command="barnabas diary" + (f" --event {kind}" if kind in KINDS else ""),
            q=q,
            missing=[missing_text(found)] if found.missing else [],
            live=True,
            filters={"kind": kind},
        )
        page_of(rows, listing, request)
        values = {"kinds": KINDS, "kind": kind}
        return respond(context, request, listing, "diary.html", values)

    return [Route(path, lively(context, diary)) for path in both("/diary")]


def missing_text(found: Diary) -> str:
    """Return what a page says if entries of other brokers may be missing."""
    return f"Entries of other brokers may be missing: {found.missing}"
