"""Whole batches of a stretch of a file, chunk by chunk in one buffer."""

from __future__ import annotations

from barnabas.kernels import HEADER_SIZE, HeaderFields, scan_batch
from barnabas.log.files import File
from barnabas.model.errors import CorruptRecordError


class BatchReader:
    """A cursor over batches: the next one begins at `buffer[at]`, as far as `filled` goes."""

    def __init__(self, file: File, position: int, end: int, buffer_bytes: int) -> None:
        self.at = self.filled = 0
        self._file = file
        self._position = position  # of buffer[0] in the file
        self._end = end
        self.buffer = bytearray(max(min(buffer_bytes, end - position), HEADER_SIZE))

    @property
    def done(self) -> bool:
        """Whether every batch was taken."""
        return self._position + self.at >= self._end

    def whole(self) -> HeaderFields | None:
        """Return the header of the next batch if all of it is in the buffer."""
        if self.filled - self.at < HEADER_SIZE:
            return None
        fields = scan_batch(self.buffer, self.at, self.filled)
        return fields if fields[1] <= self.filled - self.at else None

    def fill(self) -> int:
        """Read on, with a larger buffer if the next batch needs it; return how much was read."""
        needed = HEADER_SIZE
        if self.filled - self.at >= HEADER_SIZE:
            needed = scan_batch(self.buffer, self.at, self.filled)[1]
        self._position += self.at
        self.at = 0
        left = self._end - self._position
        if needed > left:
            raise CorruptRecordError(f"{left} bytes of an unfinished batch in {self._file.path}")
        if needed > len(self.buffer):
            self.buffer = bytearray(needed)
        wanted = min(len(self.buffer), left)
        self.filled = self._file.pread_into(memoryview(self.buffer)[:wanted], self._position)
        if self.filled < needed:
            raise CorruptRecordError(f"{self._file.path} ends {needed - self.filled} bytes early")
        return self.filled
