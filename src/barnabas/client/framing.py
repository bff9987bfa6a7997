"""Split a byte stream into frames (a size of four bytes, then that many bytes).

`FrameReader` provides the memory that the next bytes are received into and returns whole
frames. Many small frames share one reused buffer and are copied out; a large frame is received
straight into memory of its own. Every frame returned is owned by the caller: no later read
touches it.
"""

from __future__ import annotations

import struct

from barnabas.model.errors import RemoteProtocolError

_SIZE = struct.Struct(">i")
_BUFFER_BYTES = 1 << 16


class FrameReader:
    """Collects bytes into frames of at most `frame_bytes_max`."""

    __slots__ = ("_buffer", "_filled", "_frame_bytes_max", "_large", "_large_filled", "_view")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._large: memoryview | None = None
        self._large_filled = 0

    def target(self) -> memoryview:
        """Return the memory for the next bytes; never empty."""
        if self._large is not None:
            return self._large[self._large_filled :]
        return self._view[self._filled :]

    def received(self, count: int) -> list[memoryview]:
        """Account for `count` bytes written to `target()` and return the frames now complete."""
        if self._large is not None:
            self._large_filled += count
            if self._large_filled < len(self._large):
                return []
            frame, self._large = self._large, None
            return [frame]
        self._filled += count
        return self._cut()

    def _cut(self) -> list[memoryview]:
        size = self._filled - 4
        if 0 <= size <= self._frame_bytes_max and _SIZE.unpack_from(self._buffer)[0] == size:
            frame = memoryview(
                bytes(self._view[4 : self._filled])
            )  # one whole frame, the usual case
            self._filled = 0
            return [frame]
        frames: list[memoryview] = []
        position = 0
        while self._filled - position >= 4:
            size = _SIZE.unpack_from(self._buffer, position)[0]
            if not 0 <= size <= self._frame_bytes_max:
                raise RemoteProtocolError(
                    f"frame of {size} bytes: must be at most {self._frame_bytes_max}"
                )
            end = position + 4 + size
            if end > self._filled:
                if size > _BUFFER_BYTES // 2:
                    self._begin_large(position + 4, size)
                    return frames
                break
            frames.append(memoryview(bytes(self._view[position + 4 : end])))
            position = end
        self._filled -= position
        if not self._filled:
            return frames
        # bytearray slices copy, so moving the rest to the front cannot overlap itself.
        self._buffer[: self._filled] = self._buffer[position : position + self._filled]
        return frames

    def _begin_large(self, start: int, size: int) -> None:
        self._large = memoryview(bytearray(size))
        self._large_filled = self._filled - start
        self._large[: self._large_filled] = self._view[start : self._filled]
        self._filled = 0
