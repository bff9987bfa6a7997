"""Lag in a cluster: of partitions here and elsewhere, and only while it is looked at."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.monitoring.scraping import Series, scraped, summed
from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import batch_of

from barnabas.broker.broker import Broker
from barnabas.broker.monitoring.consumer_lag import WATCHED_MS
from barnabas.coordination.memory import MemoryStore
from barnabas.groups.call import Call
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

OPTIONS = {"offsets_topic_num_partitions": "1", "offsets_topic_replication_factor": "1"}


class Token:
    """Gets a reply instead of a request."""

    def __init__(self) -> None:
        self.replied: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def answer(self, response: object) -> None:
        self.replied.set_result(response)


async def commit(coordinator: Broker, offsets: dict[int, int]) -> None:
    """Commit offsets of group g in topic t."""
    token = Token()
    host = coordinator.groups
    shard = host.shard("g")
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[
                    OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
                    for number, offset in offsets.items()
                ],
            )
        ],
    )
    call = Call(token, 9, coordinator.now_ms())
    host.apply(shard, shard.machine.offset_requests.handle_commit(request, call))
    await token.replied


def coordinates(host: Broker) -> bool:
    """Return whether a broker can answer for group g."""
    known = host.cluster.topic(host.groups.topic) is not None
    return known and any(True for _ in host.groups.loaded_shards())


def lags(found: Series) -> dict[str, float]:
    prefix = 'kafka_consumergroup_lag{consumergroup="g",topic="t",partition="'
    return {
        name.removeprefix(prefix).rstrip('"}'): value
        for name, value in found.items()
        if name.startswith(prefix)
    }


def test_leaders_elsewhere_are_asked_while_somebody_looks(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        brokers = [broker(store, tmp_path, number, **OPTIONS) for number in range(3)]
        for each in brokers:
            await each.start()
        await create(brokers[0], NewTopic("t", 3, 1))
        await until(lambda: all(each.cluster.topic("t") for each in brokers), "all know the topic")
        for each in brokers:
            for partition in list(each.partitions.values()):
                for _ in range(10 + partition.topic_partition.partition):
                    records = bytearray(batch_of(["v"]))
                    each.partitions.append(partition, records, 1, 9, each.now_ms())
        coordinator = brokers[await brokers[0].groups.find("g")]
        await until(lambda: coordinates(coordinator), "it has loaded its groups")
        await commit(coordinator, {0: 10, 1: 10, 2: 10})
        monitoring = coordinator.parts.monitoring
        lag = monitoring.consumer_lag
        await lag.refresh()
        asked = lag._ends._known
        assert asked == {}, "nobody has looked yet"

        sums = 'kafka_consumergroup_lag_sum{consumergroup="g",topic="t"}'
        first = scraped(coordinator.metrics)
        assert len(lags(first)) == 1, "of the partition that it leads itself"
        assert sums not in first, "a sum without the others would be wrong"
        await until(lambda: len(asked) == 2, "it has asked the other two")
        total = summed(*brokers)
        assert lags(total) == {"0": 0, "1": 1, "2": 2}
        assert total[sums] == 3
        assert total['barnabas_consumergroup_stable_lag_sum{consumergroup="g",topic="t"}'] == 3
        assert total['kafka_consumergroup_members{consumergroup="g"}'] == 0
        assert {key.partition: ends.high_watermark for key, (_, ends) in asked.items()}.items() <= {
            0: 10,
            1: 11,
            2: 12,
        }.items()

        clock = lag._clock_ms
        lag._clock_ms = lambda: clock() + WATCHED_MS + 1
        asked.clear()
        await lag.refresh()
        assert asked == {}, "nobody has looked for a minute"
        scraped(coordinator.metrics)
        await until(lambda: len(asked) == 2, "it asks at once when somebody looks again")
        for each in reversed(brokers):
            await each.stop()

    asyncio.run(story())


def test_the_lag_of_one_group_can_be_asked_for(tmp_path: Path) -> None:
    """As the console and the commands want it: a row per partition."""

    async def story() -> None:
        store = MemoryStore()
        alone = broker(store, tmp_path, 0, **OPTIONS)
        await alone.start()
        await create(alone, NewTopic("t", 1, 1))
        await alone.groups.find("g")
        await until(lambda: coordinates(alone), "it has loaded its groups")
        partition = alone.partitions["t", 0]
        alone.partitions.append(partition, bytearray(batch_of("abc")), 1, 9, alone.now_ms())
        await commit(alone, {0: 1})
        lag = alone.parts.monitoring.consumer_lag
        (coordinator,) = lag.coordinators()
        (row,) = lag.of(coordinator, "g")
        assert (row.key, row.committed, row.lag) == (TopicPartition("t", 0), 1, 2)
        assert (row.stable_lag, row.seconds) == (2, None)
        assert lag.of(coordinator, "unknown") == []
        alone.parts.replicas.drop(partition.topic_partition)
        (row,) = lag.of(coordinator, "g")
        assert (row.lag, row.stable_lag, row.seconds) == (None, None, None)
        await alone.stop()

    asyncio.run(story())


def test_old_records_elsewhere_are_asked_for_their_time(tmp_path: Path) -> None:
    """The coordinator has just started, and the lag is of long ago."""

    async def story() -> None:
        store = MemoryStore()
        first, second = (broker(store, tmp_path, number, **OPTIONS) for number in range(2))
        await first.start()
        await second.start()
        await create(first, NewTopic("t", 2, 1))
        await until(lambda: first.cluster.topic("t") and second.cluster.topic("t"), "both know it")
        coordinator = [first, second][await first.groups.find("g")]
        await until(lambda: coordinates(coordinator), "it has loaded its groups")
        other = second if coordinator is first else first
        (partition,) = [p for p in other.partitions.values() if p.topic_partition.topic == "t"]
        hours_ms = 5 * 3_600_000
        rows = [(other.now_ms() - hours_ms, None, b"old" * 100)] * 5
        other.partitions.append(partition, bytearray(build_batch(rows)), 1, 9, other.now_ms())
        key = partition.topic_partition
        await commit(coordinator, {key.partition: 2})
        lag = coordinator.parts.monitoring.consumer_lag
        (machine,) = lag.coordinators()

        def seconds() -> float | None:
            lag.watch()
            (row,) = lag.of(machine, "g")
            return row.seconds

        seconds()
        await lag.refresh()
        known = seconds()
        assert known is not None
        assert known < 3600, "not longer than it has looked at the partition"
        await lag.refresh()
        known = seconds()
        assert known is not None
        assert hours_ms / 1000 <= known < hours_ms / 1000 + 60
        await second.stop()
        await first.stop()

    asyncio.run(story())
