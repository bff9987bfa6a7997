"""New records of a topic as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from barnabas.console.live import KEEP_ALIVE_S, STREAM_S, STREAMS_MAX, event
from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.browsing import Rests
from barnabas.console.records.filter_evaluation import compile_filter, prune
from barnabas.console.records.filter_language import FilterError
from barnabas.console.records.pages.reading import Reading, query_from, query_of
from barnabas.console.records.query import Query, QueryError
from barnabas.console.records.rows import Row
from barnabas.console.records.tailing import Tail
from barnabas.console.records.views import row_view
from barnabas.console.segments import segment
from barnabas.console.session import Session
from barnabas.console.zone import zone_of
from barnabas.model.errors import BarnabasError

TAIL_ROWS: Final = 100


class LiveRecords:
    """The live tail of a topic."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    async def live(self, request: Request) -> Response:
        """Show new records as they come."""
        topic = request.path_params["topic"]
        try:
            query = query_from(request)
        except (QueryError, FilterError) as failure:
            return self._reading.rejected(request, topic, failure)
        # An answer that is no stream would be shown within the page.
        await TopicAccess(
            self._reading.context.door, self._reading.context.session(request).visitor, topic
        ).topic()
        values = self._reading.frame(request, topic, query)
        values["events"] = f"{values['base']}/events{replace(query, after='').url()}"
        return self._reading.context.templates.page(request, "records/live.html", values)

    async def events(self, request: Request) -> Response:
        """Stream new records; `Last-Event-ID` goes on where a stream broke."""
        request.scope["is_live"] = True
        topic = request.path_params["topic"]
        session = self._reading.context.session(request)
        query = query_of(request)
        if session.streams >= STREAMS_MAX:
            raise HTTPException(
                429, f"You have {STREAMS_MAX} live streams already: close one of them."
            )
        access = TopicAccess(self._reading.context.door, session.visitor, topic)
        await access.topic()
        now_ms = self._reading.now_ms()
        tree = query.tree()
        key, value = self._reading.decoders(session, topic, query)
        tail = Tail(
            access,
            query.partition,
            key,
            value,
            compile_filter(tree, now_ms),
            prune(tree, now_ms),
            self._reading.work.executor,
            asyncio.get_running_loop().time,
            Rests(),
        )
        last_id = request.headers.get("last-event-id", "")
        return StreamingResponse(
            self._stream(request, session, topic, query, tail, last_id),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    async def _stream(
        self,
        request: Request,
        session: Session,
        topic: str,
        query: Query,
        tail: Tail,
        last_id: str,
    ) -> AsyncIterator[str]:
        key, value = self._reading.decoders(session, topic, query)
        zone = zone_of(query.zone)
        shown: list[Row] = []
        left_out = skipped = 0
        loop = asyncio.get_running_loop()
        said_s = 0.0
        end_s = loop.time() + STREAM_S
        session.streams += 1
        try:
            async for news in tail.news(last_id):
                if news.rows or news.left_out or news.skipped or not said_s:
                    shown = (news.rows[::-1] + shown)[:TAIL_ROWS]
                    left_out += news.left_out
                    skipped += news.skipped
                    text = self._reading.context.templates.render(
                        request,
                        "records/live_rows.html",
                        {
                            "topic": topic,
                            "base": f"/topics/{segment(topic)}/records",
                            "rows": [row_view(row, key, value, zone) for row in shown],
                            "left_out": left_out,
                            "skipped": skipped,
                            "rows_max": TAIL_ROWS,
                        },
                    )
                    said_s = loop.time()
                    yield event(text, news.position)
                elif loop.time() - said_s > KEEP_ALIVE_S:
                    said_s = loop.time()
                    yield ": nothing new\n\n"
                if session.ended or loop.time() >= end_s:
                    return
        except BarnabasError as failure:
            text = self._reading.context.templates.render(
                request, "live_end.html", {"error": str(failure)}
            )
            yield event(text)
        finally:
            session.streams -= 1
