"""Walks over batches: in a file by header only or checked, or as they came from a leader.

Those over a file stop at the end they are given, which lies on a batch boundary unless the file
was torn. The checked walk also stops at the first byte that cannot be a batch; where it stopped is
where a torn file must be cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.kernels import check_batch, scan_batch
from barnabas.kernels.contract import HEADER_SIZE, PREFIX_SIZE, HeaderFields
from barnabas.log.files import Data, File
from barnabas.model.errors import CorruptRecordError

HEADER_CHUNK = 16 * 1024
CHECK_CHUNK = 4 * 1024 * 1024


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, HeaderFields]]:
    """Yield (position, header fields) of the whole batches from position to end.

    Reads in chunks that begin at a header, so large batches cost one small read each and small
    ones share a read. Raises CorruptRecordError where there is no batch.
    """
    chunk, start = b"", position
    while end - position >= HEADER_SIZE:
        if position - start + HEADER_SIZE > len(chunk):
            chunk, start = file.pread(min(HEADER_CHUNK, end - position), position), position
        fields = scan_batch(chunk, position - start)
        if fields[1] > end - position:
            return
        if fields[6] < 0:
            raise CorruptRecordError(f"a batch at {position} that ends before it begins")
        yield position, fields
        position += fields[1]


def check_batches(data: Data, next_offset: int) -> tuple[list[HeaderFields], int]:
    """Return the header fields of the whole batches in memory, and their size in bytes.

    Checked are CRCs and that offsets go on from `next_offset`; a batch cut at the end is left out.
    """
    batches: list[HeaderFields] = []
    position = 0
    while len(data) - position >= PREFIX_SIZE:
        length = int.from_bytes(data[position + 8 : position + PREFIX_SIZE], "big", signed=True)
        if length + PREFIX_SIZE > len(data) - position:
            break
        fields = check_batch(data, position)
        if fields[0] < next_offset:
            raise CorruptRecordError(f"offset {fields[0]} where {next_offset} must follow")
        next_offset = fields[0] + fields[6] + 1
        batches.append(fields)
        position += fields[1]
    return batches, position


class CheckedWalk:
    """An iteration over whole batches whose CRC is right, with their bytes at hand.

    While a batch is current, its bytes are `buffer[start : start + fields[1]]`. `position` is the
    file position after the last good batch; `flaw` says why the walk stopped before `end`, if it
    did.
    """

    def __init__(self, file: File, position: int, end: int, chunk: int = CHECK_CHUNK) -> None:
        self.position = position
        self.flaw: str | None = None
        self.start = 0
        self.buffer = bytearray(min(chunk, end - position))
        self._file = file
        self._end = end
        self._filled = 0

    def __iter__(self) -> Iterator[tuple[int, HeaderFields]]:
        """Yield (position, header fields) of each good batch."""
        at = 0
        while self.position < self._end:
            available = self._filled - at
            size = HEADER_SIZE
            try:
                if available >= HEADER_SIZE:
                    size = scan_batch(self.buffer, at, self._filled)[1]
                if size > available:
                    if self.position + size > self._end:
                        self.flaw = f"{self._end - self.position} bytes of an unfinished batch"
                        return
                    self._fill(size)
                    at = 0
                    continue
                fields = check_batch(self.buffer, at, at + size)
            except CorruptRecordError as failure:
                self.flaw = str(failure)
                return
            self.start = at
            position = self.position
            at += size
            self.position += size
            yield position, fields

    def _fill(self, size: int) -> None:
        """Read the file from the present position into the buffer, at least `size` bytes."""
        if size > len(self.buffer):
            self.buffer = bytearray(size)
        wanted = min(len(self.buffer), self._end - self.position)
        self._filled = self._file.pread_into(memoryview(self.buffer)[:wanted], self.position)
        if self._filled < size:
            raise CorruptRecordError(f"the file ends {size - self._filled} bytes too early")
