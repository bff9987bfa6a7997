"""A bounded set of open files, so that ten thousand partitions do not need ten thousand
descriptors.

A `PooledFile` is opened on first use and may be closed again at any later opening of another one,
unless it is pinned. Nothing is buffered, so closing loses nothing. All calls are made by one
thread; a thread that works on a file in the background does so between a pin and an unpin made by
that one thread.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from barnabas.log.files import File, Files


class PooledFile:
    """One file that is open only while it is used or while there is room."""

    __slots__ = ("_file", "_pool", "_touched", "path", "pins")

    def __init__(self, pool: FilePool, path: str) -> None:
        self.path = path
        self.pins = 0
        self._pool = pool
        self._file: File | None = None
        self._touched = False

    def get(self) -> File:
        """Return the open file; it stays open at least until another one is asked for."""
        file = self._file
        if file is None:
            return self._pool._open(self)
        self._touched = True
        return file

    def pin(self) -> File:
        """Return the file and keep it open until `unpin`."""
        file = self._file
        if file is None:
            file = self._pool._open(self)
        else:
            self._touched = True
        self.pins += 1
        return file

    def unpin(self) -> None:
        """Undo one `pin`."""
        assert self.pins > 0, self.path
        self.pins -= 1
        if self.pins == 0 and self._pool is _CLOSED_POOL:
            self._shut()

    def close(self) -> None:
        """Close for good, or at the last unpin while it is still read."""
        self._pool._forget(self)
        self._pool = _CLOSED_POOL
        if self.pins == 0:
            self._shut()

    def _shut(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


class Droppable(Protocol):
    """Something that holds indexes which it can read again."""

    def drop_indexes(self) -> None:
        """Forget them, if that loses nothing."""
        ...


class LoadedIndexes:
    """Holders of indexes in memory; beyond the limit the oldest one drops its own."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._holders: dict[Droppable, None] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def add(self, holder: Droppable) -> None:
        """Record that `holder` has indexes in memory."""
        self._holders[holder] = None
        if len(self._holders) > self._limit:
            oldest = next(iter(self._holders))
            self.discard(oldest)
            oldest.drop_indexes()

    def discard(self, holder: Droppable) -> None:
        """Record that `holder` has none in memory."""
        self._holders.pop(holder, None)


class FilePool:
    """Opens files on demand and keeps at most `limit` open, pinned ones aside."""

    def __init__(self, files: Files, limit: int = 500, indexes: int = 500) -> None:
        """Bound the open files, and the segments whose indexes are kept in memory."""
        self.files = files
        self.limit = limit
        self.loaded_indexes = LoadedIndexes(indexes)
        self._opened: deque[PooledFile] = deque()

    def file(self, path: str) -> PooledFile:
        """Return a handle on a path, without opening it."""
        return PooledFile(self, path)

    @property
    def open_count(self) -> int:
        """How many files are open now."""
        return len(self._opened)

    def _open(self, pooled: PooledFile) -> File:
        if len(self._opened) >= self.limit:
            self._make_room()
        file = self.files.open(pooled.path)
        pooled._file = file
        self._opened.append(pooled)
        return file

    def _make_room(self) -> None:
        """Close a file that is neither pinned nor used since it was last looked at."""
        opened = self._opened
        for _ in range(2 * len(opened)):
            candidate = opened.popleft()
            if candidate.pins == 0 and not candidate._touched:
                candidate._shut()
                return
            candidate._touched = False
            opened.append(candidate)

    def _forget(self, pooled: PooledFile) -> None:
        if pooled._file is not None:
            self._opened.remove(pooled)


class _ClosedPool(FilePool):
    """The pool of closed handles: refuses to open them again."""

    def __init__(self) -> None:
        self.limit = 0
        self.loaded_indexes = LoadedIndexes(0)
        self._opened = deque()

    def _open(self, pooled: PooledFile) -> File:
        raise AssertionError(f"{pooled.path} was closed")

    def _forget(self, pooled: PooledFile) -> None:
        return


_CLOSED_POOL = _ClosedPool()
