"""One client connection: requests in, responses out, in order.

A connection has at most one request in handling. Bytes are received into one buffer that is
reused from frame to frame; the frame that a handler sees is a view into it, valid until the
handler returns, so a handler that keeps a request for later must own its bytes. Frames that arrive
meanwhile wait in the buffer, and reading stops when the buffer holds enough of them.

The buffer grows as bytes arrive, never because of an announced length: a client that announces
100 MiB and then stops costs only what it sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol, cast

from barnabas.broker.network.session import Session
from barnabas.broker.network.sliced_send import SlicedSend
from barnabas.broker.network.zero_copy import BYTES, Part, ZeroCopySend, release
from barnabas.model.errors import StorageError
from barnabas.timing.purgatory import DelayedOperation

if TYPE_CHECKING:
    from barnabas.broker.network.listener import Listener

logger = logging.getLogger("barnabas.network")

read_size = Struct(">i").unpack_from

BUFFER_BYTES = 32 * 1024
COALESCED_BYTES = 64 * 1024
READ_AHEAD_BYTES = 128 * 1024
"""While a request is in handling, at most this much of the next ones is read from the socket."""


class Dispatcher(Protocol):
    """What a connection hands its frames to."""

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        """Handle one frame; eventually call `connection.answer`, `skip_answer` or `close`."""


class Connection(asyncio.BufferedProtocol):
    """The server side of one TCP connection."""

    def __init__(self, listener: Listener, dispatcher: Dispatcher) -> None:
        self.session = Session(listener.name, "", "")
        self.last_active_ms = 0
        self.frame_bytes_max = listener.frame_bytes_max
        self.login_due_ms: int | None = None
        """Until when the client must have logged in; None if it has, or need not."""
        self.parked: DelayedOperation | None = None
        self._listener = listener
        self.dispatcher = dispatcher
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._buffer = bytearray()  # made when bytes arrive: a silent client costs none
        self._view = memoryview(self._buffer)
        self._start = 0  # first byte not yet handed out
        self._end = 0  # end of the received bytes
        self._in_handling = False
        self._advancing = False
        self._write_paused = False
        self._read_paused = False
        self._muted = False
        self._throttled: asyncio.TimerHandle | None = None
        self._waiting = False
        self._held = False  # muted, throttled or waiting
        self._leaving = ""
        self._closed = True
        self._file_send: ZeroCopySend | SlicedSend | None = None
        self._when_sent: Callable[[], None] | None = None
        self._paused_ms = 0
        self._bytes_in = listener.bytes_in
        self._bytes_out = listener.bytes_out
        self._answers: list[bytes | bytearray] = []  # of this turn, not yet with the transport
        self._answer_bytes = 0

    # called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._closed = False
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        self.session.client_host = str(peer[0]) if peer else "unknown"
        self.session.client_port = int(peer[1]) if peer else 0
        self.session.dialled_host = str(local[0]) if local else ""
        self._listener.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._end_throttle()
        if self._file_send is not None:
            self._file_send.close()
            self._file_send = None  # it refers to this connection, which would not be freed
        self._notify_sent()
        if self.parked is not None:
            self.parked.cancel()  # its client is gone
            self.parked = None
        self._listener.lost(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._end == len(self._buffer):
            self._make_room()
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self._bytes_in.value += nbytes
        self.last_active_ms = self._listener.now_ms()
        self._advance()
        if self.parked is not None and self._end > self._start:
            self.parked.give_way()

    def pause_writing(self) -> None:
        self._write_paused = True
        self._paused_ms = self._listener.now_ms()

    def resume_writing(self) -> None:
        self._write_paused = False
        if isinstance(self._file_send, SlicedSend):
            self._file_send.resume()
        elif not self._in_handling:  # what was written is a whole response
            stalled_ms = self._listener.now_ms() - self._paused_ms
            self._listener.on_stalled(self.session.api_key, stalled_ms)
        self._advance()

    # called by handlers

    @property
    def is_open(self) -> bool:
        """True until the connection is closed by either side."""
        return not self._closed

    @property
    def is_idle(self) -> bool:
        """True when no request is in handling."""
        return not self._in_handling

    @property
    def is_sending(self) -> bool:
        """True while a response waits for the client to read."""
        sending = self._file_send
        return self._write_paused or (sending is not None and sending.stalled_since_ms is not None)

    def idle_ms(self, now_ms: int) -> int:
        """Return how long the client neither sent nor read anything; 0 while it waits for us."""
        sending = self._file_send
        stalled_since_ms = sending.stalled_since_ms if sending is not None else None
        if stalled_since_ms is not None:
            return now_ms - max(stalled_since_ms, self.last_active_ms)
        return 0 if self._in_handling else now_ms - self.last_active_ms

    def answer(self, frame: bytes | bytearray) -> None:
        """Send the response to the request in handling, and continue with the next one."""
        if self._closed:
            return
        if self._advancing:
            # Responses to requests that arrived together are sent with one system call.
            self._answers.append(frame)
            self._answer_bytes += len(frame)
            if self._answer_bytes >= COALESCED_BYTES:
                self._flush_answers()
        else:
            self._bytes_out.value += len(frame)
            self._transport.write(frame)
        self._finish()

    def answer_parts(self, parts: Sequence[Part]) -> bool:
        """Send a response of several parts; file ranges are released once they are sent.

        Return whether nothing is left to send.
        """
        if self._closed:
            release(parts)
            return True
        self._flush_answers()
        self._bytes_out.value += sum(
            len(part) if isinstance(part, BYTES) else part.size for part in parts
        )
        try:
            sending = self._file_send or self._open_file_send()
            if sending is not None:
                return sending.send(parts)
            self._transport.writelines(
                [part if isinstance(part, BYTES) else part.read() for part in parts]
            )
        except (OSError, StorageError) as failure:  # no descriptor is left, or the disk fails
            release(parts)
            self.close(f"its response could not be sent: {failure}")
            return True
        release(parts)
        self._finish()
        return True

    def when_sent(self, act: Callable[[], None]) -> None:
        """Call once the response that is being sent has left, or the connection is lost."""
        self._when_sent = act

    def rejected(self, why: str) -> None:
        """Count that a client, or a request of it, is rejected."""
        self._listener.rejected(why)

    def skip_answer(self) -> None:
        """Continue with the next request; this one has no response (acks=0)."""
        if not self._closed:
            self._finish()

    def set_socket_options(self, send_buffer_bytes: int, receive_buffer_bytes: int) -> None:
        """Set buffer sizes (-1 leaves the system's choice), no delay and keep-alive."""
        accepted = self._transport.get_extra_info("socket")
        if accepted is None:
            return
        with contextlib.suppress(
            OSError
        ):  # the peer may be gone already, which the transport reports
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if send_buffer_bytes != -1:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
            if receive_buffer_bytes != -1:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)

    def mute(self) -> None:
        """Dispatch no more requests: the broker stops, and answers those in handling."""
        self._muted = self._held = True

    def hold(self) -> None:
        """Leave a new connection unread: it waits to be admitted, or to be closed."""
        self._waiting = self._held = True
        # Loops start to read after `connection_made`, whatever was said in it.
        asyncio.get_running_loop().call_soon(self._steer_reading)

    def admitted(self) -> None:
        """Read a connection that was held."""
        self._waiting = False
        self._held = self._muted
        self._advance()

    def throttle(self, until_ms: int) -> None:
        """Leave the connection unread until a time: its client has exceeded a quota.

        The response to the request in handling is sent all the same.
        """
        self._end_throttle()
        rest_s = (until_ms - self._listener.now_ms()) / 1000
        if rest_s > 0 and not self._closed:
            self._held = True
            loop = asyncio.get_running_loop()
            self._throttled = loop.call_later(rest_s, self._resume_reading)

    def _resume_reading(self) -> None:
        self._end_throttle()
        self._advance()

    def _end_throttle(self) -> None:
        if self._throttled is not None:
            self._throttled.cancel()
            self._throttled = None
            self._held = self._muted or self._waiting

    def leave(self, reason: str) -> None:
        """Close once the request in handling, if any, is answered."""
        self.mute()
        self._leaving = reason
        if self.is_idle:
            self.close(reason, level=logging.INFO)

    def close(self, reason: str, *, level: int = logging.WARNING, cause: str | None = None) -> None:
        """Close the connection once everything written is sent; one log line says why.

        With a cause it is a rejection, which the diary names.
        """
        if self._closed:
            return
        if cause is not None:
            self._listener.note_rejection(self.session, cause, reason)
        self._closed = True
        logger.log(
            level,
            "connection from %s on %s closed: %s",
            self.session.client_host,
            self.session.listener,
            reason,
        )
        self._flush_answers()
        self._transport.close()

    def note_rejection(self, cause: str, reason: str) -> None:
        """Note why the client is rejected, where something else closes the connection."""
        self._listener.note_rejection(self.session, cause, reason)

    def reject_plaintext(self, first: bytes) -> None:
        """Close a connection whose first bytes are not TLS, on a listener that expects it."""
        self.close(f"not a TLS handshake ({_hint_for_tls(first, self._shown)})", cause="tls")

    def abort(self) -> None:
        """Drop the connection at once, with everything that was not sent."""
        self._closed = True
        self._answers = []
        self._transport.abort()

    def shrink(self) -> None:
        """Release a large buffer that is not in use."""
        if self._start == self._end and len(self._buffer) > BUFFER_BYTES and self.is_idle:
            self._replace_buffer(BUFFER_BYTES)

    # frames

    def _advance(self) -> None:
        """Dispatch whole frames until one is in handling or none is left."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while not (self._in_handling or self._write_paused or self._held or self._closed):
                frame = self._next_frame()
                if frame is None:
                    break
                self._in_handling = True
                self.dispatcher.dispatch(self, frame)
        finally:
            self._advancing = False
            self._flush_answers()
        self._steer_reading()

    def _flush_answers(self) -> None:
        answers = self._answers
        if answers:
            self._bytes_out.value += self._answer_bytes
            self._transport.write(answers[0] if len(answers) == 1 else b"".join(answers))
            self._answers = []
            self._answer_bytes = 0

    def _file_sent(self) -> None:
        self._notify_sent()
        self._finish()

    def _notify_sent(self) -> None:
        act, self._when_sent = self._when_sent, None
        if act is not None:
            act()

    def _finish(self) -> None:
        self._in_handling = False
        if self._leaving:
            self.close(self._leaving, level=logging.INFO)
        elif not self._advancing:
            self._advance()

    @property
    def _shown(self) -> int:
        """Return how many unexpected bytes are logged.

        Those of a client that is not logged in may be a password without a size before it.
        """
        return 16 if self.login_due_ms is None else 4

    def _next_frame(self) -> memoryview | None:
        start, waiting = self._start, self._end - self._start
        if waiting < 4:
            if waiting == 0:
                self._start = self._end = 0
            return None
        (size,) = read_size(self._buffer, start)
        if not 0 < size <= self.frame_bytes_max:
            limit = "socket.request.max.bytes"
            if self.login_due_ms is not None:
                limit = "sasl.server.max.receive.size"
            hint = _hint(bytes(self._view[start : self._end][:16]), self._shown)
            self.rejected("frame-size")
            self.close(
                f"frame of {size} bytes ({hint}): must be from 1 to {limit}={self.frame_bytes_max}",
                cause="frame-size",
            )
            return None
        if waiting < 4 + size:
            return None
        self._start = start + 4 + size
        return self._view[start + 4 : self._start]

    def _make_room(self) -> None:
        """Move what waits to the front, or to a buffer twice as large when it fills this one."""
        waiting = self._end - self._start
        if self._start and not self._in_handling and waiting <= len(self._buffer) // 2:
            self._view[:waiting] = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, waiting
        else:
            # A frame in handling may still be read: its buffer must not change.
            self._replace_buffer(max(2 * waiting, BUFFER_BYTES))

    def _replace_buffer(self, size: int) -> None:
        waiting = self._view[self._start : self._end]
        self._buffer = bytearray(size)
        self._buffer[: len(waiting)] = waiting
        self._view = memoryview(self._buffer)
        self._start, self._end = 0, len(waiting)

    def _steer_reading(self) -> None:
        """Stop reading while enough is buffered; continue once it has been handled."""
        if self._closed:
            return
        blocked = self._in_handling or self._write_paused or self._held
        if blocked and (
            self._end - self._start >= READ_AHEAD_BYTES
            or self._throttled is not None
            or self._waiting
        ):
            if not self._read_paused:
                self._read_paused = True
                self._transport.pause_reading()
        elif self._read_paused:
            self._read_paused = False
            self._transport.resume_reading()

    def _open_file_send(self) -> ZeroCopySend | SlicedSend | None:
        """Return what sends files on this transport; None if it cannot send them in pieces."""
        info: Any = self._transport.get_extra_info
        if info("sslcontext") is not None:
            self._file_send = SlicedSend(
                self._transport, self._file_sent, self.abort, lambda: self._write_paused
            )
        elif info("socket") is not None:
            self._file_send = ZeroCopySend(self._transport, self._file_sent, self.abort)
        return self._file_send


def _hint_for_tls(first: bytes, shown: int) -> str:
    """Return what the first bytes of a connection without TLS look like, for the log."""
    if first[:2] == b"\0\0" and len(first) >= 8:
        return "a Kafka request: the client needs security.protocol=SSL or SASL_SSL"
    return _hint(first, shown)


def _hint(first: bytes, shown: int) -> str:
    """Return what the first bytes of a frame look like, for the log; show some at most."""
    if first[:1] == b"\x16" and first[1:2] == b"\x03":
        return "a TLS handshake: is the client set to SSL?"
    if first.split(b" ")[0] in (b"GET", b"POST", b"HEAD", b"PUT", b"OPTIONS", b"CONNECT"):
        return "an HTTP request: this is not a web port"
    return f"first bytes {first[:shown].hex(' ')}"
