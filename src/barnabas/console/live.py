"""Live pages: the part of a page that changes, sent again whenever it has changed.

    Route("/groups", lively(context, groups))

`/groups?live=yes` is a stream of events; each is what `/groups` has in its live part by then. A
browser closes the stream while its tab is hidden, and opens it again afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from barnabas.console.context import Context
from barnabas.console.rendering import Page as Rendered
from barnabas.model.errors import BarnabasError

Page = Callable[[Request], Awaitable[Response]]

LIVE_S = 5.0
STREAMS_MAX = 10
"""Live streams of one session."""
STREAM_S = 600.0
"""A stream ends after this time; the browser connects again, with its session."""
KEEP_ALIVE_S = 15.0


def lively(context: Context, page: Page, every_s: float = LIVE_S) -> Page:
    """Return a page that streams its live part, too; it looks every few seconds."""

    async def answer(request: Request) -> Response:
        if request.query_params.get("live") != "yes":
            return await page(request)
        request.scope["is_live"] = True
        if context.session(request).streams >= STREAMS_MAX:
            text = f"You have {STREAMS_MAX} live pages already: close one of them."
            raise HTTPException(429, text)
        first = await finished(page, request)  # its errors get a status of their own
        if first.status_code != 200:
            return first
        return StreamingResponse(
            _events(context, request, page, first, every_s),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    return answer


async def finished(page: Page, request: Request) -> Response:
    """Return the response of a page with its whole body."""
    response = await page(request)
    if isinstance(response, Rendered):
        await response.finish()
    return response


async def _events(
    context: Context, request: Request, page: Page, first: Response, every_s: float
) -> AsyncIterator[str]:
    session = context.session(request)
    loop = asyncio.get_running_loop()
    end_s = loop.time() + STREAM_S
    said_s = loop.time()
    text = bytes(first.body).decode()
    session.streams += 1
    try:
        yield event(text)
        while loop.time() < end_s:
            await asyncio.sleep(every_s)
            if session.ended:
                return
            now = bytes((await finished(page, request)).body).decode()
            if now != text:
                text, said_s = now, loop.time()
                yield event(text)
            elif loop.time() - said_s >= KEEP_ALIVE_S:
                said_s = loop.time()
                yield ": nothing new\n\n"
    except (BarnabasError, HTTPException) as failure:
        why = failure.detail if isinstance(failure, HTTPException) else str(failure)
        yield event(context.templates.render(request, "live_end.html", {"error": why}))
    finally:
        session.streams -= 1


def event(text: str, event_id: str = "") -> str:
    """Return one event of a stream."""
    head = f"id: {event_id}\n" if event_id else ""
    return head + "".join(f"data: {line}\n" for line in text.split("\n")) + "\n"
