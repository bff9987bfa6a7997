"""Routes frames to handlers; here alone exceptions become error codes.

A handler returns its response (answered at once, on the fast path: no task, no queue), None (it
has answered, or will by `request.answer`), or a coroutine, which is run as a task. At most
`queued.max.requests` coroutines run at a time in one plane; further requests wait, unread, in
their connections. The control plane has a router of its own, so that a flood of clients cannot
hold it up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from types import coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.broker.cluster.silence import Silence
from barnabas.broker.cluster.tree_errors import refusal_of
from barnabas.broker.loop import LONG_STEP_S
from barnabas.broker.network.client_quotas import PERCENT, ClientQuotas, MeteredRequest
from barnabas.broker.network.phases import Phases
from barnabas.broker.network.request import Counts, Request
from barnabas.broker.network.zero_copy import BYTES, Part, ranges_in, release
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    BarnabasError,
    LocalProtocolError,
    RemoteProtocolError,
    RequestError,
)
from barnabas.wire.apis import API_VERSIONS_KEY, Api
from barnabas.wire.codec import decode, join
from barnabas.wire.frame import response_frame, response_parts
from barnabas.wire.header import RequestHeader, decode_request_header
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection
    from barnabas.broker.network.request_metrics import RequestMetrics

logger = logging.getLogger("barnabas.router")

Answer = Coroutine[Any, Any, "Message | None"]
Result = Message | Answer | None
Host = TypeVar("Host")
"""What handlers are given with each request: the broker."""
Handle = Callable[[Host, Request[Any]], Result]
"""Handles a request: returns its response, None, or a coroutine.

