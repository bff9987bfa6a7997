"""What the tests of the log share: options by Kafka's names, batches, logs, a disk that fails."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log import partition_log
from barnabas.log.file_pool import FilePool
from barnabas.log.files import Data, DiskFile, DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch

NOW = 1_700_000_000_000


class FaultyFile(DiskFile):
    """A file whose writes stop when the disk's budget is used up."""

    __slots__ = ("disk",)
    disk: FaultyFiles

    def pwrite(self, data: Data, position: int) -> None:
        room = self.disk.room
        if room is not None and len(data) > room:
            super().pwrite(memoryview(data)[:room], position)
            self.disk.room = 0
            failure = OSError(errno.ENOSPC, "No space left on device")
            raise StorageError(f"cannot write {self.path}") from failure
        if room is not None:
            self.disk.room = room - len(data)
        super().pwrite(data, position)

    def flush(self) -> None:
        if self.disk.flush_fails:
            raise StorageError(f"cannot flush {self.path}")
        super().flush()


class FaultyFiles(DiskFiles):
    """A disk with `room` bytes left (None: enough), that can refuse to flush, or to read whole
    files whose names end in `unreadable`.
    """

    def __init__(self) -> None:
        self.room: int | None = None
        self.flush_fails = False
        self.unreadable: str | None = None
        self.opened = 0

    def read(self, path: str) -> bytes | None:
        if self.unreadable is not None and path.endswith(self.unreadable):
            raise StorageError(f"cannot read {path}")
        return super().read(path)

    def _wrap(self, file: DiskFile) -> FaultyFile:
        wrapped = FaultyFile(file.path, file._descriptor)
        wrapped.disk = self
        return wrapped

    def open(self, path: str, *, create: bool = False) -> FaultyFile:
        self.opened += 1
        return self._wrap(super().open(path, create=create))

    def _replace(self, path: str) -> FaultyFile:
        return self._wrap(super()._replace(path))


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture(autouse=True)
def _thorough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let logs check each append, which takes too long in production."""
    monkeypatch.setattr(partition_log, "THOROUGH", True)


@pytest.fixture
def pool(disk: FaultyFiles) -> FilePool:
    return FilePool(disk, limit=64)


@pytest.fixture
def options() -> Callable[..., TopicOptions]:
    """Topic options by Kafka's names, with underscores for dots."""

    def make(**overrides: Any) -> TopicOptions:
        return TopicOptions.parse({k.replace("_", "."): str(v) for k, v in overrides.items()})

    return make


@pytest.fixture
def batch() -> Callable[..., bytearray]:
    """A produced batch: `count` records of `size` bytes from timestamp `at` on, 1 ms apart."""

    def make(count: int = 1, size: int = 10, at: int = NOW, **identity: Any) -> bytearray:
        key = identity.pop("key", b"k")
        return bytearray(
            build_batch([(at + i, key, b"v" * size) for i in range(count)], **identity)
        )

    return make


@pytest.fixture
def open_log(pool: FilePool, tmp_path: Any, options: Any) -> Iterator[Callable[..., PartitionLog]]:
    """Open the log of t-0, again and again in the same directory."""
    opened: list[PartitionLog] = []

    def make(**settings: Any) -> PartitionLog:
        names = {k: settings.pop(k) for k in list(settings) if k in _ARGUMENTS}
        log = PartitionLog.open(
            pool, f"{tmp_path}/t-0", TopicPartition("t", 0), options(**settings), NOW, **names
        )
        opened.append(log)
        return log

    yield make
    for log in opened:
        log.release()


_ARGUMENTS = ("clean", "recovery_point", "log_start_offset", "topic_id", "random", "repair")


@pytest.fixture
def read_all() -> Callable[..., list[tuple[int, bytes | None]]]:
    """All (offset, value) that a reader gets who asks again after every answer."""

    def read(
        log: PartitionLog, offset: int | None = None, max_bytes: int = 1 << 20, **bounds: Any
    ) -> list[tuple[int, bytes | None]]:
        position = log.log_start_offset if offset is None else offset
        found: list[tuple[int, bytes | None]] = []
        while True:
            piece = log.read(position, max_bytes, **bounds)
            data = piece.read()
            piece.release()
            headers = read_headers(data)
            if not headers:
                return found
            found += [(r.offset, r.value) for r in iterate(data) if r.offset >= position]
            position = headers[-1].next_offset

    return read
