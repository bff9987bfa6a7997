"""Responses that are sent from a file to a socket without being copied into this process.

uvloop has no sendfile, so the bytes leave on a duplicate of the transport's descriptor. Nothing
else is written meanwhile, because a connection has one request in handling; what the transport
still holds is waited for first. `MSG_MORE` keeps a header and the data behind it in one packet.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, cast

from barnabas.wire.schema import Struct


class FileRange(Protocol):
    """A range of an open file; it stays readable until it is released."""

    position: int
    size: int

    def fileno(self) -> int | None:
        """Return the descriptor, or None when the bytes are not in a real file."""

    def read(self) -> bytes:
        """Return the bytes."""

    def release(self) -> None:
        """Release the file."""


Part = bytes | bytearray | memoryview | FileRange
"""A piece of a response: bytes, or a file range that may be sent without being copied."""

BYTES = (bytes, bytearray, memoryview)


def release(parts: Iterable[Part]) -> None:
    """Release every file range among the parts."""
    for part in parts:
        if not isinstance(part, BYTES):
            part.release()


def ranges_in(value: object) -> Iterator[FileRange]:
    """Find the file ranges anywhere in a message."""
    if isinstance(value, Struct):
        for field in value.FIELDS:
            yield from ranges_in(getattr(value, field.name))
    elif isinstance(value, list):
        for element in value:
            yield from ranges_in(element)
    elif hasattr(value, "release") and not isinstance(value, BYTES):
        yield cast(FileRange, value)


class ZeroCopySend:
    """The sending side of one connection for responses with file ranges."""

    def __init__(
        self,
        transport: asyncio.Transport,
        on_sent: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._on_sent = on_sent
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        descriptor = os.dup(transport.get_extra_info("socket").fileno())
        self._socket = socket.socket(fileno=descriptor)
        self._parts: deque[Part] = deque()
        self._sent = 0  # bytes of the first part that are sent
        self._waiting = False
        self._stepped_at = 0.0

    @property
    def stalled_since_ms(self) -> int | None:
        """Return when the client last read something, None if nothing waits for it."""
        return int(self._stepped_at * 1000) if self._waiting else None

    def send(self, parts: Sequence[Part]) -> bool:
        """Send the parts in order; call `on_sent` when the last byte is with the kernel.

        Return whether it already is.
        """
        self._parts.extend(parts)
        self._sent = 0
        return self._step()

    def close(self) -> None:
        """Stop, and release every range that was not sent."""
        self._stop_waiting()
        release(self._parts)
        self._parts.clear()
        self._socket.close()

    def _step(self) -> bool:
        """Send what the kernel has room for; return whether that was all."""
        if self._transport.is_closing() or self._socket.fileno() < 0:
            return False
        self._stepped_at = self._loop.time()
        if self._transport.get_write_buffer_size():
            self._wait()  # earlier responses are sent first
            return False
        try:
            while self._parts:
                self._send_first()
        except (BlockingIOError, InterruptedError):
            self._wait()
            return False
        except OSError:
            self._on_lost()
            return False
        self._stop_waiting()
        self._on_sent()
        return True

    def _send_first(self) -> None:
        part = self._parts[0]
        if isinstance(part, BYTES):
            left = len(part) - self._sent
            more = socket.MSG_MORE if len(self._parts) > 1 else 0
            count = self._socket.send(memoryview(part)[self._sent :], more)
        else:
            descriptor = part.fileno()
            assert descriptor is not None, (
                "file ranges without a descriptor are never sent zero-copy"
            )
            left = part.size - self._sent
            count = os.sendfile(self._socket.fileno(), descriptor, part.position + self._sent, left)
            if count == 0 and left:
                raise OSError("the file was truncated while it was being sent")
        self._sent += count
        if count == left:
            self._parts.popleft()
            self._sent = 0
            if not isinstance(part, BYTES):
                part.release()

    def _wait(self) -> None:
        """Continue when the socket is writable again."""
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._socket.fileno(), self._step)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._socket.fileno())
