"""Whole batches of a part of a file, chunk by chunk in one buffer."""

from __future__ import annotations

from barnabas.kernels import HEADER_SIZE, BatchHeader, Buffer, scan_batch
from barnabas.kernels.batch_header import MESSAGE_MIN
from barnabas.log.files import File
from barnabas.model.errors import CorruptRecordError
from barnabas.records.conversion import take_batch
from barnabas.records.message_set import is_message, scan_message


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

    def whole(self) -> BatchHeader | None:
        """Return the header of the next batch if all of it is in the buffer."""
        header = self._header()
        return header if header is not None and header.size <= self.filled - self.at else None

    def _header(self) -> BatchHeader | None:
        """Return the header of the next batch, or entry of older formats, if it is there."""
        available = self.filled - self.at
        if available >= MESSAGE_MIN and is_message(self.buffer, self.at):
            return scan_message(self.buffer, self.at, self.filled)
        if available < HEADER_SIZE:
            return None
        return scan_batch(self.buffer, self.at, self.filled)

    def take_old(self, *, packed: bool) -> Buffer:
        """Return the next entry, which is whole and of an older format, as a batch, and advance.
        Uncompressed messages that follow each other become one batch. With `packed` a batch is
        compressed like its wrapper.
        """
        batch, self.at = take_batch(self.buffer, self.at, self.filled, packed=packed)
        return batch

    def fill(self) -> int:
        """Read more, growing the buffer if the next batch needs it; return how much was read."""
        header = self._header()
        self._position += self.at
        self.at = 0
        left = self._end - self._position
        needed = min(HEADER_SIZE, left) if header is None else header.size
        if needed > left or left < MESSAGE_MIN:
            raise CorruptRecordError(f"{left} bytes of an unfinished batch in {self._file.path}")
        if needed > len(self.buffer):
            self.buffer = bytearray(needed)
        wanted = min(len(self.buffer), left)
        self.filled = self._file.pread_into(memoryview(self.buffer)[:wanted], self._position)
        if self.filled < needed:
            raise CorruptRecordError(f"{self._file.path} ends {needed - self.filled} bytes early")
        if self._header() is None:
            raise CorruptRecordError(f"{left} bytes of an unfinished batch in {self._file.path}")
        return self.filled
