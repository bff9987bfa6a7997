"""A log that begins with another one's records: what is slow is done on any thread, and by whom."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.directory import LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.fork import Fork
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000
SOURCE, TARGET = TopicPartition("s", 0), TopicPartition("f", 0)
OPTIONS = TopicOptions.parse({"segment.bytes": "300", "preallocate": "true"})


class World:
    """A data directory with one log of several segments, and what is done with its files."""

    def __init__(self, count: int = 9) -> None:
        self.disk = SimulatedDisk(Random(0), lambda: NOW)
        self.directory = LogDirectory(FilePool(self.disk, limit=8), "/a")
        self.log = self.directory.open_log(SOURCE, OPTIONS, NOW, topic_id=b"s" * 16)
        for number in range(count):
            self.log.append_as_leader(
                bytearray(build_batch([(NOW + number, b"k", b"%d" % number)])), 1, NOW
            )
        self.log.set_high_watermark(count)
        self.log.flush(NOW)

    def fork(self, end: int) -> Fork:
        return Fork(self.directory, self.log, TARGET, b"f" * 16, end, "2" * 32)


def offsets(log: PartitionLog) -> list[int]:
    found: list[int] = []
    position = log.log_start_offset
    while position < log.log_end_offset:
        piece = log.read(position, 1000)
        data = piece.read()
        piece.release()
        found += [record.offset for record in iterate(data)]
        position = read_headers(data)[-1].next_offset
    return found


def test_settling_only_gives_it_its_name() -> None:
    """The thread that serves others reads and writes no batch, however much was copied."""
    world = World()
    fork = world.fork(4)
    fork.link(NOW)
    fork.copy(OPTIONS, NOW)
    fork.release()
    done: set[str] = set()
    world.disk.before = lambda operation, path: done.add(operation)
    log = fork.settle()
    world.disk.before = lambda operation, path: None
    assert done == {"rename", "flush_dir"}
    assert world.directory.logs[TARGET] is log
    assert offsets(log) == [0, 1, 2, 3]
    assert log.append_as_leader(bytearray(build_batch([(NOW, b"k", b"own")])), 2, NOW)[0] == 4
    assert offsets(world.log) == list(range(9))


def test_a_segment_that_another_broker_emptied() -> None:
    """Apache Kafka's compaction may leave nothing of a segment: what follows is forked, too."""
    world = World()
    world.directory.close(NOW)
    bases = [segment.base_offset for segment in world.log.segments]
    assert bases == [0, 4, 8]
    for suffix in (".log", ".index", ".timeindex"):
        world.disk.write(f"/a/s-0/{bases[1]:020d}{suffix}", b"")
    world.directory = LogDirectory(FilePool(world.disk, limit=8), "/a")
    world.directory.load(lambda topic: OPTIONS, NOW)
    world.log = world.directory.logs[SOURCE]
    expected = [*range(bases[1]), *range(bases[2], 9)]
    assert offsets(world.log) == expected
    fork = world.fork(9)
    fork.link(NOW)
    fork.copy(OPTIONS, NOW)
    fork.release()
    assert offsets(fork.settle()) == expected


@pytest.mark.parametrize("refused", ["link", "rename", "flush_dir", "flush_file", "write", "open"])
def test_a_fork_that_is_given_up_leaves_nothing(refused: str) -> None:
    """Wherever the disk refuses, what was made can be removed, and the same fork made again."""
    failures = 0
    for number in range(60):
        world = World()
        left = number

        def before(operation: str, path: str) -> None:
            nonlocal left
            if operation == refused:
                left -= 1
                if left == -1:
                    raise StorageError(f"cannot {operation} {path}")

        world.disk.before = before
        fork = world.fork(4)
        try:
            try:
                fork.link(NOW)
                fork.copy(OPTIONS, NOW)
            finally:
                fork.release()
            fork.settle()
        except StorageError:
            failures += 1
            world.directory.purge(fork.abandon())
        else:
            break
        assert [name for name in world.disk.list("/a") if name.startswith("f-0")] == []
        again = Fork(world.directory, world.log, TARGET, b"f" * 16, 4, "3" * 32)
        again.link(NOW)
        again.copy(OPTIONS, NOW)
        again.release()
        assert offsets(again.settle()) == [0, 1, 2, 3]
    assert failures
    assert left >= 0, "every operation of this kind was refused once"