While `queued.max.requests` coroutines run, the one that was returned is closed unstarted,
and the handler is called again when there is room. So a handler that returns a coroutine has done
nothing before: it has not answered or parked the request, changed its body, or touched the broker's
state. All of that happens inside of the coroutine.
"""
Refuse = Callable[[Any, ErrorCode, str | None], Message]


@dataclass(frozen=True, slots=True)
class Served(Generic[Host]):
    """An API that this broker serves, in a range of versions."""

    api: Api
    first_version: int
    last_version: int
    handle: Handle[Host]
    refuse: Refuse
    """Builds the response to a request that failed as a whole."""


class Router(Generic[Host]):
    """Hands frames to handlers and sends what they return."""

    def __init__(
        self,
        host: Host,
        served: Mapping[int, Served[Host]],
        silence: Silence,
        clock: Callable[[], float],
        metrics: RequestMetrics,
        quotas: ClientQuotas,
        queued_max: int,
        other_listeners: Mapping[int, str],
    ) -> None:
        """Serve some APIs; `other_listeners` has the listener of those served on another."""
        self._host = host
        self._served = served
        self._other_listeners = other_listeners
        self._silence = silence
        self._clock = clock
        self._metrics = metrics
        self._counts = metrics.by_version
        self._quotas = quotas
        self._metered_s = 0.0
        """The time that metered requests have taken so far."""
        self._queued_max = queued_max
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue: deque[tuple[Served[Host], Request[Any]]] = deque()

    @property
    def in_progress(self) -> int:
        """Return how many requests run as tasks or wait to."""
        return len(self._tasks) + len(self._queue)

    @property
    def queued(self) -> int:
        """Return how many requests wait because `queued.max.requests` others run."""
        return len(self._queue)

    def dispatch(self, connection: Connection, frame: memoryview, queued_s: float = 0.0) -> None:
        """Handle one frame, which may have waited for its turn since it arrived.

        Whatever it contains, only its own connection is affected.
        """
        received = self._clock()
        if received >= self._silence.until_s:  # this process may have been paused
            self._silence.look()
        try:
            header, position = decode_request_header(frame)
            api_key, version, correlation_id, client_id = header
            served = self._served.get(api_key)
            if served is None or not served.first_version <= version <= served.last_version:
                self._unsupported(connection, header, served)
                return
            body, _ = decode(served.api.request, frame, version, position)
        except RemoteProtocolError as failure:
            connection.rejected("unreadable")
            connection.close(f"unreadable request: {failure}")
            return
        counts = self._counts[api_key][version]
        if counts is None:
            counts = self._metrics.begin(served, version)
        if self._quotas.active:
            self._handle_metered(
                served, header, body, connection, received, counts, len(frame), queued_s
            )
            return
        request = Request(
            body,
            api_key,
            version,
            correlation_id,
            client_id,
            connection,
            received,
            self._reply,
            counts,
            len(frame),
        )
        if queued_s:
            request.phases = Phases(received, queued_s)
        self._handle(served, request)

    def _handle_metered(
        self,
        served: Served[Host],
        header: RequestHeader,
        body: Message,
        connection: Connection,
        received: float,
        counts: Counts,
        size_bytes: int,
        queued_s: float,
    ) -> None:
        """Handle a request, and measure it for the quotas of its client."""
        request = MeteredRequest(
            body,
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            connection,
            received,
            self._reply_metered,
            counts,
            size_bytes,
        )
        if queued_s:
            request.phases = Phases(received, queued_s)
        request.quotas = self._quotas
        request.running_since = received
        before_s = self._metered_s
        self._handle(served, request)
        now = self._clock()
        request.end_step(now)
        if request.exempt:
            self._quotas.handled(request)
        self._metered_s = before_s + now - received  # includes what was handled within

    def response_stalled(self, api_key: int, stalled_ms: int) -> None:
        """Record for how long a response, already counted, waited for its client to read."""
        self._metrics.response_stalled(api_key, stalled_ms)

    async def drain(self, timeout_s: float) -> None:
        """Wait for the requests that run as tasks; those that take longer are cancelled."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            logger.warning(
                "requests cancelled, not answered within %s s: count=%d",
                timeout_s,
                self.in_progress,
            )
            self._queue.clear()
            for task in self._tasks:
                task.cancel()

    def _handle(self, served: Served[Host], request: Request[Any]) -> None:
        try:
            result = served.handle(self._host, request)
        except Exception as failure:  # noqa: BLE001 - answered and, if unexpected, logged
            self._fail(served, request, failure)
            return
        if result is None:
            if request.counts is not None:  # it was not answered: it waits
                self._phases(request).pause(self._clock())
            return
        if isinstance(result, Message):
            request.reply(request, result)
        elif len(self._tasks) < self._queued_max:
            self._run(served, request, result)
        else:
            assert getcoroutinestate(result) == CORO_CREATED, "the coroutine already runs"
            assert request.connection.parked is None, "the request is already parked"
            assert not request.connection.is_idle, "the request is already answered"
            result.close()
            self._phases(request).queue(self._clock())
            self._queue.append((served, request))  # its handler is called again

    def _phases(self, request: Request[Any]) -> Phases:
        """Return where the time of a request goes that is not answered at once."""
        if request.phases is None:
            request.phases = Phases(request.received)
        return request.phases

    def _run(self, served: Served[Host], request: Request[Any], answer: Answer) -> None:
        self._phases(request).queue(self._clock())  # until the task's first step
        task = asyncio.get_running_loop().create_task(self._complete(served, request, answer))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    async def _complete(self, served: Served[Host], request: Request[Any], answer: Answer) -> None:
        try:
            response = await self._timed(served.api.name, answer, request)
        except Exception as failure:  # noqa: BLE001 - answered and, if unexpected, logged
            self._fail(served, request, failure)
        else:
            if response is not None:  # else the handler has answered, or will
                request.reply(request, response)

    @coroutine
    def _timed(
        self, name: str, answer: Answer, request: Request[Any]
    ) -> Generator[Any, Any, Message | None]:
        """Await a handler's coroutine, and count the time of its steps but not of its waits."""
        clock, long_steps = self._clock, self._metrics.long_steps
        step: Callable[[], Any] = partial(answer.send, None)
        while True:
            began_s = clock()
            request.resume(began_s)
            try:
                awaited = step()
            except StopIteration as ended:
                response: Message | None = ended.value
                return response
            finally:
                ended_s = clock()
                request.pause(ended_s)
                if ended_s - began_s >= LONG_STEP_S:
                    long_steps.ran("request", name, ended_s - began_s)
            try:
                step = partial(answer.send, (yield awaited))
            except BaseException as failure:  # noqa: BLE001 - the handler's, at its await
                step = partial(answer.throw, failure)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        while self._queue and len(self._tasks) < self._queued_max:
            served, request = self._queue.popleft()
            if request.connection.is_open:
                self._phases(request).resume(self._clock())
                self._handle(served, request)

    def _fail(self, served: Served[Host], request: Request[Any], failure: Exception) -> None:
        """Turn an exception into an error response; a bug is logged with its traceback."""
        refusal = failure if isinstance(failure, RequestError) else refusal_of(failure)
        if refusal is not None:
            code, message = refusal.code, refusal.message
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
            if isinstance(failure, BarnabasError):
                message = str(failure)
            logger.error(
                "%s v%d from %s failed",
                served.api.name,
                request.version,
                request.session.client_host,
                exc_info=failure,
            )
        if getattr(request.body, "acks", None) == 0:  # this producer expects no response
            request.connection.close(f"produce with acks=0 failed: {code.name}")
            return
        request.reply(request, served.refuse(request.body, code, message))

    def _reply_metered(self, request: Request[Any], response: Message) -> None:
        """Record the request for its client's quotas, then send the response."""
        metered: MeteredRequest = request  # type: ignore[assignment]  # an assert costs time
        began, before_s = self._clock(), self._metered_s
        response = self._quotas.answered(metered, response, began)
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms and metered.counts is not None:
            metered.counts.throttled(throttle_ms)
        self._reply(metered, response)
        # A late response lets the connection's next request be handled before this returns.
        within_s = self._metered_s - before_s
        spent_s = self._clock() - began - within_s
        timed = metered.timed
        if timed is not None:  # it throttles the next request
            timed.rate.record(spent_s * PERCENT, timed.used_ms)
        elif metered.exempt:
            self._quotas.sent_exempt(spent_s)

    def _reply(self, request: Request[Any], response: Message) -> None:
        """Encode, unless it was before, and send; file ranges are sent without being copied."""
        connection = request.connection
        now = self._clock()
        if now >= self._silence.until_s:
            self._silence.look()
            if self._silence.is_silent:  # and this response is from before
                release(ranges_in(response))
                connection.close("this broker may no longer lead the partitions")
                return
        try:
            parts = response_parts(
                response, request.version, request.correlation_id, request.encoded
            )
        except LocalProtocolError:
            logger.exception(
                "%s v%d to %s could not be encoded, closing the connection",
                type(response).__name__,
                request.version,
                request.session.client_host,
            )
            release(ranges_in(response))
            connection.close("its response could not be encoded")
            return
        if len(parts) == 1:
            data = parts[0]
        elif all(isinstance(part, BYTES) for part in parts):
            data = join(parts)
        else:
            self._send_files(request, response, parts, now)
            return
        counts = request.counts
        if counts is not None:
            request.counts = None
            answered = counts.answered
            answered(request, response, now)
        connection.answer(data)

    def _send_files(
        self, request: Request[Any], response: Message, parts: list[Part], now: float
    ) -> None:
        """Send a response with file ranges; it is counted once the client has read enough."""
        connection, counts = request.connection, request.counts
        request.counts = None
        assert counts is not None, "the request is already answered"
        if connection.answer_parts(parts):
            counts.answered(request, response, now)
            return
        self._phases(request).hand_over(now)

        def sent() -> None:
            counts.answered(request, response, self._clock())

        connection.when_sent(sent)

    def _unsupported(
        self, connection: Connection, header: RequestHeader, served: Served[Host] | None
    ) -> None:
        """Close the connection, or answer ApiVersions in v0 with the supported versions."""
        if header.api_key == API_VERSIONS_KEY and served is not None:
            response = ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                api_keys=[
                    ApiVersion(
                        api_key=API_VERSIONS_KEY,
                        min_version=served.first_version,
                        max_version=served.last_version,
                    )
                ],
            )
            connection.answer(response_frame(response, 0, header.correlation_id))
            return
        connection.rejected("unsupported-version")
        if served is not None:
            range_text = f"supported: {served.first_version} to {served.last_version}"
        elif header.api_key in self._other_listeners:
            listener = self._other_listeners[header.api_key]
            range_text = f"this API is for listener {listener} only (control.plane.listener.name)"
        else:
            range_text = "this broker does not have the API"
        connection.close(
            f"API key {header.api_key} version {header.api_version} is not supported: {range_text}",
            cause="unsupported-version",
        )
