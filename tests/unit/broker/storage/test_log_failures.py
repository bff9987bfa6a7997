"""Log directories of which some fail: their partitions go offline, the others are served."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    metadata,
    produce,
    values_of,
    wait_for,
)

from barnabas.broker.storage.log_failures import directory_is_lost
from barnabas.log.files import Data, DiskFile, DiskFiles
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import StorageError
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest


class BreakingFile(DiskFile):
    __slots__ = ("disk",)
    disk: BreakingFiles

    def pwrite(self, data: Data, position: int) -> None:
        self.disk.check(self.path)
        super().pwrite(data, position)

    def pread(self, size: int, position: int) -> bytes:
        self.disk.check(self.path)
        return super().pread(size, position)


class BreakingFiles(DiskFiles):
    """Directories in `broken` answer with EIO."""

    def __init__(self) -> None:
        self.broken: set[str] = set()

    def check(self, path: str) -> None:
        if any(path.startswith(each) for each in self.broken):
            raise StorageError(f"cannot use {path}") from OSError(errno.EIO, "Input/output error")

    def open(self, path: str, *, create: bool = False) -> BreakingFile:
        self.check(path)
        return self._wrap(super().open(path, create=create))

    def _replace(self, path: str) -> BreakingFile:
        self.check(path)
        return self._wrap(super()._replace(path))

    def _wrap(self, file: DiskFile) -> BreakingFile:
        wrapped = BreakingFile(file.path, file._descriptor)
        wrapped.disk = self
        return wrapped

    def make_dirs(self, path: str) -> None:
        self.check(path)
        super().make_dirs(path)

    def lock(self, path: str):  # type: ignore[no-untyped-def]
        self.check(path)
        return super().lock(path)


@pytest.fixture
def disk() -> BreakingFiles:
    return BreakingFiles()


@pytest.fixture
def serving(tmp_path: Path, disk: BreakingFiles) -> Iterator[Serving]:
    """A broker with three directories."""
    paths = ",".join(str(tmp_path / name) for name in "abc")
    with Serving(tmp_path, {"log.dirs": paths}, files=disk) as running:
        yield running


def place(serving: Serving, topic: str, partition: int = 0) -> str:
    """Return the directory that holds a partition."""
    logs = serving.broker.logs
    path = serving.inside(
        lambda: next(log.directory for log in logs.all if log.topic_partition == (topic, partition))
    )
    return str(Path(path).parent)


def described(serving: Serving) -> dict[str, int]:
    with serving.connect() as wire:
        answer = wire.ask(DescribeLogDirsRequest(topics=None))
    return {Path(each.log_dir).name: each.error_code for each in answer.results}


def make_topics(serving: Serving) -> dict[str, str]:
    """Create a topic in each directory; return them by the directory's name."""
    with serving.connect() as wire:
        for name in ("t0", "t1", "t2"):
            create_topic(wire, name)
            assert produce(wire, name, batch_of([f"{name} before"])).error_code == 0
    return {Path(place(serving, name)).name: name for name in ("t0", "t1", "t2")}


def test_new_logs_go_where_the_fewest_are(serving: Serving) -> None:
    assert set(make_topics(serving)) == {"a", "b", "c"}
    assert described(serving) == {"a": 0, "b": 0, "c": 0}


