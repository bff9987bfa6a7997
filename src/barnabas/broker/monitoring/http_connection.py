"""One connection of an HTTP client: requests in, answers out, one after the other.

A client may send its next request before the last answer (pipelining): it is not read until then.
An answer of unknown length is chunked, or ends with the connection for a client of HTTP/1.0.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from barnabas.broker.monitoring.http_request import (
    METHODS,
    BadRequest,
    HttpRequest,
    head_end,
    parse_head,
)

logger = logging.getLogger("barnabas.metrics")

HEAD_S_MAX = 10.0
"""How long a client may take to send the head of a request that it has begun."""
IDLE_S_MAX = 120.0
"""How long a connection may be open without a request; longer than usual scrape intervals."""
ANSWER_S_MAX = 60.0
"""How long an answer may take, the client's reading included."""
LINGER_S = 1.0
"""How long a rejected client may take to read why."""
BUFFERED_BYTES = 256 * 1024
"""What is handed to the kernel at most before the client has read."""
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent in response to a request."""

    status: HTTPStatus
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes] | None
    """None if the length is unknown and nothing is sent: the answer to HEAD."""

    @classmethod
    def of_text(cls, text: str, status: HTTPStatus = HTTPStatus.OK) -> Answer:
        """Return a short answer."""
        return cls(status, {"Content-Type": PLAIN}, text.encode())

    @classmethod
    def of_error(cls, failure: BadRequest) -> Answer:
        """Return the answer that says what is wrong."""
        headers = {"Content-Type": PLAIN}
        if failure.status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(METHODS)
        elif failure.status is HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        elif failure.status is HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = "1"
        return cls(failure.status, headers, f"{failure.why}\n".encode())


class HttpConnection(asyncio.Protocol):
    """One connection."""

    def __init__(
        self,
        connections: dict[HttpConnection, None],
        connections_max: int,
        respond: Callable[[HttpRequest], Awaitable[Answer]],
    ) -> None:
        """Add itself to `connections` while it is open, or answer that they are too many."""
        self.closed = asyncio.Event()
        self._connections = connections
        self._connections_max = connections_max
        self._respond = respond
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._received = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._leaving = False
        self._is_paused = False
        self._has_ended = False
        """Whether the client has closed its side."""
        self._has_begun = False
        """Whether a part of the next head has arrived."""

    # called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(BUFFERED_BYTES)
        count = len(self._connections)
        if count >= 2 * self._connections_max:
            self._transport.abort()
            return
        self._connections[self] = None
        if count >= self._connections_max:
            self._refuse(BadRequest(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"))
            return
        self._within(HEAD_S_MAX)

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        self._received += data
        if self._answering is None:
            self._advance()
        else:
            self._pause()  # until its turn comes

    def eof_received(self) -> bool:
        self._has_ended = True  # it may still read its answer
        return self._answering is not None

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leaving = True
        self._stop_timer()
        self._connections.pop(self, None)
        self._writable.set()
        if self._answering is not None:
            self._answering.cancel()
        self.closed.set()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._leaving = True
        self._transport.abort()

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    # requests

    def _advance(self) -> None:
        """Answer the next request, if its head has arrived."""
        if self._leaving:
            return
        try:
            end = head_end(self._received)
            if end < 0:
                if self._has_ended:
                    self._leave()
                elif self._received and not self._has_begun:
                    self._has_begun = True
                    self._within(HEAD_S_MAX)
                return
            head = bytes(self._received[:end])
            del self._received[:end]
            request = parse_head(head)
        except BadRequest as failure:
            self._refuse(failure)
            return
        self._has_begun = False
        self._within(ANSWER_S_MAX)
        self._answering = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: HttpRequest) -> None:
        try:
            try:
                answer = await self._respond(request)
            except BadRequest as failure:
                answer = Answer.of_error(failure)
            except Exception:
                logger.exception("metrics: %s could not be answered", request.path[:256])
                failed = BadRequest(HTTPStatus.INTERNAL_SERVER_ERROR, "the log has the reason")
                answer = Answer.of_error(failed)
            await self._send(request, answer)
        except ConnectionError:
            self.abort()  # so that the client sees that the answer is not complete
        finally:
            self._answering = None
        if self._leaving:
            return
        if not request.keeps_alive or (not request.chunked and _has_no_end(answer)):
            self._leave()
            return
        self._within(IDLE_S_MAX)
        self._resume()
        self._advance()

    async def _send(self, request: HttpRequest, answer: Answer) -> None:
        body = answer.body
        headers = dict(answer.headers)
        chunked = _has_no_end(answer) and request.chunked
        if isinstance(body, bytes):
            headers["Content-Length"] = str(len(body))
        elif chunked:
            headers["Transfer-Encoding"] = "chunked"
        if not request.keeps_alive or (_has_no_end(answer) and not chunked):
            headers["Connection"] = "close"
        elif not request.chunked:
            headers["Connection"] = "keep-alive"
        self._transport.write(_head(answer.status, headers))
        if body is None or request.is_head:
            return
        if isinstance(body, bytes):
            self._transport.write(body)
            return
        async for chunk in body:
            if self._leaving:
                return
            if chunked:
                self._transport.writelines([b"%x\r\n" % len(chunk), chunk, b"\r\n"])
            else:
                self._transport.write(chunk)
            await self._writable.wait()
        if chunked and not self._leaving:
            self._transport.write(b"0\r\n\r\n")

    def _refuse(self, failure: BadRequest) -> None:
        """Answer with an error and close: what follows on the connection is not understood."""
        answer = Answer.of_error(failure)
        assert isinstance(answer.body, bytes)
        headers = {
            **answer.headers,
            "Content-Length": str(len(answer.body)),
            "Connection": "close",
        }
        self._transport.write(_head(answer.status, headers) + answer.body)
        if not self._transport.can_write_eof():
            self._leave()
            return
        # A socket that is closed with unread bytes resets the connection, and the answer is lost.
        self._leaving = True
        self._transport.write_eof()
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, self._transport.abort)

    # time

    def _within(self, seconds: float) -> None:
        """Drop the connection unless something happens in time."""
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        self._timer = None
        if self._answering is None and self._has_begun:
            failure = BadRequest(
                HTTPStatus.REQUEST_TIMEOUT, f"the head did not arrive in {HEAD_S_MAX:g} s"
            )
            self._refuse(failure)
        elif self._answering is None:
            self._leave()
        else:
            self.abort()  # it does not read its answer

    def _leave(self) -> None:
        """Close once everything is sent; drop it if the client does not read."""
        self._leaving = True
        self._stop_timer()
        self._transport.close()
        self._timer = asyncio.get_running_loop().call_later(HEAD_S_MAX, self._transport.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _has_no_end(answer: Answer) -> bool:
    """Return whether the length of an answer is not known when it begins."""
    return not isinstance(answer.body, bytes)


def _head(status: HTTPStatus, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    # A page of a browser must not run what a label's value may have.
    lines += ["X-Content-Type-Options: nosniff", "Cache-Control: no-store", "", ""]
    return "\r\n".join(lines).encode("latin-1")
