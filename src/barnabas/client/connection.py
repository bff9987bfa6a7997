"""One connection to one broker: requests out, responses back in the same order.

`opening.open_connection` connects, negotiates and authenticates; `submit` takes a request and a
callback, without a task or a future, `send` awaits the response. The broker responds in order, so
what is in flight is a queue: a response that does not belong to the oldest request violates the
protocol and ends the connection. So does a request that times out, since every later one waits
behind it. Requests beyond `in_flight_max` wait here, unsent, and one that waits too long fails
alone. Whatever ends the connection, each pending request gets the reason, once.

Uses the loop's transports, timers and futures only, so it runs on asyncio's loop, uvloop and a
simulated one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from barnabas.client.addresses import Address
from barnabas.client.connection_stats import ConnectionStats
from barnabas.client.errors import (
    AuthenticationFailedError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedApiError,
)
from barnabas.client.framing import FrameReader
from barnabas.client.negotiation import PeerVersions, VersionRange
from barnabas.client.opening import Login, is_alert, open_connection, reason
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RemoteProtocolError
from barnabas.wire.apis import API_VERSIONS_KEY, Api, api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.header import peek_correlation_id
from barnabas.wire.schema import Message

FRAME_BYTES_MAX = 1 << 30
"""Larger responses are rejected; the protocol itself ends at 2 GiB."""

Answered = Callable[[Any, BarnabasError | None], object]
"""Called with the response or with the failure; exactly one of the two is None."""

_NEVER_S = float("inf")
_UNSUPPORTED_VERSION = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request without a response yet; `frame` is dropped once it was written."""

    correlation_id: int
    api: Api
    version: int
    answered: Answered
    submitted_s: float
    timeout_ms: float
    frame: bytes | None

    @property
    def deadline_s(self) -> float:
        return self.submitted_s + self.timeout_ms / 1000


