"""One connection to one broker: requests out, responses back in the same order.

`Connection.open` connects and negotiates versions; `send` answers with the response to one
request. The broker answers in order, so what is in flight is a queue: a response that does not
belong to the oldest request breaks the protocol and ends the connection. So does a request that
is not answered in time, since every later one waits behind it. Whatever ends the connection, each
waiting `send` hears why.

Uses `loop.create_connection`, `loop.call_later` and futures only, so it runs on asyncio's loop,
uvloop and a simulated one.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any

from barnabas import __version__
from barnabas.client.addresses import Address
from barnabas.client.errors import ConnectError, ConnectionLostError, RequestTimeoutError
from barnabas.client.framing import FrameReader
from barnabas.client.negotiation import PeerVersions, VersionRange, version_for_retry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RemoteProtocolError, RequestError
from barnabas.wire.apis import API_VERSIONS_KEY, Api, api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.header import peek_correlation_id
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import Message

FRAME_BYTES_MAX = 1 << 30
"""Responses beyond this are refused; the protocol itself ends at 2 GiB."""


_UNSUPPORTED_VERSION = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2, "big")


@dataclass(slots=True, eq=False)
class _Waiting:
    """A request that was sent and is not yet answered."""

    correlation_id: int
    api: Api
    version: int
    answer: asyncio.Future[Any]
    timer: asyncio.TimerHandle


class Connection(asyncio.BufferedProtocol):
    """A negotiated connection; at most `in_flight_max` requests wait for answers at a time."""

    @classmethod
    async def open(
        cls,
        address: Address,
        *,
        client_id: str,
        connect_timeout_ms: float = 10_000,
        request_timeout_ms: float = 30_000,
        in_flight_max: int = 5,
    ) -> Connection:
        """Connect and learn which versions the broker speaks."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(connect_timeout_ms / 1000):
                _, connection = await loop.create_connection(
                    lambda: cls(address, client_id, request_timeout_ms, in_flight_max),
                    address.host,
                    address.port,
                )
        except OSError as failure:
            raise ConnectError(f"cannot connect to {address}: {_reason(failure)}") from failure
        try:
            await connection._negotiate(connect_timeout_ms)
        except BaseException:
            connection.close()
            raise
        return connection

    def __init__(
        self, address: Address, client_id: str, request_timeout_ms: float, in_flight_max: int
    ) -> None:
        self.address = address
        self.versions = PeerVersions(str(address), ())
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(FRAME_BYTES_MAX)
        self._in_flight: deque[_Waiting] = deque()
        self._slots = asyncio.Semaphore(in_flight_max)
        self._writable = asyncio.Event()
        self._writable.set()
        self._correlation_id = 0
        self._ended: str | None = None

    @property
    def closed(self) -> bool:
        """Tell whether the connection has ended."""
        return self._ended is not None

    @property
    def in_flight(self) -> int:
        """Return how many requests wait for their answers."""
        return len(self._in_flight)

    def version_of(
        self, request: type[Message], *, at_least: int = 0, at_most: int | None = None
    ) -> int:
        """Return the version in which a request of this class would be sent."""
        api = api_of(request)
        lowest, highest = api.stable_versions
        if at_most is not None:
            highest = min(highest, at_most)
        ours = VersionRange(max(lowest, at_least), highest)
        return self.versions.pick(api.key, api.name, ours)

    async def send(
        self, request: Message, *, version: int | None = None, timeout_ms: float | None = None
    ) -> Any:
        """Send a request and return its response; in `version`, or the highest both sides know."""
        if version is None:
            version = self.version_of(type(request))
        return await self._exchange(request, version, timeout_ms or self._request_timeout_ms)

    async def post(self, request: Message, *, version: int | None = None) -> None:
        """Send a request that has no response (Produce with acks=0)."""
        if version is None:
            version = self.version_of(type(request))
        await self._writable.wait()
        self._check_open()
        self._write(request, version)

    def close(self) -> None:
        """End the connection; requests still in flight fail."""
        self._end("closed by this client")

    async def _negotiate(self, timeout_ms: float) -> None:
        ours = VersionRange(*api_of(ApiVersionsRequest).versions)
        request = ApiVersionsRequest(
            client_software_name="barnabas", client_software_version=__version__
        )
        response: ApiVersionsResponse = await self._exchange(request, ours.highest, timeout_ms)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = _ranges(self.address, response).ranges.get(API_VERSIONS_KEY)
            retry = version_for_retry(ours, theirs)
            response = await self._exchange(request, retry, timeout_ms)
        if response.error_code != ErrorCode.NONE:
            raise RequestError(
                ErrorCode.of(response.error_code),
                f"{self.address} refused to tell its API versions",
            )
        self.versions = _ranges(self.address, response)

    async def _exchange(self, request: Message, version: int, timeout_ms: float) -> Any:
        await self._slots.acquire()
        try:
            self._check_open()
            correlation_id = self._write(request, version)
        except BaseException:
            self._slots.release()
            raise
        waiting = _Waiting(
            correlation_id,
            api_of(type(request)),
            version,
            self._loop.create_future(),
            self._loop.call_later(timeout_ms / 1000, self._time_out, correlation_id, timeout_ms),
        )
        self._in_flight.append(waiting)
        return await waiting.answer

    def _write(self, request: Message, version: int) -> int:
        assert self._transport is not None
        correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._transport.write(request_frame(request, version, correlation_id, self._client_id))
        self._correlation_id = correlation_id
        return correlation_id

    def _check_open(self) -> None:
        if self._ended is not None:
            raise ConnectionLostError(f"connection to {self.address} was {self._ended}")

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.target()

    def buffer_updated(self, count: int) -> None:
        try:
            for frame in self._reader.received(count):
                self._receive(frame)
        except RemoteProtocolError as failure:
            self._end("closed because the broker broke the protocol", failure)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, failure: Exception | None) -> None:
        self._end("closed by the broker" if failure is None else f"lost ({_reason(failure)})")

    def _receive(self, frame: memoryview) -> None:
        correlation_id = peek_correlation_id(frame)
        if not self._in_flight:
            raise RemoteProtocolError(
                f"{self.address} answered request {correlation_id}, but none is in flight"
            )
        waiting = self._in_flight[0]
        if correlation_id != waiting.correlation_id:
            raise RemoteProtocolError(
                f"{self.address} answered request {correlation_id} "
                f"before request {waiting.correlation_id}"
            )
        message = self._decode(waiting, frame)
        self._in_flight.popleft()
        waiting.timer.cancel()
        self._slots.release()
        if not waiting.answer.done():  # else its caller was cancelled meanwhile
            waiting.answer.set_result(message)

    def _decode(self, waiting: _Waiting, frame: memoryview) -> Message:
        version = waiting.version
        if waiting.api.key == API_VERSIONS_KEY and frame[4:6] == _UNSUPPORTED_VERSION:
            # The broker could not know our version, so it answers in version 0.
            version = 0
        return decode_response(waiting.api, version, frame)[1]

    def _time_out(self, correlation_id: int, timeout_ms: float) -> None:
        waiting = next(w for w in self._in_flight if w.correlation_id == correlation_id)
        failure = RequestTimeoutError(
            f"{self.address} did not answer {waiting.api.name} within {timeout_ms:g} ms"
        )
        self._end("closed because a request was not answered in time", failure, waiting)

    def _end(
        self,
        reason: str,
        failure: BarnabasError | None = None,
        culprit: _Waiting | None = None,
    ) -> None:
        """Close once; `failure` goes to `culprit` (or the oldest), the reason to the others."""
        if self._ended is not None:
            return
        self._ended = reason
        self._writable.set()
        if culprit is None and self._in_flight:
            culprit = self._in_flight[0]
        while self._in_flight:
            waiting = self._in_flight.popleft()
            waiting.timer.cancel()
            self._slots.release()
            if waiting.answer.done():
                continue
            if failure is not None and waiting is culprit:
                waiting.answer.set_exception(failure)
            else:
                waiting.answer.set_exception(
                    ConnectionLostError(
                        f"connection to {self.address} was {reason} "
                        f"before {waiting.api.name} was answered"
                    )
                )
        if self._transport is None:
            return
        if failure is None:
            self._transport.close()
        else:  # a peer that is late or broken need not get what is still buffered for it
            self._transport.abort()


def _ranges(address: Address, response: ApiVersionsResponse) -> PeerVersions:
    return PeerVersions(
        str(address),
        ((entry.api_key, entry.min_version, entry.max_version) for entry in response.api_keys),
    )


def _reason(failure: BaseException) -> str:
    """Return an operating system's failure in the words that people know."""
    if isinstance(failure, ConnectionRefusedError):
        return "connection refused"
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    if isinstance(failure, socket.gaierror):
        return str(failure.strerror).lower()
    if isinstance(failure, OSError) and failure.errno:
        return os.strerror(failure.errno).lower()
    return str(failure) or type(failure).__name__
