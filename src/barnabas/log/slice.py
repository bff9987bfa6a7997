"""A stretch of one segment's file that a reader may send: bytes on demand, or a descriptor for
zero copy.

A slice pins its file: it stays open and readable, also when the segment is deleted meanwhile, until
`release`. A truncation below it can still take its bytes away; then a read comes back short.
"""

from __future__ import annotations

from barnabas.log.file_pool import PooledFile
from barnabas.log.files import File


class Slice:
    """What `PartitionLog.read` found; `size` 0 means nothing to read now."""

    __slots__ = (
        "_file",
        "_pooled",
        "first_batch_size",
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
    ) -> None:
        self._pooled = pooled
        self._file: File | None = None if pooled is None else pooled.pin()
        self.position = position
        self.size = size
        self.first_batch_size = first_batch_size
        self.segment_base_offset = segment_base_offset

    def __len__(self) -> int:
        return self.size

    @property
    def first_batch_incomplete(self) -> bool:
        """Whether the byte limit cuts even the first batch, so that a reader gets nowhere."""
        return self.size < self.first_batch_size

    def read(self) -> bytes:
        """Return the bytes; may run on another thread."""
        return b"" if self._file is None else self._file.pread(self.size, self.position)

    def fileno(self) -> int | None:
        """Return the descriptor for zero-copy sending, None when there is none."""
        return None if self._file is None else self._file.fileno()

    def release(self) -> None:
        """Let the file go, after which nothing can be read. Calling it again is fine."""
        pooled, self._pooled = self._pooled, None
        if pooled is not None:
            self._file = None
            pooled.unpin()