class Connection(asyncio.BufferedProtocol):
    """A negotiated connection; at most `in_flight_max` requests are in flight at a time."""

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        client_id: str,
        connect_timeout_ms: float = 10_000,
        request_timeout_ms: float = 30_000,
        in_flight_max: int = 5,
        response_bytes_max: int = FRAME_BYTES_MAX,
        tls: ssl.SSLContext | None = None,
        login: Login | None = None,
        socket_options: Iterable[tuple[int, int, Any]] = (),
        stats: ConnectionStats | None = None,
        changed: Callable[[], object] = lambda: None,
    ) -> Connection:
        """Connect and learn which versions the broker supports; see `opening.open_connection`."""
        return await open_connection(
            lambda: cls(
                address,
                client_id,
                request_timeout_ms,
                in_flight_max,
                response_bytes_max,
                stats or ConnectionStats(),
                changed,
            ),
            address,
            connect_timeout_ms=connect_timeout_ms,
            tls=tls,
            login=login,
            socket_options=socket_options,
        )

    def __init__(
        self,
        address: Address,
        client_id: str,
        request_timeout_ms: float,
        in_flight_max: int,
        response_bytes_max: int,
        stats: ConnectionStats,
        changed: Callable[[], object],
    ) -> None:
        """`changed` is called when the connection ends or accepts requests again."""
        self.address = address
        self.versions = PeerVersions(str(address), ())
        self.in_flight_max = in_flight_max
        self.stats = stats
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(response_bytes_max)
        self._in_flight: deque[_Waiting] = deque()
        self._unsent: deque[_Waiting] = deque()
        self._writable = asyncio.Event()
        self._writable.set()
        self._correlation_id = 0
        self._ended: str | None = None
        self._lost = asyncio.Event()
        self._held_from_s = _NEVER_S
        self._renewal: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._throttled_until_s = 0.0
        # One timer for all requests: nearly all get their response in time, so it rarely fires.
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = _NEVER_S
        self.used_s = self._loop.time()
        """When it was last used, by the loop's clock."""

    @property
    def closed(self) -> bool:
        """Return whether the connection has ended."""
        return self._ended is not None

    @property
    def in_flight(self) -> int:
        """Return how many requests were sent and wait for their responses."""
        return len(self._in_flight)

    @property
    def load(self) -> int:
        """Return how many requests wait for their responses or to be sent."""
        return len(self._in_flight) + len(self._unsent)

    @property
    def can_submit(self) -> bool:
        """Return whether a request submitted now would be written at once."""
        return (
            self._ended is None
            and len(self._in_flight) < self.in_flight_max
            and not self._unsent
            and self._loop.time() < self._held_from_s
            and self._writable.is_set()
            and (not self._throttled_until_s or self._loop.time() >= self._throttled_until_s)
        )

    def version_of(
        self, request: type[Message], *, at_least: int = 0, at_most: int | None = None
    ) -> int:
        """Return the version in which a request of this class would be sent."""
        picked = self.versions.picked
        wish = (request, at_least, at_most)
        version = picked.get(wish)
        if version is None:
            api = api_of(request)
            lowest, highest = api.stable_versions
            if at_most is not None:
                highest = min(highest, at_most)
            ours = VersionRange(max(lowest, at_least), highest)
            version = picked[wish] = self.versions.pick(api.key, api.name, ours)
        return version

    def submit(
        self,
        request: Message,
        answered: Answered,
        *,
        version: int | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Send a request in `version`, or the highest common one; call `answered` later, once.

        A request that cannot be written now is queued, which its timeout covers, too.
        Never calls `answered` before it returns; raises only for a message that cannot be encoded.
        """
        try:
            self._submit(request, answered, version, timeout_ms)
        except (ConnectionLostError, UnsupportedApiError) as failure:
            self._loop.call_soon(answered, None, failure)

    async def send(
        self, request: Message, *, version: int | None = None, timeout_ms: float | None = None
    ) -> Any:
        """Send a request and return its response; in `version`, or the highest common one."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        waiting = self._submit(request, partial(_settle, answer), version, timeout_ms)
        try:
            return await answer
        except asyncio.CancelledError:
            if waiting in self._unsent:
                self._unsent.remove(waiting)
            raise

    async def post(self, request: Message, *, version: int | None = None) -> None:
        """Send a request that has no response (Produce with acks=0)."""
        await self._writable.wait()
        self.post_now(request, version=version)

    def post_now(self, request: Message, *, version: int | None = None) -> None:
        """Send a request that has no response, regardless of what is still to be written."""
        if version is None:
            version = self.version_of(type(request))
        self._check_open()
        frame = request_frame(request, version, self._next_id(), self._client_id)
        self._write(frame)

    def set_socket_options(self, options: Iterable[tuple[int, int, Any]]) -> None:
        """Set options (level, option, value) of the socket, if there is a real one."""
        assert self._transport is not None
        connected = self._transport.get_extra_info("socket")
        if connected is not None:
            for level, name, value in options:
                connected.setsockopt(level, name, value)

    def close(self, how: str = "closed by this client") -> None:
        """End the connection; requests still in flight fail."""
        self._end(how)

    async def wait_closed(self, timeout_ms: float = 1000) -> None:
        """Wait until the transport is closed, for a short time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._lost.wait()
        except TimeoutError:
            assert self._transport is not None
            self._transport.abort()

    def abort(self) -> None:
        """End the connection at once, unsent bytes included; requests still in flight fail."""
        self._end("closed by this client", graceful=False)

    # Requests.

    def _submit(
        self, request: Message, answered: Answered, version: int | None, timeout_ms: float | None
    ) -> _Waiting:
        if version is None:
            version = self.version_of(type(request))
        self._check_open()
        waiting = self._waiting(request, answered, version, timeout_ms or self._request_timeout_ms)
        if self._held or self._unsent or len(self._in_flight) >= self.in_flight_max:
            self._unsent.append(waiting)
        else:
            self._send(waiting)
        return waiting

    def _waiting(
        self, request: Message, answered: Answered, version: int, timeout_ms: float
    ) -> _Waiting:
        correlation_id = self._next_id()
        waiting = _Waiting(
            correlation_id,
            api_of(type(request)),
            version,
            answered,
            self._loop.time(),
            timeout_ms,
            request_frame(request, version, correlation_id, self._client_id),
        )
        if waiting.deadline_s < self._timer_s:
            self._set_timer(waiting.deadline_s)
        return waiting

    def _next_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def _send(self, waiting: _Waiting) -> None:
        assert waiting.frame is not None
        self._in_flight.append(waiting)
        frame, waiting.frame = waiting.frame, None
        self._write(frame)

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self.used_s = self._loop.time()
        self.stats.sent(len(frame))
        self._transport.write(frame)

    def _send_unsent(self) -> None:
        while self._unsent and not self._held and len(self._in_flight) < self.in_flight_max:
            self._send(self._unsent.popleft())

    def _check_open(self) -> None:
        if self._ended is not None:
            raise ConnectionLostError(f"connection to {self.address} was {self._ended}")

    async def exchange(self, request: Message, version: int, timeout_ms: float) -> Any:
        """Send a request of the connection itself at once, ahead of queued ones."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._check_open()
        self._send(self._waiting(request, partial(_settle, answer), version, timeout_ms))
        return await answer

    # Reauthentication.

    @property
    def _held(self) -> bool:
        """Return whether requests wait for a renewal, also one that is due and has not begun.

        After a pause of the process the broker would end the session at the first request.
        """
        return self._loop.time() >= self._held_from_s

    def renew_after(self, delay_ms: float, login: Callable[[], Awaitable[float]]) -> None:
        """Reauthenticate after a while; new requests wait until that is done."""

        def begin() -> None:
            self._held_from_s = -_NEVER_S  # a timer may be early by the clock's resolution
            self._renewal = self._loop.create_task(self._renew(login))

        self._held_from_s = self._loop.time() + delay_ms / 1000
        self._renewal = self._loop.call_at(self._held_from_s, begin)

    async def _renew(self, login: Callable[[], Awaitable[float]]) -> None:
        try:
            lifetime_ms = await login()
        except Exception as failure:
            self._end(f"closed because authentication could not be renewed ({failure})")
            if not isinstance(failure, BarnabasError):
                raise  # a bug of ours
            return
        self._held_from_s = _NEVER_S
        self._renewal = None
        if lifetime_ms:
            self.renew_after(lifetime_ms, login)
        self._send_unsent()
        self._changed()

    # Callbacks of the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.stats.opened += 1

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.target()

    def buffer_updated(self, count: int) -> None:
        self.stats.bytes_in += count
        try:
            for frame in self._reader.received(count):
                self._receive(frame)
        except RemoteProtocolError as failure:
            named = RemoteProtocolError(f"{self.address}: {failure}")
            named.__cause__ = failure
            self._end("closed because the broker violated the protocol", named)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()
        self._changed()

    def connection_lost(self, failure: Exception | None) -> None:
        self._lost.set()
        if failure is not None and is_alert(failure) and not self.versions.ranges:
            # With TLS 1.3 the broker judges our certificate after our side of the handshake.
            refused = AuthenticationFailedError(
                f"no TLS connection to {self.address}: {reason(failure)}"
            )
            refused.__cause__ = failure
            self._end("closed because the broker rejected it", refused)
            return
        self._end("closed by the broker" if failure is None else f"lost ({reason(failure)})")

    def _receive(self, frame: memoryview) -> None:
        correlation_id = peek_correlation_id(frame)
        if not self._in_flight:
            raise RemoteProtocolError(
                f"response to request {correlation_id}, but none is in flight"
            )
        waiting = self._in_flight[0]
        if correlation_id != waiting.correlation_id:
            raise RemoteProtocolError(
                f"response to request {correlation_id} before request {waiting.correlation_id}"
            )
        message = self._decode(waiting, frame)
        self._in_flight.popleft()
        self.used_s = now_s = self._loop.time()
        self.stats.answered(now_s - waiting.submitted_s)
        throttle_ms: int = getattr(message, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttle(throttle_ms, now_s)
        if self._unsent:
            self._send_unsent()
        self._answer(waiting, message, None)

    def _decode(self, waiting: _Waiting, frame: memoryview) -> Message:
        version = waiting.version
        if waiting.api.key == API_VERSIONS_KEY and frame[4:6] == _UNSUPPORTED_VERSION:
            # The broker could not know our version, so it responds in version 0.
            version = 0
        return decode_response(waiting.api, version, frame)[1]

    def _throttle(self, throttle_ms: int, now_s: float) -> None:
        """Send nothing for as long as the broker, which has stopped reading, asks for (KIP-219)."""
        self.stats.throttled(throttle_ms)
        self._throttled_until_s = max(self._throttled_until_s, now_s + throttle_ms / 1000)
        self._changed()
        self._loop.call_later(throttle_ms / 1000, self._changed)

    def _answer(self, waiting: _Waiting, response: Any, failure: BarnabasError | None) -> None:
        try:
            waiting.answered(response, failure)
        except Exception as bug:  # noqa: BLE001  reported; the other callbacks must still run
            self._loop.call_exception_handler(
                {
                    "message": f"callback of {waiting.api.name} failed",
                    "exception": bug,
                    "protocol": self,
                }
            )

    def _set_timer(self, at_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = at_s
        self._timer = self._loop.call_at(at_s, self._expire)

    def _expire(self) -> None:
        """Time out overdue requests, in the order of their deadlines, and wait for the next."""
        # Timers of some loops fire slightly early.
        now_s = max(self._loop.time(), self._timer_s)
        self._timer, self._timer_s = None, _NEVER_S
        for waiting in sorted(
            [*self._in_flight, *self._unsent], key=lambda waiting: waiting.deadline_s
        ):
            if self._ended is not None:
                return
            if waiting.deadline_s > now_s:
                self._set_timer(waiting.deadline_s)
                return
            self._time_out(waiting)

    def _time_out(self, waiting: _Waiting) -> None:
        name, timeout_ms = waiting.api.name, waiting.timeout_ms
        if waiting.frame is not None:
            ahead = len(self._in_flight) + self._unsent.index(waiting)
            self._unsent.remove(waiting)
            failure = RequestTimeoutError(
                f"{name} could not be sent to {self.address} within {timeout_ms:g} ms: "
                f"{ahead} requests were ahead of it"
            )
            self._answer(waiting, None, failure)
            return
        failure = RequestTimeoutError(
            f"{self.address} did not respond to {name} within {timeout_ms:g} ms"
        )
        self._end("closed because a request timed out", failure, waiting)

    def _end(
        self,
        how: str,
        failure: BarnabasError | None = None,
        culprit: _Waiting | None = None,
        *,
        graceful: bool = True,
    ) -> None:
        """Close once; `failure` is for `culprit` (or the oldest), the others get how it ended."""
        if self._ended is not None:
            return
        self._ended = how
        self._writable.set()
        for timer in (self._renewal, self._timer):
            if timer is not None:
                timer.cancel()
        if self._transport is not None:
            self.stats.closed += 1
            if failure is None and graceful:
                self._transport.close()
            else:  # buffered bytes are not sent to a late or broken peer
                self._transport.abort()
        if culprit is None and self._in_flight:
            culprit = self._in_flight[0]
        now_s = self._loop.time()
        abandoned = [*self._in_flight, *self._unsent]
        self._in_flight.clear()
        self._unsent.clear()
        for waiting in abandoned:
            if failure is not None and waiting is culprit:
                self._answer(waiting, None, failure)
                continue
            fate = "answered" if waiting.frame is None else "sent"
            elapsed_ms = (now_s - waiting.submitted_s) * 1000
            lost = ConnectionLostError(
                f"connection to {self.address} was {how} before {waiting.api.name} was {fate} "
                f"({elapsed_ms:.0f} ms)"
            )
            self._answer(waiting, None, lost)
        self._changed()


def _settle(answer: asyncio.Future[Any], response: Any, failure: BarnabasError | None) -> None:
    if answer.done():  # its caller was cancelled meanwhile
        return
    if failure is None:
        answer.set_result(response)
    else:
        answer.set_exception(failure)
