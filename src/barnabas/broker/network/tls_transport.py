"""TLS between a TCP transport and a connection: a protocol to the one, a transport to the other.

The connection exists from the moment when TCP accepts it, so that limits count it before its
handshake costs anything. A handshake that fails is answered with the alert that says why: without
it, a client takes the end for a lost connection and retries forever.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from barnabas.tls.channel import (
    HANDSHAKE_RECORD,
    RECEIVE_SLICE_BYTES,
    SLICE_BYTES,
    TlsChannel,
    TlsError,
)

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection
    from barnabas.broker.network.listener_tls import ListenerTls

CLOSE_S_MAX = 5.0
"""How long a client may take to read what was sent before the connection was closed."""


class TlsTransport(asyncio.BufferedProtocol):
    """The TLS of one connection."""

    def __init__(self, connection: Connection, tls: ListenerTls) -> None:
        self._connection = connection
        self._tls = tls
        self._context = tls.context
        self._channel = TlsChannel(self._context)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._timer: asyncio.TimerHandle | None = None
        self._began = False
        self._waits = False  # for its turn to shake hands
        self._paused = False
        self._closing = False
        self._undelivered = b""  # ciphertext that arrived before the connection paused

    # called by the TCP transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._after(self._tls.handshake_s_max, self._too_slow)
        self._connection.connection_made(cast(asyncio.Transport, self))

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._stop_timer()
        self._undelivered = b""
        # Each refers to the other. Apart, both are freed now: with all that OpenSSL holds, which
        # the garbage collector does not see, and so would leave for long.
        connection, self._connection = self._connection, cast("Connection", None)
        connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._tls.receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        received = self._tls.receive_buffer[:nbytes]
        if self._closing:
            return
        if self._channel.established:
            self._receive(received)
        else:
            self._receive_handshake(received)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    # called by the connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the transport; `sslcontext` marks it as encrypted."""
        if name == "sslcontext":
            return self._context
        return self._transport.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send, in slices."""
        if self._closing:
            return
        if len(data) <= SLICE_BYTES:
            self._transport.write(self._channel.encrypt(data))
            return
        view = memoryview(data)
        for position in range(0, len(view), SLICE_BYTES):
            slice_ = view[position : position + SLICE_BYTES]
            self._transport.write(self._channel.encrypt(slice_))

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the kernel has not accepted yet."""
        return self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Return whether nothing can be sent any longer."""
        return self._closing or self._transport.is_closing()

    def pause_reading(self) -> None:
        """Deliver nothing until `resume_reading`."""
        if not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Deliver what was held back, then what arrives."""
        if self._paused:
            self._paused = False
            # Later, because the caller is in the middle of handling what was delivered.
            asyncio.get_running_loop().call_soon(self._continue)

    def close(self) -> None:
        """Tell the client that this is the end, send what is written, and close."""
        if self._closing:
            return
        self._closing = True
        self._stop_timer()
        ending = self._channel.close() if self._channel.established else b""
        self._end(ending)

    def abort(self) -> None:
        """Drop the connection at once."""
        self._closing = True
        self._stop_timer()
        self._transport.abort()

    # handshake

    def _receive_handshake(self, received: memoryview) -> None:
        if not self._began:
            self._began = True
            if received[0] != HANDSHAKE_RECORD:
                self._connection.reject_plaintext(bytes(received[:16]))
                return
        self._channel.receive(received)
        self._waits = True
        self._tls.handshakes.take(self._shake_hands)
        if self._waits:  # others came before
            self._transport.pause_reading()

    def _shake_hands(self) -> None:
        self._waits = False
        if self._closing:
            return
        if not self._paused and not self._transport.is_reading():
            self._transport.resume_reading()
        channel = self._channel
        try:
            established = channel.handshake()
            if established:
                self._connection.session.principal = self._tls.principal_of(channel)
                self._tls.record_login(self._connection.session)
        except TlsError as failure:
            self._tls.record_failure(self._connection.session, str(failure))
            self._connection.rejected("tls")
            self._fail(f"TLS handshake failed: {failure}")
            return
        self._send_pending()
        if established:
            self._stop_timer()
            self._deliver()  # the last message may have brought a request along

    def _too_slow(self) -> None:
        self._timer = None
        self._connection.close(
            f"TLS handshake not completed within {self._tls.handshake_s_max:g} s"
        )

    def _fail(self, reason: str) -> None:
        """Send the alert that OpenSSL has prepared, or the end of TLS, and close."""
        last = self._channel.pending_output()
        if self._channel.established:
            last += self._channel.close()
        self._closing = True
        self._stop_timer()
        self._connection.close(reason, cause="tls")
        self._end(last)

    # data

    def _receive(self, received: memoryview) -> None:
        """Decrypt in slices, so that no more is kept in memory than the connection has room for."""
        for position in range(0, len(received), RECEIVE_SLICE_BYTES):
            if self._paused:
                self._undelivered += bytes(received[position:])
                return
            self._channel.receive(received[position : position + RECEIVE_SLICE_BYTES])
            self._deliver()
            if self._closing:
                return

    def _deliver(self) -> None:
        """Hand decrypted bytes to the connection until none are left, or it pauses."""
        channel, connection = self._channel, self._connection
        try:
            while not (self._paused or self._closing):
                count = channel.read_into(connection.get_buffer(-1))
                if not count:
                    break
                connection.buffer_updated(count)
        except TlsError as failure:
            self._fail(f"TLS: {failure}")
            return
        if self._closing:
            return
        self._send_pending()  # a response to a key update, for example
        if channel.ended and not self._paused:
            self.close()

    def _continue(self) -> None:
        """Deliver what arrived while the connection was paused, then read on."""
        if self._paused or self._closing:
            return
        if self._channel.established:
            self._deliver()
        held, self._undelivered = self._undelivered, b""
        if held and not self._closing:
            self._receive(memoryview(held))
        if not (self._paused or self._closing or self._waits):
            self._transport.resume_reading()

    def _send_pending(self) -> None:
        output = self._channel.pending_output()
        if output:
            self._transport.write(output)

    # the end

    def _end(self, last: bytes) -> None:
        if last:
            self._transport.write(last)
        self._transport.close()
        self._after(CLOSE_S_MAX, self._transport.abort)

    def _after(self, delay_s: float, act: Any) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, act)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
