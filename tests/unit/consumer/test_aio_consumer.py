"""The asyncio consumer against a broker, with aiokafka's names and behaviour."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.consumer.logs import T0, numbered, write

from barnabas.aio.consumer import AIOKafkaConsumer
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.errors import (
    ConsumerStoppedError,
    FencedInstanceIdError,
    IllegalOperation,
    IllegalStateError,
    OffsetOutOfRangeError,
)
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndTimestamp
from barnabas.testing import Cluster

Topic = Callable[..., str]


@asynccontextmanager
async def consumer(
    cluster: Cluster, *topics: str, **options: Any
) -> AsyncIterator[AIOKafkaConsumer]:
    options.setdefault("auto_offset_reset", "earliest")
    made = AIOKafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **options)
    async with asyncio.timeout(60), made:
        yield made


async def read(reader: AIOKafkaConsumer, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        for records in (await reader.getmany(timeout_ms=1000)).values():
            found += [int(record.value) for record in records]
    return found


def test_one_and_many(cluster: Cluster, topic: Topic) -> None:
    """Single records, lists and iteration go on where the other stopped."""

    async def main() -> None:
        partition = TopicPartition(topic(records=20), 0)
        async with consumer(cluster) as reader:
            reader.assign([partition])
            assert [int((await reader.getone()).value) for _ in range(3)] == [0, 1, 2]
            assert await reader.position(partition) == 3
            many = await reader.getmany(timeout_ms=1000, max_records=4)
            assert [int(record.value) for record in many[partition]] == [3, 4, 5, 6]
            seen = []
            async for record in reader:
                seen.append(int(record.value))
                if record.offset == 19:
                    break
            assert seen == list(range(7, 20))
            assert await reader.getmany() == {}
            assert reader.highwater(partition) == 20
            assert reader.last_stable_offset(partition) == 20
            assert reader.last_poll_timestamp(partition) > T0
            assert reader.current_lag(partition) == 0

    asyncio.run(main())


def test_some_partitions(cluster: Cluster, topic: Topic) -> None:
    """getone and getmany can be asked for certain partitions; the others lose nothing."""

    async def main() -> None:
        name = topic(partitions=2, records=5)
        one, two = TopicPartition(name, 0), TopicPartition(name, 1)
        async with consumer(cluster) as reader:
            reader.assign([one, two])
            assert (await reader.getone(two)).partition == 1
            found = await reader.getmany(two, timeout_ms=2000)
            assert list(found) == [two]
            assert (await reader.getone(one)).offset == 0
            reader.pause(one)
            assert reader.paused() == {one}
            assert await reader.getmany(timeout_ms=100) == {}
            reader.resume(one)
            assert await read(reader, 4) == [1, 2, 3, 4]

    asyncio.run(main())


def test_a_group(cluster: Cluster, topic: Topic) -> None:
    """start waits for the assignment; commits take offsets in all forms; seek_to_committed."""

    async def main() -> None:
        name = topic(records=10)
        partition = TopicPartition(name, 0)
        async with consumer(cluster, name, group_id="aio-1", enable_auto_commit=False) as reader:
            assert reader.assignment() == {partition}
            assert reader.subscription() == {name}
            assert await read(reader, 10) == list(range(10))
            assert await reader.committed(partition) is None
            assert await reader.seek_to_committed() == {partition: None}
            await reader.commit({partition: 4})
            assert await reader.committed(partition) == 4
            await reader.commit({partition: (6, "note")})
            assert await reader.seek_to_committed(partition) == {partition: 6}
            assert await read(reader, 4) == [6, 7, 8, 9]
            await reader.commit()
            assert await reader.committed(partition) == 10
            with pytest.raises(IllegalStateError):
                await reader.commit({TopicPartition(name, 7): 1})
            with pytest.raises(ValueError, match="must be a whole number"):
                await reader.commit({partition: "4"})

    asyncio.run(main())


def test_rebalances_in_the_background(cluster: Cluster, topic: Topic) -> None:
    """A member that does not poll gives partitions up when another one comes."""
    told: list[tuple[str, int]] = []

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            told.append(("revoked", len(revoked)))

        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            told.append(("assigned", len(assigned)))

    async def main() -> None:
        name = topic(partitions=2, records=3)
        options = {"group_id": "aio-2", "heartbeat_interval_ms": 50}
        async with consumer(cluster, **options) as first:
            first.subscribe([name], listener=Listener())
            assert len(await read(first, 6)) == 6
            async with consumer(cluster, name, **options) as second:
                assert len(second.assignment()) == 1
                assert len(first.assignment()) == 1
        assert told[0] == ("assigned", 2)
        assert ("revoked", 2) in told

    asyncio.run(main())


def test_places(cluster: Cluster, topic: Topic) -> None:
    """Seeks to the ends wait for the position; times and ends can be asked for."""

    async def main() -> None:
        name = topic(records=10)
        partition = TopicPartition(name, 0)
        async with consumer(cluster, name) as reader:
            assert await reader.seek_to_end()
            assert await reader.position(partition) == 10
            assert await reader.seek_to_beginning(partition)
            assert await reader.position(partition) == 0
            reader.seek(partition, 8)
            assert await read(reader, 2) == [8, 9]
            assert await reader.beginning_offsets([partition]) == {partition: 0}
            assert await reader.end_offsets([partition]) == {partition: 10}
            assert await reader.offsets_for_times({partition: T0 + 3}) == {
                partition: OffsetAndTimestamp(3, T0 + 3, 0)
            }
            assert reader.partitions_for_topic(name) == {0}
            assert reader.partitions_for_topic("unheard-of") is None
            assert name in await reader.topics()
            assert reader.health()["partitions"][str(partition)]["position"] == 10
            assert reader.metrics()["consumer-fetch-manager-metrics"]["records-consumed-total"] == 2
            with pytest.raises(IllegalStateError):
                await reader.seek_to_end(TopicPartition(name, 5))
            with pytest.raises(IllegalOperation):
                await reader.commit()

    asyncio.run(main())


def test_errors_reach_the_reader(cluster: Cluster, topic: Topic) -> None:
    """Positions beyond the log and values that cannot be read are raised from getone."""

    async def main() -> None:
        partition = TopicPartition(topic(), 0)
        write(cluster.bootstrap, partition, [(T0, None, b"1"), (T0, None, b"x")])
        async with consumer(
            cluster, auto_offset_reset="none", value_deserializer=json.loads
        ) as reader:
            reader.assign([partition])
            reader.seek(partition, 9)
            with pytest.raises(OffsetOutOfRangeError) as caught:
                await reader.getone()
            assert caught.value.args[0] == {partition: 9}
            reader.seek(partition, 0)
            assert (await reader.getone()).value == 1
            with pytest.raises(json.JSONDecodeError):
                await reader.getone()

    asyncio.run(main())


def test_what_comes_later(cluster: Cluster, topic: Topic) -> None:
    """A waiting getone is woken by a record; arrow works here, too."""

    async def main() -> None:
        partition = TopicPartition(topic(), 0)
        async with consumer(cluster) as reader:
            reader.assign([partition])
            waiting = asyncio.create_task(reader.getone())
            await asyncio.to_thread(write, cluster.bootstrap, partition, numbered(3))
            assert (await waiting).value == b"0"
            batch = await reader.poll_arrow(timeout_ms=2000)
            assert batch.column("value").to_pylist() == [b"1", b"2"]

    asyncio.run(main())


def test_start_and_stop(cluster: Cluster, topic: Topic) -> None:
    """Before start and after stop it says so; iteration ends; stop wakes who waits."""

    async def main() -> None:
        name = topic()
        reader = AIOKafkaConsumer(name, bootstrap_servers=cluster.bootstrap)
        with pytest.raises(IllegalStateError, match="start"):
            await reader.getone()
        await reader.start()
        waiting = asyncio.create_task(reader.getone())
        await asyncio.sleep(0)
        await reader.stop()
        with pytest.raises(ConsumerStoppedError):
            await waiting
        with pytest.raises(ConsumerStoppedError):
            await reader.getmany()
        with pytest.raises(ConsumerStoppedError):
            aiter(reader)
        await reader.stop()

    asyncio.run(main())


def test_an_unclosed_consumer_is_told(cluster: Cluster) -> None:
    """Forgetting stop() gives a warning, as with other resources."""

    async def main() -> None:
        reader = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap)
        await reader.start()
        core = reader._core
        with pytest.warns(ResourceWarning, match="Unclosed AIOKafkaConsumer"):
            reader.__del__()
        await reader.stop()
        assert not core.client.cluster.topics

    asyncio.run(main())


@pytest.mark.parametrize(
    ("arguments", "failure"),
    [
        ({}, TypeError),
        ({"topics": ["a"], "pattern": "a"}, TypeError),
        ({"pattern": "("}, ValueError),
    ],
)
def test_bad_subscriptions(arguments: dict[str, Any], failure: type[Exception]) -> None:
    """What cannot be meant is refused, before start too."""
    with pytest.raises(failure):
        AIOKafkaConsumer().subscribe(**arguments)


class Evens:
    """Shows even numbers alone, and notes what it was shown."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def on_consume(self, records: dict[TopicPartition, list[Any]]) -> dict[TopicPartition, Any]:
        self.shown += [int(each.value) for found in records.values() for each in found]
        kept = {
            place: [each for each in found if int(each.value) % 2 == 0]
            for place, found in records.items()
        }
        return {place: found for place, found in kept.items() if found}


