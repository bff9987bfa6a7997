"""The overview: health in sentences, charts of the last hour, brokers, the diary's last entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from barnabas.console.context import Context
from barnabas.console.door import Visitor
from barnabas.console.health import TopicTotals, findings
from barnabas.console.live import lively

NAMES_MAX = 100
TABLE_ROWS = 12
DIARY_ROWS = 10
SERIES = ("bytes_in", "bytes_out", "messages_in", "requests", "produce_ms", "fetch_ms", "busy")


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def page(request: Request) -> Response:
        values = await seen(context, request)
        return context.templates.page(request, "overview.html", values, live="overview_live.html")

    async def history(request: Request) -> Response:
        samples = context.window.history() if sees_broker(context, request) else ()
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
        Route("/", lively(context, page)),
        Route("/history.json", history),
        Route("/health.json", health),
    ]


async def seen(context: Context, request: Request) -> dict[str, Any]:
    """Return what the page shows to the visitor of a request."""
    window = context.window
    totals = await topic_totals(context, context.session(request).visitor)
    whole = sees_broker(context, request)
    history = window.history() if whole else ()
    diary = (await window.diary(DIARY_ROWS)).entries if whole else ()
    health = window.health()
    if not whole:
        health = replace(health, under_min_isr_count=0)
    return {
        "findings": findings(
            totals,
            health,
            window.directories() if whole else (),
            history,
            await window.behind() if whole else (),
        ),
        "totals": totals,
        "brokers": window.brokers(),
        "controller_id": health.controller_id,
        "now": history[-1] if history else None,
        "recent": list(reversed(history[-TABLE_ROWS:])),
        "diary": diary,
    }


def sees_broker(context: Context, request: Request) -> bool:
    """Return whether a user may see what concerns more than single topics and groups."""
    return context.door.describes_cluster(context.session(request).visitor)


async def topic_totals(context: Context, visitor: Visitor) -> TopicTotals:
    """Add up the topics that a visitor may describe."""
    if not context.door.secured:  # all of them: they were added up a moment ago
        health = context.window.health()
        return TopicTotals(
            health.topics,
            health.partitions,
            health.offline_count,
            list(dict.fromkeys(name for name, _ in health.offline_partitions)),
            health.under_replicated_count,
            list(dict.fromkeys(name for name, _ in health.under_replicated)),
        )
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
