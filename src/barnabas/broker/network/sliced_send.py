"""Responses with file ranges on an encrypted connection: read, encrypted and sent in slices.

The kernel cannot send what this process must encrypt. So a file is read through one small buffer,
and only as fast as the client reads: a slow one holds no more than what its socket has room for.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.broker.network.zero_copy import BYTES, FileRange, Part, release

READ_BYTES = 64 * 1024


class SlicedSend:
    """The sending side of one encrypted connection for responses with file ranges."""

    def __init__(
        self,
        transport: asyncio.Transport,
        on_sent: Callable[[], None],
        on_lost: Callable[[], None],
        is_paused: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._on_sent = on_sent
        self._on_lost = on_lost
        self._is_paused = is_paused
        self._loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._parts: deque[Part] = deque()
        self._sent = 0  # bytes of the first part that are sent
        self._stepped_at = 0.0

    @property
    def stalled_since_ms(self) -> int | None:
        """Return when the client last read something, None if nothing waits for it."""
        return int(self._stepped_at * 1000) if self._parts else None

    def send(self, parts: Sequence[Part]) -> bool:
        """Send the parts in order; call `on_sent` when the last byte is with the transport.

        Return whether it already is.
        """
        self._parts.extend(parts)
        self._sent = 0
        return self.resume()

    def resume(self) -> bool:
        """Continue: the client has read what was written before; return whether that was all."""
        if not self._parts:
            return False
        self._stepped_at = self._loop.time()
        try:
            while self._parts:
                if self._is_paused() or self._transport.is_closing():
                    return False
                self._send_slice()
        except OSError:
            self._on_lost()
            return False
        self._on_sent()
        return True

    def close(self) -> None:
        """Stop, and release every range that was not sent."""
        release(self._parts)
        self._parts.clear()

    def _send_slice(self) -> None:
        part = self._parts[0]
        if isinstance(part, BYTES):
            size = len(part)
            piece = memoryview(part)[self._sent : self._sent + READ_BYTES]
        else:
            size = part.size
            piece = self._read(part)
        self._transport.write(piece)
        self._sent += len(piece)
        if self._sent == size:
            self._parts.popleft()
            self._sent = 0
            if not isinstance(part, BYTES):
                part.release()

    def _read(self, part: FileRange) -> memoryview:
        descriptor = part.fileno()
        if descriptor is None:  # not in a real file
            return memoryview(part.read())[self._sent : self._sent + READ_BYTES]
        room = self._buffer[: min(part.size - self._sent, READ_BYTES)]
        count = os.preadv(descriptor, [room], part.position + self._sent)
        if count == 0:
            raise OSError("the file was truncated while it was being sent")
        return room[:count]