def test_interceptors_see_each_record_once_however_it_is_read(
    cluster: Cluster, topic: Topic
) -> None:
    """What `getone` decoded and did not give is not shown again to interceptors."""
    hook = Evens()

    async def main() -> None:
        partition = TopicPartition(topic(records=9), 0)
        async with consumer(cluster, interceptor_classes=[hook]) as reader:
            reader.assign([partition])
            assert [int((await reader.getone()).value) for _ in range(2)] == [0, 2]
            assert await read(reader, 3) == [4, 6, 8]
            assert await reader.position(partition) == 9

    asyncio.run(main())
    assert hook.shown == list(range(9))


def test_a_record_that_an_interceptor_drops_is_passed_over(cluster: Cluster, topic: Topic) -> None:
    async def main() -> list[int]:
        partition = TopicPartition(topic(), 0)
        for number in (1, 3, 4):  # a batch each
            write(cluster.bootstrap, partition, numbered(1, number))
        options = {"interceptor_classes": [Evens], "max_partition_fetch_bytes": 1}
        async with consumer(cluster, **options) as reader:
            reader.assign([partition])
            return [int((await reader.getone()).value)]

    assert asyncio.run(main()) == [4]


def test_a_member_that_was_fenced_says_so_and_leaves_the_loop_to_others(
    cluster: Cluster, topic: Topic
) -> None:
    async def main() -> None:
        name = topic(records=1)
        options = {"group_id": f"g-{name}", "group_instance_id": "me", "heartbeat_interval_ms": 50}
        async with (
            consumer(cluster, name, **options) as old,
            consumer(cluster, name, **options) as new,
        ):
            with pytest.raises(FencedInstanceIdError, match=r"group\.instance\.id=me"):
                await read(old, 2)
            assert await read(new, 1) == [0]
            # The one that was fenced goes on asking for attention.
            assert await new.getmany(timeout_ms=200) == {}

    asyncio.run(main())
