"""A range of one segment's file that a reader may send: bytes on demand, or a descriptor for zero
copy.

A slice pins its file: it stays open and readable, also when the segment is deleted meanwhile, until
`release`. A truncation below it can still take its bytes away; then a read comes back short.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.kernels.batch_header import BatchHeader
from barnabas.log.file_pool import PooledFile
from barnabas.log.files import File
from barnabas.log.scan import headers
from barnabas.records.batch import Record, read_batch


class Slice:
    """What `PartitionLog.read` found; `size` 0 means nothing to read now."""

    __slots__ = (
        "_file",
        "_pooled",
        "first_batch_size",
        "may_begin_void",
        "position",
        "segment_base_offset",
        "size",
    )

    def __init__(
        self,
        pooled: PooledFile | None,
        position: int,
        size: int,
        first_batch_size: int,
        segment_base_offset: int,
        may_begin_void: bool = False,
    ) -> None:
        """Pin a stretch; say whether its first batch may hold nothing for a consumer."""
        self._pooled = pooled
        self._file: File | None = None if pooled is None else pooled.pin()
        self.position = position
        self.size = size
        self.first_batch_size = first_batch_size
        self.segment_base_offset = segment_base_offset
        self.may_begin_void = may_begin_void

    def __len__(self) -> int:
        return self.size

    @property
    def first_batch_incomplete(self) -> bool:
        """Whether the byte limit cuts even the first batch, so that a reader makes no progress."""
        return self.size < self.first_batch_size

    def headers(self) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position in the file, header) of the whole batches."""
        if self._file is not None:
            yield from headers(self._file, self.position, self.position + self.size)

    def read_batch(self, position: int, header: BatchHeader) -> Iterator[Record]:
        """Yield the records of one of the batches."""
        if self._file is not None:
            data = self._file.pread(header.size, position)
            yield from read_batch(data, header)

    def read(self) -> bytes:
        """Return the bytes; may run on another thread."""
        return b"" if self._file is None else self._file.pread(self.size, self.position)

    def fileno(self) -> int | None:
        """Return the descriptor for zero-copy sending, None when there is none."""
        return None if self._file is None else self._file.fileno()

    def release(self) -> None:
        """Unpin the file, after which nothing can be read. Repeating it is a no-op."""
        pooled, self._pooled = self._pooled, None
        if pooled is not None:
            self._file = None
            pooled.unpin()
