"""Walks over batches: in a file by header only or checked, or as they came from a leader.

Those over a file stop at the end they are given, which lies on a batch boundary unless the file
was torn. The checked walk also stops at the first byte that cannot be a batch; `torn` says whether
a crash can have left it so.

Entries of older formats (magic 0 and 1) are batches, too, with the header that
`records/message_set.py` gives them. They are looked for where there is no batch of magic 2, so that
those cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from barnabas.kernels import check_batch, scan_batch
from barnabas.kernels.batch_header import (
    HEADER_SIZE,
    MESSAGE_MIN,
    PREFIX_SIZE,
    BatchHeader,
    offset_at,
    size_at,
)
from barnabas.log.files import Data, File
from barnabas.model.errors import CorruptRecordError
from barnabas.records import conversion
from barnabas.records.compression import TooLargeError
from barnabas.records.entry_search import entry_size
from barnabas.records.message_set import check_message, is_message, scan_message

HEADER_CHUNK = 16 * 1024
CHECK_CHUNK = 4 * 1024 * 1024


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of the whole batches from position to end.

    Reads in chunks that begin at a header, so large batches cost one small read each and small
    ones share a read. Raises CorruptRecordError where there is no batch. A wrapper of older formats
    is said to begin behind the entry before it; only the first one is unpacked to know.
    """
    chunk, start = b"", position
    before: BatchHeader | None = None
    while end - position >= MESSAGE_MIN:
        at = position - start
        if at + HEADER_SIZE > len(chunk) and start + len(chunk) < end:
            chunk, start = file.pread(min(HEADER_CHUNK, end - position), position), position
            at = 0
        try:
            header = scan_batch(chunk, at)
        except CorruptRecordError:
            if not is_message(chunk, at):
                if end - position < HEADER_SIZE:
                    return
                raise
            header = scan_message(chunk, at)
            if header.is_compressed and header.size <= end - position:
                if before is None:
                    first = _first_offset(file.pread(header.size, position), header)
                else:
                    first = before.next_offset
                header = header.starting_at(first)
        if header.size > end - position:
            return
        if header.last_offset_delta < 0:
            raise CorruptRecordError(f"batch at {position} has a negative last offset delta")
        yield position, header
        position += header.size
        before = header


def first_offset(data: Data) -> int:
    """Return the offset of the first record in batches, whose first one is whole."""
    if is_message(data):
        return conversion.first_offset(data)
    return offset_at(data)


def _first_offset(data: Data, header: BatchHeader) -> int:
    """Return where a wrapper begins; a lower bound, or its own offset, if it is not unpacked."""
    try:
        return conversion.first_offset(data)
    except TooLargeError:
        return max(
            0, header.base_offset - conversion.OFFSETS_MAX + 1
        )  # it is served as it is stored
    except CorruptRecordError:
        return header.base_offset  # a reader of an offset inside gets the error


def check_batches(data: Data, next_offset: int) -> tuple[list[BatchHeader], int]:
    """Return the header of the whole batches in memory, and their size in bytes.

    Checked are CRCs and that offsets go on from `next_offset`; a batch cut at the end is left out.
    """
    batches: list[BatchHeader] = []
    position = 0
    while len(data) - position >= PREFIX_SIZE:
        if size_at(data, position) > len(data) - position:
            break
        try:
            header = check_batch(data, position)
        except CorruptRecordError:
            if not is_message(data, position):
                raise
            header = check_message(data, position)
            if header.is_compressed:
                header = header.starting_at(next_offset)
        if header.base_offset < next_offset:
            raise CorruptRecordError(
                f"batch at offset {header.base_offset}, must be {next_offset} or later"
            )
        next_offset = header.base_offset + header.last_offset_delta + 1  # a property would show
        batches.append(header)
        position += header.size
    return batches, position


class _Refilled(Exception):
    """The buffer was refilled from the current position: read again at its start."""


def _unfinished(left: int) -> CorruptRecordError:
    return CorruptRecordError(f"{left} bytes of an unfinished batch")


class CheckedWalk:
    """An iteration over whole batches whose CRC is right, with their bytes at hand.

    While a batch is current, its bytes are `buffer[start : start + header.size]`. `position` is the
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

    def __iter__(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of each good batch."""
        at = 0
        header: BatchHeader | None = None
        while self.position < self._end:
            available = self._filled - at
            try:
                header = check_batch(self.buffer, at, self._filled)
            except CorruptRecordError as failure:
                try:
                    if available >= HEADER_SIZE and not is_message(self.buffer, at):
                        self._read_on(at, available, failure)
                    header = self._old(at, available, header)
                except _Refilled:
                    at = 0
                    continue
                except CorruptRecordError as damage:
                    self.flaw = str(damage)
                    return
            self.start = at
            position = self.position
            at += header.size
            self.position += header.size
            yield position, header

    def _read_on(self, at: int, available: int, failure: CorruptRecordError) -> NoReturn:
        """Read a batch that reaches beyond the buffer, and raise _Refilled; else the failure."""
        size = entry_size(bytes(self.buffer[at : at + HEADER_SIZE]))
        if size is None or size <= available:
            raise failure
        self._fill(size)
        raise _Refilled

    def _old(self, at: int, available: int, before: BatchHeader | None) -> BatchHeader:
        """Return the header of an entry of an older format; or read on, and raise _Refilled."""
        left = self._end - self.position
        if available < min(HEADER_SIZE, left):
            self._fill(min(HEADER_SIZE, left))
            raise _Refilled
        if not is_message(self.buffer, at) or available < MESSAGE_MIN:
            raise _unfinished(left)
        size = scan_message(self.buffer, at, self._filled).size
        if size > available:
            self._fill(size)
            raise _Refilled
        header = check_message(self.buffer, at, at + size)
        if header.is_compressed:
            after = self._next_offset if before is None else before.next_offset
            header = header.starting_at(after)
        return header

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
