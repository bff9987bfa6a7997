"""One end of a simulated connection: an asyncio transport whose kernel and wire are in memory.

    write → buffer (counts for flow control) → in flight (at most a window) → inbox → protocol

It behaves like asyncio's socket transport, for Protocol and BufferedProtocol alike: water marks,
half-close, `connection_lost` exactly once and last, errors in callbacks that end the connection.
The bytes are split and joined at boundaries drawn from the seed. A byte leaves the sender's window
when the receiving protocol has consumed it, so a reader that pauses stops the writer, as with TCP.
"""

from __future__ import annotations

import asyncio
import contextvars
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from barnabas.simulation.loop import SimulatedLoop

WINDOW_BYTES = 256 * 1024
READ_SIZE_MAX = 256 * 1024
HIGH_WATER_BYTES = 64 * 1024

Address = tuple[str, int]


class Wire(Protocol):
    """The channel to the other end: runs what it is given there, later and in order."""

    def send(self, act: Callable[[], None]) -> None: ...


class SimulatedTransport(asyncio.Transport):
    """One end of a connection; `peer` is the other."""

    peer: SimulatedTransport

    def __init__(
        self,
        loop: SimulatedLoop,
        wire: Wire,
        context: contextvars.Context,
        sockname: Address,
        peername: Address,
        draw_chunk: Callable[[int], int],
        on_lost: Callable[[SimulatedTransport], None],
    ) -> None:
        super().__init__({"sockname": sockname, "peername": peername, "socket": None})
        self.sockname = sockname
        self.peername = peername
        self._loop = loop
        self._wire = wire
        self._context = context
        self._draw_chunk = draw_chunk
        self._on_lost = on_lost
        self._protocol: asyncio.BaseProtocol | None = None
        self._buffer = bytearray()
        self._in_flight = 0
        self._inbox = bytearray()
        self._reading_paused = False
        self._read_asked = False
        self._writing_paused = False
        self._eof_asked = False  # write_eof() was called
        self._eof_sent = False
        self._eof_arrived = False
        self._eof_told = False
        self._begun = False
        self._closing = False
        self._lost = False
        self._loss: Exception | None = None
        self._low, self._high = HIGH_WATER_BYTES // 4, HIGH_WATER_BYTES

    def open(self, protocol: asyncio.BaseProtocol) -> None:
        """Attach the protocol, which is not called before `begin`."""
        self._protocol = protocol
        protocol.connection_made(self)

    def begin(self) -> None:
        """Deliver to the protocol what arrived, or was lost, before it was attached."""
        self._begun = True
        if self._lost:
            self._loop.call_soon(self._tell_lost, context=self._context)
        else:
            self._ask_read()

    # Reading

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._ask_read()

    def is_reading(self) -> bool:
        return not self._reading_paused and not self._closing

    def _ask_read(self) -> None:
        ready = self._begun and self.is_reading() and not self._read_asked
        if ready and (self._inbox or (self._eof_arrived and not self._eof_told)):
            self._read_asked = True
            self._loop.call_soon(self._read, context=self._context)

    def _read(self) -> None:
        """Read once, as for one readiness event of a socket."""
        self._read_asked = False
        if not self.is_reading():
            return
        try:
            if self._inbox:
                taken = self._feed()
                self._wire.send(lambda: self.peer.on_taken(taken))
            elif not self._eof_told:
                self._eof_told = True
                if not self._protocol.eof_received():  # type: ignore[union-attr]
                    self.close()
        except Exception as failure:  # noqa: BLE001 - as asyncio: it ends the connection, and is reported
            self._fail(failure)
            return
        self._ask_read()

    def _feed(self) -> int:
        protocol = self._protocol
        if isinstance(protocol, asyncio.BufferedProtocol):
            room = memoryview(protocol.get_buffer(-1))
            if not len(room):
                raise RuntimeError("get_buffer() returned an empty buffer")
            size = min(len(room), len(self._inbox))
            data = bytes(self._inbox[:size])
            room[:size] = data
            del room, self._inbox[:size]
            self._trace_read(data)
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            size = min(len(self._inbox), READ_SIZE_MAX)
            data = bytes(self._inbox[:size])
            del self._inbox[:size]
            self._trace_read(data)
            protocol.data_received(data)
        return size

    def _trace_read(self, data: bytes) -> None:
        (source, source_port), (target, target_port) = self.peername, self.sockname
        way = f"{source}:{source_port}→{target}:{target_port}"
        self._loop.trace.note("bytes", way, len(data), zlib.crc32(data))

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data must be bytes-like, not {type(data).__name__}")
        if self._eof_asked:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._closing or not len(data):
            return
        self._buffer += data
        self._send()
        if len(self._buffer) > self._high and not self._writing_paused:
            self._writing_paused = True
            self._tell(self._protocol.pause_writing)  # type: ignore[union-attr]

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if self._closing or self._eof_asked:
            return
        self._eof_asked = True
        self._send()

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._low, self._high = low, high

    def _send(self) -> None:
        """Send what the window allows; then close if that was all it waited for."""
        while self._buffer and self._in_flight < WINDOW_BYTES:
            size = self._draw_chunk(min(len(self._buffer), WINDOW_BYTES - self._in_flight))
            data = bytes(self._buffer[:size])
            del self._buffer[:size]
            self._in_flight += size
            self._wire.send(_delivery(self.peer, data))
        if self._writing_paused and len(self._buffer) <= self._low:
            self._writing_paused = False
            self._tell(self._protocol.resume_writing)  # type: ignore[union-attr]
        if not self._buffer:
            if self._closing:
                self._finish(None)
            elif self._eof_asked:
                self._send_eof()

    def _send_eof(self) -> None:
        if not self._eof_sent:
            self._eof_sent = True
            self._wire.send(self.peer.on_eof)

    def _tell(self, call: Callable[[], None]) -> None:
        """Tell the protocol to pause or resume; its failure is reported and ends nothing."""
        try:
            call()
        except Exception as failure:  # noqa: BLE001 - as asyncio does
            self._report(failure)

    # From the other end

    def on_data(self, data: bytes) -> None:
        if self._lost:
            # Nobody will read this: the sender gets a reset, as from a kernel.
            self._wire.send(self.peer.on_reset)
            return
        self._inbox += data
        self._ask_read()

    def on_taken(self, size: int) -> None:
        self._in_flight -= size
        if not self._lost:
            self._send()

    def on_eof(self) -> None:
        self._eof_arrived = True
        self._ask_read()

    def on_reset(self) -> None:
        self._lose(ConnectionResetError(104, "Connection reset by peer"))

    # Ends

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        if not self._buffer:
            self._finish(None)

    def abort(self) -> None:
        self._closing = True
        self._finish(None)

    def is_closing(self) -> bool:
        return self._closing

    def reset(self) -> None:
        """Break the connection at both ends, now."""
        self.on_reset()
        self.peer.on_reset()

    def die(self) -> None:
        """Close without notifying our protocol, whose process is dead; the peer gets a reset."""
        if not self._lost:
            self._lost = self._closing = True
            self._on_lost(self)
            self._wire.send(self.peer.on_reset)

    def _fail(self, failure: Exception) -> None:
        if not isinstance(failure, OSError):
            self._report(failure)
        self._closing = True
        self._finish(failure)

    def _finish(self, failure: Exception | None) -> None:
        """Close our end: the peer gets EOF, or a reset if we left bytes unread."""
        if self._lost:
            return
        if self._inbox:
            self._wire.send(self.peer.on_reset)
        else:
            self._send_eof()
        self._lose(failure)

    def _lose(self, failure: Exception | None) -> None:
        if self._lost:
            return
        self._lost = self._closing = True
        self._loss = failure
        self._buffer.clear()
        self._inbox.clear()
        self._on_lost(self)
        if self._begun:
            self._loop.call_soon(self._tell_lost, context=self._context)

    def _tell_lost(self) -> None:
        self._protocol.connection_lost(self._loss)  # type: ignore[union-attr]

    def _report(self, failure: Exception) -> None:
        self._loop.call_exception_handler(
            {
                "message": "a protocol's callback failed",
                "exception": failure,
                "transport": self,
                "protocol": self._protocol,
            }
        )

    # Protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol


def _delivery(peer: SimulatedTransport, data: bytes) -> Callable[[], None]:
    return lambda: peer.on_data(data)
