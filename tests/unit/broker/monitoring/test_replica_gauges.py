"""Followers that cannot follow, and fetchers: as their broker sees them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.monitoring.scraping import scraped
from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import batch_of

from barnabas.broker.broker import Broker
from barnabas.coordination.memory import MemoryStore
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.errors import CorruptRecordError
from barnabas.model.ids import TopicPartition

T0 = TopicPartition("t", 0)


def fetchers(of: Broker) -> dict[str, float]:
    prefix = "kafka_server_replicafetchermanager_"
    return {
        name.removeprefix(prefix).partition("{")[0]: value
        for name, value in scraped(of.metrics).items()
        if name.startswith(prefix)
    }


def append(leader: Broker, *values: str) -> None:
    batch = bytearray(batch_of(values))
    leader.partitions.append(leader.partitions[T0], batch, 1, 9, leader.now_ms())


def test_a_follower_that_rejects_records_is_failed_and_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        store = MemoryStore()
        # The lag time is short, so that the leader goes on without the follower.
        slow = {"replica_lag_time_max_ms": "300"}
        leader, follower = (broker(store, tmp_path, number, **slow) for number in range(2))
        await leader.start()
        await follower.start()
        await create(leader, NewTopic("t", 1, 2))
        await until(lambda: T0 in follower.partitions, "both have a replica")
        if not leader.partitions[T0].is_leader:
            leader, follower = follower, leader
        append(leader, "a")
        own = follower.partitions[T0].log
        await until(lambda: own.log_end_offset == 1, "the follower has it")
        assert fetchers(follower)["failedpartitionscount"] == 0
        assert fetchers(follower)["minfetchrate"] > 0
        assert fetchers(leader)["minfetchrate"] == 0, "it has no fetcher"

        write = PartitionLog.append_as_follower

        def rejected(log: PartitionLog, *arguments: object) -> int:
            if log is own and len(arguments[0]):
                raise CorruptRecordError("a bit has changed on the way")
            return write(log, *arguments)

        monkeypatch.setattr(PartitionLog, "append_as_follower", rejected)
        append(leader, "b", "c")
        await until(lambda: fetchers(follower)["failedpartitionscount"] == 1, "it is failed")
        await until(
            lambda: scraped(leader.metrics)["kafka_server_replicamanager_isrshrinks_total"] == 1,
            "it has left the ISR",
        )
        found = scraped(leader.metrics)
        assert found['barnabas_isr_changes_total{change="shrink",cause="lag-time"}'] == 1
        assert found["kafka_server_replicamanager_underreplicatedpartitions"] == 1
        monkeypatch.undo()
        await until(lambda: own.log_end_offset == 3, "it follows again")
        await until(lambda: fetchers(follower)["failedpartitionscount"] == 0, "it is well")
        await until(
            lambda: scraped(leader.metrics)["kafka_server_replicamanager_isrexpands_total"] == 1,
            "it is in sync",
        )
        assert fetchers(follower)["maxlag"] == 0
        assert fetchers(follower)["deadthreadcount"] == 0
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_the_lag_is_what_a_response_leaves_to_fetch(tmp_path: Path) -> None:
    """One batch per response: after the first the others are still to come."""

    async def story() -> None:
        store = MemoryStore()
        small = {"replica_fetch_max_bytes": "1", "replica_fetch_response_max_bytes": "1"}
        leader, follower = (broker(store, tmp_path, number, **small) for number in range(2))
        await leader.start()
        await create(leader, NewTopic("t", 1, 1))
        for number in range(5):
            append(leader, f"v{number}")
        await follower.start()
        seen: list[float] = []
        followed = follower.partitions.followed

        def note(partition: object) -> None:
            followed(partition)
            seen.append(fetchers(follower)["maxlag"])

        follower.partitions.followed = note
        await leader.controller.call(
            lambda term: term.reassignment.begin(T0, [0, 1], same_factor=False)
        )
        await until(lambda: len(leader.partitions[T0].isr) == 2, "it has caught up")
        assert seen[:5] == [4, 3, 2, 1, 0]
        name = 'kafka_server_fetcherlagmetrics_consumerlag{clientId="ReplicaFetcherThread-0-0",'
        found = scraped(follower.metrics)
        assert found[f'{name}topic="t",partition="0"}}'] == 0
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def test_a_fetcher_that_crashes_is_dead(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        leader, follower = (broker(store, tmp_path, number) for number in range(2))
        await leader.start()
        await follower.start()
        await create(leader, NewTopic("t", 1, 2))
        await until(lambda: T0 in follower.partitions, "both have a replica")
        if not leader.partitions[T0].is_leader:
            leader, follower = follower, leader
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, why: reported.append(why))
        ((_, fetcher),) = follower.parts.fetchers.named()

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        fetcher._pull.changes = broken
        append(leader, "a")
        await until(lambda: fetchers(follower)["deadthreadcount"] == 1, "it is dead")
        await until(lambda: len(reported) == 1, "it was reported")
        await follower.stop()
        await leader.stop()

    asyncio.run(story())
