"""The hosted partitions: one way to append, one way to wait, and everyone woken who must be."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.log.conftest import FaultyFiles

from barnabas.broker.loop import WheelTimer
from barnabas.broker.partitions.fetch_sessions import FetchSessions
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.partition_log import PartitionLog
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role

NOW = 1_700_000_000_000
NONE, NOT_LEADER = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER


class House:
    """Partitions of broker 0, with notes of what they called."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.timer = WheelTimer(asyncio.get_running_loop())
        self.checks = 0
        self.follower_flushes: list[Partition] = []
        self.failures: list[tuple[str, int]] = []
        self.settled: list[tuple[str, ErrorCode]] = []
        self.done = 0
        self.partitions = HostedPartitions(
            self.timer,
            None,
            lambda: NOW,
            FetchSessions(10, lambda: 1),
            check_silence=self._check,
            on_follower_flushed=self.follower_flushes.append,
            on_storage_failure=lambda key, failure: self.failures.append(key),
        )

    def _check(self) -> None:
        self.checks += 1

    def host(self, number: int, *replicas: int, **options: object) -> Partition:
        key = TopicPartition("t", number)
        topic_options = TopicOptions.parse(
            {name.replace("_", "."): str(value) for name, value in options.items()}
        )
        path = f"{self._directory}/{key}"
        log = PartitionLog.open(FilePool(FaultyFiles()), path, key, topic_options, NOW)
        partition = self.partitions[key] = Partition(key, b"i" * 16, log, 0)
        partition.assume(Role(0, 0, replicas or (0,), replicas or (0,)))
        return partition

    def append(self, partition: Partition, acks: int = -1) -> int:
        batch = bytearray(build_batch([(NOW, b"k", b"v")]))
        return self.partitions.append(partition, batch, acks, 9, NOW).last_offset + 1

    def wait(self, *waits: tuple[Partition, int, str], **more: object) -> None:
        def settle(_: Partition, name: str, code: ErrorCode) -> None:
            self.settled.append((name, code))

        def done() -> None:
            self.done += 1

        self.operation = self.partitions.when_safe(
            list(waits),
            self.timer.now_ms() + 1000,
            done,
            settle=settle,
            **more,  # type: ignore[arg-type]
        )


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[House], object]], None]:
    def run(story: Callable[[House], object]) -> None:
        async def inside() -> None:
            house = House(tmp_path)
            result = story(house)
            if asyncio.iscoroutine(result):
                await result
            await house.partitions.flusher.drain()
            house.timer.stop()

        asyncio.run(inside())

    return run


Play = Callable[[Callable[[House], object]], None]


def test_what_is_safe_is_done_at_once(play: Play) -> None:
    def story(house: House) -> None:
        partition = house.host(0)
        house.wait((partition, house.append(partition), "a"))
        assert (house.settled, house.done) == ([("a", NONE)], 1)
        assert house.operation.completed
        house.wait()
        assert house.done == 2, "nothing to wait for"

    play(story)


def test_each_append_is_settled_when_it_is_safe_and_all_are_done_together(play: Play) -> None:
    def story(house: House) -> None:
        first, second = house.host(0, 0, 1), house.host(1, 0, 1)
        house.wait((first, house.append(first), "a"), (second, house.append(second), "b"))
        assert len(house.partitions.produce_purgatory) == 1
        assert second.follower_fetched(1, -1, 1, 0)
        house.partitions.watermark_rose(second)
        assert (house.settled, house.done) == ([("b", NONE)], 0)
        first.resign()
        house.partitions.role_changed(first.topic_partition)
        assert (house.settled, house.done) == ([("b", NONE), ("a", NOT_LEADER)], 1)

    play(story)


def test_the_deadline_settles_the_rest(play: Play) -> None:
    def story(house: House) -> None:
        partition, alone = house.host(0, 0, 1), house.host(1)
        house.wait((partition, house.append(partition), "a"), (alone, house.append(alone), "b"))
        house.timer.wheel.run(house.timer.now_ms() + 900)
        assert (house.settled, house.done) == ([("b", NONE)], 0)
        house.timer.wheel.run(house.timer.now_ms() + 1100)
        assert house.done == 1
        assert house.settled == [("b", NONE), ("a", ErrorCode.REQUEST_TIMED_OUT)]

    play(story)


def test_acks_1_waits_for_the_flush_and_not_for_followers(play: Play) -> None:
    async def story(house: House) -> None:
        partition = house.host(0, 0, 1, flush_messages=1)
        required = house.append(partition, acks=1)
        assert partition.flush_owed
        house.wait((partition, required, "leader"), acks=1)
        house.wait((partition, required, "all"))
        assert house.settled == []
        await house.partitions.flusher.drain()
        assert (house.settled, house.done, house.checks) == ([("leader", NONE)], 1, 1)

    play(story)


def test_stale_waits_are_done_unsettled(play: Play) -> None:
    def story(house: House) -> None:
        partition = house.host(0, 0, 1)
        stale: list[bool] = []
        house.wait((partition, house.append(partition), "a"), is_stale=lambda: bool(stale))
        house.partitions.appended(partition)
        assert house.done == 0
        stale.append(True)
        house.partitions.appended(partition)
        assert (house.settled, house.done) == ([], 1)

    play(story)


def test_flushes_of_followers_and_of_deleted_partitions(play: Play) -> None:
    def story(house: House) -> None:
        followed, deleted = house.host(0, 0, 1), house.host(1)
        followed.assume(Role(1, 1, (0, 1), (0, 1)))
        del house.partitions[deleted.topic_partition]
        failure = StorageError("cannot flush")
        failure.__cause__ = OSError(errno.EIO, "gone")
        for partition in (followed, deleted):
            house.partitions.flushed(partition)
            house.partitions.flush_failed(partition, failure)
        assert house.follower_flushes == [followed]
        assert house.failures == [("t", 0)]
        house.partitions.append_failed(followed, failure)
        house.partitions.read_failed(TopicPartition("t", 7), failure)
        assert house.failures == [("t", 0), ("t", 0), ("t", 7)]

    play(story)
