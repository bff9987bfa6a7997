"""Grouped flushes: one round at a time, everyone who asked meanwhile in the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from tests.unit.broker.test_loop import settle
from tests.unit.log.conftest import FaultyFile, FaultyFiles

from barnabas.broker.partitions.flusher import Flusher
from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.partition_log import PartitionLog
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role

NOW = 1_700_000_000_000


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Partition]:
    """Make led partitions on one disk."""

    def partition(number: int, disk: FaultyFiles, **options: object) -> Partition:
        key = TopicPartition("t", number)
        topic_options = TopicOptions.parse(
            {name.replace("_", "."): str(value) for name, value in options.items()}
        )
        log = PartitionLog.open(FilePool(disk), f"{tmp_path}/{key}", key, topic_options, NOW)
        made = Partition(key, b"i" * 16, log, 0)
        made.assume(Role(0, 0, (0,), (0,)))
        return made

    return partition


def append(partition: Partition, size: int = 10) -> None:
    partition.append(bytearray(build_batch([(NOW, b"k", bytes(size))])), 1, 9, NOW)


def test_rounds(make: Callable[..., Partition]) -> None:
    """What is asked for during a round is flushed in the next, once."""

    async def story() -> None:
        disk = FaultyFiles()
        partitions = [make(number, disk, flush_messages=1) for number in range(3)]
        flushed: list[int] = []
        with ThreadPoolExecutor(1) as executor:
            gate = Event()
            executor.submit(gate.wait)  # the first round cannot begin before this ends
            flusher = Flusher(
                executor,
                lambda: NOW,
                lambda partition: flushed.append(partition.topic_partition.partition),
                lambda partition, failure: pytest.fail(f"{failure}"),
            )
            append(partitions[0])
            flusher.request(partitions[0])
            await asyncio.sleep(0)
            for partition in partitions:
                append(partition)
                flusher.request(partition)
                flusher.request(partition)
            gate.set()
            await flusher.drain()
        assert flushed == [0, 0, 1, 2]
        for partition in partitions:
            assert partition.log.recovery_point == partition.log.log_end_offset
            partition.log.release()

    asyncio.run(story())


def test_finished_segments(make: Callable[..., Partition]) -> None:
    """Only what is no longer written to is flushed; a later full request wins."""

    async def story() -> None:
        partition = make(0, FaultyFiles(), segment_bytes=1100)
        for _ in range(3):
            append(partition, 1000)
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, lambda: NOW, lambda _: None, lambda *_: None)
            assert partition.log.has_finished_segment_to_flush
            flusher.request_finished(partition)
            await flusher.drain()
            assert partition.log.recovery_point == 2
            flusher.request(partition)
            flusher.request_finished(partition)
            await flusher.drain()
            assert partition.log.recovery_point == 3
        partition.log.release()

    asyncio.run(story())


def test_failures_are_told_one_by_one(make: Callable[..., Partition]) -> None:
    """One disk that fails does not keep the others from being flushed."""

    async def story() -> None:
        good, bad = FaultyFiles(), FaultyFiles()
        partitions = [make(0, bad), make(1, good)]
        flushed: list[Partition] = []
        failed: list[tuple[Partition, StorageError]] = []
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(
                executor, lambda: NOW, flushed.append, lambda p, f: failed.append((p, f))
            )
            bad.flush_fails = True
            for partition in partitions:
                append(partition)
                flusher.request(partition)
            await flusher.drain()
            assert flushed == [partitions[1]]
            assert [partition for partition, _ in failed] == [partitions[0]]
            assert partitions[0].log.recovery_point == 0
            bad.flush_fails = False
            flusher.request(partitions[0])
            await flusher.drain()
            assert partitions[0].log.recovery_point == 1
        for partition in partitions:
            partition.log.release()

    asyncio.run(story())


def test_deleted_partitions(make: Callable[..., Partition]) -> None:
    """One that is forgotten before its round does not spoil the round of the others."""

    async def story() -> None:
        disk = FaultyFiles()
        deleted, kept = make(0, disk), make(1, disk)
        flushed: list[Partition] = []
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, lambda: NOW, flushed.append, lambda *_: None)
            for partition in (deleted, kept):
                append(partition)
                flusher.request(partition)
            deleted.log.mark_deleted(deleted.log.directory + ".x-delete")
            flusher.forget(deleted)
            await flusher.drain()
            assert flushed == [kept]
        kept.log.release()

    asyncio.run(story())


def test_nothing_to_flush(make: Callable[..., Partition]) -> None:
    """A request for a log that is flushed already costs nothing."""

    async def story() -> None:
        partition = make(0, FaultyFiles())
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, lambda: NOW, lambda _: None, lambda *_: None)
            append(partition)
            for _ in range(2):
                flusher.request(partition)
                await flusher.drain()
            await flusher.drain()
            assert partition.log.recovery_point == 1
        partition.log.release()

    asyncio.run(story())


def test_a_file_that_cannot_be_opened(make: Callable[..., Partition]) -> None:
    """Its log is told of, the others of the round are flushed, and nothing stays open for it."""

    class Closed(FaultyFiles):
        refused = False

        def open(self, path: str, *, create: bool = False) -> FaultyFile:
            if self.refused and path.endswith("/t-0/00000000000000000002.log"):
                raise StorageError(f"cannot open {path}")
            return super().open(path, create=create)

    async def story() -> None:
        disk = Closed()
        partitions = [make(number, disk, segment_bytes=1100) for number in range(2)]
        flushed: list[Partition] = []
        failed: list[Partition] = []
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, lambda: NOW, flushed.append, lambda p, _: failed.append(p))
            for partition in partitions:
                for _ in range(3):
                    append(partition, 1000)
            pool = partitions[0].log.segments[0].pool
            while pool.open_count:  # as others do who need room
                pool._make_room()
            disk.refused = True
            for partition in partitions:
                flusher.request(partition)
            await flusher.drain()
            assert failed == [partitions[0]]
            assert flushed == [partitions[1]]
            assert [segment.file.pins for segment in partitions[0].log.segments] == [0, 0, 0]
            disk.refused = False
            flusher.request(partitions[0])
            await flusher.drain()
            assert partitions[0].log.recovery_point == 3
        for partition in partitions:
            partition.log.release()

    asyncio.run(story())


def test_abandoned_rounds_end(make: Callable[..., Partition]) -> None:
    """No thread is left at the files of a broker that was given up; what it flushed counts."""

    class Slow(FaultyFiles):
        begun, gate = Event(), Event()

        def flush_file(self, path: str) -> bool:
            self.begun.set()
            self.gate.wait()
            return super().flush_file(path)

    async def story() -> None:
        disk = Slow()
        partition = make(0, disk)
        append(partition)
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(executor, lambda: NOW, lambda _: None, lambda *_: None)
            flusher.request(partition)
            await asyncio.to_thread(disk.begun.wait)
            ending = asyncio.get_running_loop().create_task(flusher.abandon())
            await settle()
            assert not ending.done()
            disk.gate.set()
            await ending
            assert partition.log.recovery_point == 1
            assert [segment.file.pins for segment in partition.log.segments] == [0]
            append(partition)  # by a client that is not disconnected yet
            flusher.request(partition)
            await flusher.drain()
            assert partition.log.recovery_point == 1
        partition.log.release()

    asyncio.run(story())
