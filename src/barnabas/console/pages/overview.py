"""The overview: health in sentences, charts of the last hour, brokers, the diary's last entries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.door import Visitor
from barnabas.console.health import TopicTotals, findings
from barnabas.console.session import Session

NAMES_MAX = 100
LIVE_S = 5.0
STREAMS_MAX = 10
TABLE_ROWS = 12
DIARY_ROWS = 10
SERIES = ("bytes_in", "bytes_out", "messages_in", "requests", "produce_ms", "fetch_ms", "busy")


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def page(request: Request) -> Response:
        return context.templates.page(request, "overview.html", await seen(context, request))

    async def live(request: Request) -> Response:
        session = context.session(request)
        if session.streams >= STREAMS_MAX:
            return Response("Too many live pages are open.", 429, media_type="text/plain")
        return StreamingResponse(events(context, request, session), media_type="text/event-stream")

    async def history(request: Request) -> Response:
        samples = context.window.history()
        answer: dict[str, list[float | None]] = {"time": [each.time_s for each in samples]}
        for name in SERIES:
            values = (getattr(each, name) for each in samples)
            answer[name] = [None if value != value else round(value, 3) for value in values]
        return JSONResponse(answer)

    async def health(request: Request) -> Response:
        values = await seen(context, request)
        return JSONResponse(
            {
                "findings": [
                    {"level": each.level, "text": each.text, "advice": each.advice}
                    for each in values["findings"]
                ]
            }
        )

    return [
        Route("/", page),
        Route("/live", live),
        Route("/history.json", history),
        Route("/health.json", health),
    ]


async def events(context: Context, request: Request, session: Session) -> AsyncIterator[str]:
    """Yield the live part of the page again and again, until the browser is gone."""
    session.streams += 1
    try:
        while True:
            values = await seen(context, request)
            text = context.templates.render(request, "overview_live.html", values)
            yield "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"
            await asyncio.sleep(LIVE_S)
    finally:
        session.streams -= 1


async def seen(context: Context, request: Request) -> dict[str, Any]:
    """Return what the page shows to the visitor of a request."""
    window = context.window
    totals = await topic_totals(context, context.session(request).visitor)
    history = window.history()
    entries = await visible_entries(context, request, window.diary(limit=DIARY_ROWS * 3))
    return {
        "findings": findings(totals, window.health(), window.directories(), history),
        "totals": totals,
        "brokers": window.brokers(),
        "controller_id": window.health().controller_id,
        "now": history[-1] if history else None,
        "recent": list(reversed(history[-TABLE_ROWS:])),
        "diary": None if entries is None else entries[:DIARY_ROWS],
    }


async def visible_entries(context: Context, request: Request, entries: Any) -> Any:
    """Leave out the diary's entries for a user who may not describe the cluster."""
    if not entries or not context.door.secured:
        return entries
    from barnabas.admin.acls import ACLOperation
    from barnabas.admin.cluster import describe_cluster

    described = await describe_cluster(context.session(request).client, authorized_operations=True)
    allowed = described.authorized_operations or frozenset()
    return entries if ACLOperation.DESCRIBE in allowed else []


async def topic_totals(context: Context, visitor: Visitor) -> TopicTotals:
    """Add up the topics that a visitor may describe."""
    topics = partitions = offline = under = 0
    offline_in: list[str] = []
    under_in: list[str] = []
    async for topic in context.door.topics(visitor):
        topics += 1
        partitions += topic.partitions
        if topic.offline:
            offline += topic.offline
            offline_in.append(topic.name)
        if topic.under_replicated:
            under += topic.under_replicated
            under_in.append(topic.name)
    return TopicTotals(
        topics, partitions, offline, offline_in[:NAMES_MAX], under, under_in[:NAMES_MAX]
    )
