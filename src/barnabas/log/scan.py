"""Walks over batches: in a file by header only or checked, or as they came from a leader.

Those over a file stop at the end they are given, which lies on a batch boundary unless the file
was torn. The checked walk also stops at the first byte that cannot be a batch; `torn` tells whether
a crash can have left it so.

Entries of older formats (magic 0 and 1) are batches, too, with the header fields that
`records/message_set.py` gives them. They are looked for where there is no batch of magic 2, so that
those cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.kernels import CODEC_MASK, check_batch, scan_batch
from barnabas.kernels.contract import HEADER_SIZE, PREFIX_SIZE, HeaderFields
from barnabas.log.files import Data, File
from barnabas.model.errors import CorruptRecordError
from barnabas.records import conversion
from barnabas.records.compression import TooLargeError
from barnabas.records.message_set import (
    MESSAGE_MIN,
    check_message,
    is_message,
    scan_message,
    starting_at,
)

HEADER_CHUNK = 16 * 1024
CHECK_CHUNK = 4 * 1024 * 1024


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, HeaderFields]]:
    """Yield (position, header fields) of the whole batches from position to end.

    Reads in chunks that begin at a header, so large batches cost one small read each and small
    ones share a read. Raises CorruptRecordError where there is no batch. A wrapper of older formats
    is said to begin behind the entry before it; only the first one is unpacked to know.
    """
    chunk, start = b"", position
    before: HeaderFields | None = None
    while end - position >= MESSAGE_MIN:
        at = position - start
        if at + HEADER_SIZE > len(chunk) and start + len(chunk) < end:
            chunk, start = file.pread(min(HEADER_CHUNK, end - position), position), position
            at = 0
        try:
            fields = scan_batch(chunk, at)
        except CorruptRecordError:
            if not is_message(chunk, at):
                if end - position < HEADER_SIZE:
                    return
                raise
            fields = scan_message(chunk, at)
            if fields[5] & CODEC_MASK and fields[1] <= end - position:
                if before is None:
                    first = _first_offset(file.pread(fields[1], position), fields)
                else:
                    first = before[0] + before[6] + 1
                fields = starting_at(fields, first)
        if fields[1] > end - position:
            return
        if fields[6] < 0:
            raise CorruptRecordError(f"a batch at {position} that ends before it begins")
        yield position, fields
        position += fields[1]
        before = fields


def first_offset(data: Data) -> int:
    """Return the offset of the first record in batches, whose first one is whole."""
    if is_message(data):
        return conversion.first_offset(data)
    return int.from_bytes(data[:8], "big", signed=True)


def _first_offset(data: Data, fields: HeaderFields) -> int:
    """Return where a wrapper begins; a lower bound, or its own offset, if it is not unpacked."""
    try:
        return conversion.first_offset(data)
    except TooLargeError:
        return max(0, fields[0] - conversion.OFFSETS_MAX + 1)  # it is served as it is stored
    except CorruptRecordError:
        return fields[0]  # whoever asks for an offset inside is told that it cannot be read


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
        try:
            fields = check_batch(data, position)
        except CorruptRecordError:
            if not is_message(data, position):
                raise
            fields = check_message(data, position)
            if fields[5] & CODEC_MASK:
                fields = starting_at(fields, next_offset)
        if fields[0] < next_offset:
            raise CorruptRecordError(f"offset {fields[0]} where {next_offset} must follow")
        next_offset = fields[0] + fields[6] + 1
        batches.append(fields)
        position += fields[1]
    return batches, position


class _Refilled(Exception):
    """The buffer was filled from the present position on: look again at its start."""


def _unfinished(left: int) -> CorruptRecordError:
    return CorruptRecordError(f"{left} bytes of an unfinished batch")


class CheckedWalk:
    """An iteration over whole batches whose CRC is right, with their bytes at hand.

    While a batch is current, its bytes are `buffer[start : start + fields[1]]`. `position` is the
    file position after the last good batch; `flaw` says why the walk stopped before `end`, if it
    did.
    """

    def __init__(
        self,
        file: File,
        position: int,
        end: int,
        chunk: int = CHECK_CHUNK,
        *,
        next_offset: int = 0,
    ) -> None:
        """Describe a walk; `next_offset` is where a wrapper of older formats begins at the least,
        if the walk begins with one.
        """
        self.position = position
        self.flaw: str | None = None
        self.start = 0
        self.buffer = bytearray(min(chunk, end - position))
        self._file = file
        self._end = end
        self._filled = 0
        self._next_offset = next_offset

    def __iter__(self) -> Iterator[tuple[int, HeaderFields]]:
        """Yield (position, header fields) of each good batch."""
        at = 0
        fields: HeaderFields | None = None
        while self.position < self._end:
            available = self._filled - at
            try:
                size = scan_batch(self.buffer, at, self._filled)[1]
                if size > available:
                    self._fill(size)
                    at = 0
                    continue
                fields = check_batch(self.buffer, at, at + size)
            except CorruptRecordError as failure:
                if available >= HEADER_SIZE and not is_message(self.buffer, at):
                    self.flaw = str(failure)
                    return
                try:
                    fields = self._old(at, available, fields)
                except _Refilled:
                    at = 0
                    continue
                except CorruptRecordError as damage:
                    self.flaw = str(damage)
                    return
            self.start = at
            position = self.position
            at += fields[1]
            self.position += fields[1]
            yield position, fields

    def _old(self, at: int, available: int, before: HeaderFields | None) -> HeaderFields:
        """Return the fields of an entry of an older format; or read on, and raise _Refilled."""
        left = self._end - self.position
        if available < min(HEADER_SIZE, left):
            self._fill(min(HEADER_SIZE, left))
            raise _Refilled
        if not is_message(self.buffer, at) or available < MESSAGE_MIN:
            raise _unfinished(left)
        size = scan_message(self.buffer, at, self._filled)[1]
        if size > available:
            self._fill(size)
            raise _Refilled
        fields = check_message(self.buffer, at, at + size)
        if fields[5] & CODEC_MASK:
            after = self._next_offset if before is None else before[0] + before[6] + 1
            fields = starting_at(fields, after)
        return fields

    def _fill(self, size: int) -> None:
        """Read the file from the present position into the buffer, at least `size` bytes."""
        if size > self._end - self.position:
            raise _unfinished(self._end - self.position)
        if size > len(self.buffer):
            self.buffer = bytearray(size)
        wanted = min(len(self.buffer), self._end - self.position)
        self._filled = self._file.pread_into(memoryview(self.buffer)[:wanted], self.position)
        if self._filled < size:
            raise CorruptRecordError(f"the file ends {size - self._filled} bytes too early")