def test_failed_directory(serving: Serving, disk: BreakingFiles, tmp_path: Path) -> None:
    """Its partitions answer KAFKA_STORAGE_ERROR, the others go on, the controller is told."""
    topics = make_topics(serving)
    disk.broken.add(str(tmp_path / "b"))
    with serving.connect() as wire:
        for _ in range(2):
            refused = produce(wire, topics["b"], batch_of(["x"]), acks=-1)
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert fetch(wire, topics["b"]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        for name in (topics["a"], topics["c"]):
            assert produce(wire, name, batch_of(["after"]), acks=-1).error_code == 0
            assert values_of(fetch(wire, name)) == [f"{name} before".encode(), b"after"]
        assert described(serving) == {"a": 0, "b": ErrorCode.KAFKA_STORAGE_ERROR, "c": 0}
        for place_of, offline in (("a", []), ("b", [0])):
            [partition] = metadata(wire, topics[place_of]).topics[0].partitions
            assert partition.offline_replicas == offline
        # The controller has heard of it, and takes the leadership away.
        wait_for(
            lambda: metadata(wire, topics["b"]).topics[0].partitions[0].leader_id == -1,
            "nobody leads what is on the failed disk",
        )
        # New topics find a place; the partitions of the failed directory are not made anew there.
        create_topic(wire, "later", partitions=4)
        for number in range(4):
            assert produce(wire, "later", batch_of(["x"]), partition=number).error_code == 0
            assert Path(place(serving, "later", number)).name in "ac"
        again = produce(wire, topics["b"], batch_of(["x"]), acks=-1)
        assert again.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        ring = serving.broker.journal.ring
        [noted] = [e for e in serving.inside(lambda: list(ring)) if e.event == "directory.offline"]
        assert (noted.subject, noted.cause) == ("broker:0", "disk-error")
        assert noted.data["partitions"] == 1
        assert noted.data["directory"] in serving.broker.logs.offline
    assert any("is offline: partitions=1" in line for line in serving.lines.of())
    serving.lines.clear()


def test_directory_that_cannot_be_read_at_start(
    serving: Serving, disk: BreakingFiles, tmp_path: Path
) -> None:
    """The broker starts without it, and has everything again when the disk is back."""
    topics = make_topics(serving)
    serving.stop()
    disk.broken.add(str(tmp_path / "c"))
    serving.start()
    assert described(serving) == {"a": 0, "b": 0, "c": ErrorCode.KAFKA_STORAGE_ERROR}
    with serving.connect() as wire:
        assert metadata(wire, topics["c"]).topics[0].name == topics["c"]
        assert fetch(wire, topics["c"]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert values_of(fetch(wire, topics["b"])) == [f"{topics['b']} before".encode()]
    serving.lines.clear()
    serving.stop()
    disk.broken.clear()
    serving.start()
    assert described(serving) == {"a": 0, "b": 0, "c": 0}
    with serving.connect() as wire:
        assert values_of(fetch(wire, topics["c"])) == [f"{topics['c']} before".encode()]


def test_removed_directory(serving: Serving, tmp_path: Path) -> None:
    """A directory that is gone is noticed by the next checkpoint at the latest."""
    topics = make_topics(serving)
    (tmp_path / "c").rename(tmp_path / "elsewhere")
    import asyncio

    checkpoints = serving.broker.logs.write_checkpoints()
    asyncio.run_coroutine_threadsafe(checkpoints, serving.broker.loop).result(60)
    with serving.connect() as wire:
        refused = produce(wire, topics["c"], batch_of(["x"]))
        assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(wire, topics["a"], batch_of(["x"])).error_code == 0
    serving.lines.clear()


def test_no_directory_left(tmp_path: Path, disk: BreakingFiles) -> None:
    """A broker without any directory stops by itself and says so."""
    serving = Serving(tmp_path, files=disk).start()
    with serving.connect() as wire:
        create_topic(wire, "t")
        disk.broken.add(str(tmp_path))
        produce(wire, "t", batch_of(["x"]))
        lost = serving.broker.lost
        wait_for(lost.is_set, "the broker has given up")
    assert any(
        "all log directories have failed" in line for line in serving.lines.of(logging.CRITICAL)
    )
    serving.stop()


def test_the_directory_of_the_coordination_file(
    serving: Serving, disk: BreakingFiles, tmp_path: Path
) -> None:
    """Without the first directory a broker with embedded coordination knows no topics: it stops."""
    topics = make_topics(serving)
    disk.broken.add(str(tmp_path / "a"))
    with serving.connect() as wire:
        produce(wire, topics["a"], batch_of(["x"]))
        wait_for(serving.broker.lost.is_set, "the broker has given up")
    assert any("coordination file" in line for line in serving.lines.of(logging.CRITICAL))
    serving.lines.clear()


@pytest.mark.parametrize(
    ("number", "lost"),
    [
        (errno.EIO, True),
        (errno.EROFS, True),
        (errno.ENOENT, True),
        (errno.EACCES, True),
        (errno.ENOSPC, False),
        (errno.EDQUOT, False),
        (errno.EMFILE, False),
    ],
)
def test_which_refusals_are_the_disk_s_end(number: int, lost: bool) -> None:
    failure = StorageError("refused")
    failure.__cause__ = OSError(number, "refused")
    assert directory_is_lost(failure) is lost
    assert not directory_is_lost(StorageError("no cause"))
