"""aiokafka: the asyncio client, which speaks older versions of most requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.compat.samples import CODECS, ROOMY_BYTES, SIZES, Sample, make_samples, until_deadline

pytestmark = pytest.mark.compat


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine on a loop of its own, with a deadline."""
    asyncio.run(asyncio.wait_for(test, 240))


@asynccontextmanager
async def open_admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def create(
    admin: AIOKafkaAdminClient, topic: str, partitions: int = 1, **config: str
) -> None:
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    answer = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=dotted)])
    assert [error[:2] for error in answer.topic_errors] == [(topic, 0)]


async def send(
    bootstrap: str, topic: str, samples: Iterable[Sample], **config: Any
) -> list[int | None]:
    """Produce to partition 0, and return the offsets in order."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **config) as producer:
        futures = [
            await producer.send(
                topic,
                key=sample.key,
                value=sample.value,
                headers=list(sample.headers),
                timestamp_ms=sample.timestamp_ms,
                partition=0,
            )
            for sample in samples
        ]
        reports = [await future for future in futures]
    return [report.offset if report is not None else None for report in reports]


@asynccontextmanager
async def open_consumer(
    bootstrap: str, topic: str, **config: Any
) -> AsyncIterator[tuple[AIOKafkaConsumer, TopicPartition]]:
    """A consumer of partition 0, at its beginning."""
    settings = {"auto_offset_reset": "none", "enable_auto_commit": False} | config
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, **settings)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    await consumer.start()
    try:
        consumer.seek(partition, 0)
        yield consumer, partition
    finally:
        await consumer.stop()


async def read(bootstrap: str, topic: str, count: int, offset: int = 0, **config: Any) -> list[Any]:
    async with open_consumer(bootstrap, topic, **config) as (consumer, partition):
        consumer.seek(partition, offset)
        return [await consumer.getone() for _ in range(count)]


def as_sample(message: Any) -> Sample:
    return Sample(message.key, message.value, message.timestamp, tuple(message.headers))


async def topic_config(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    (resource,) = answer.resources
    assert resource[0] == 0
    return {entry[0]: entry[1] for entry in resource[4]}


def test_creates_lists_and_describes_topics(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name, 3, cleanup_policy="compact", segment_bytes="1048576")
            assert name in await admin.list_topics()
            (described,) = await admin.describe_topics([name])
            assert sorted(p["partition"] for p in described["partitions"]) == [0, 1, 2]
            configs = await topic_config(admin, name)
            assert configs["cleanup.policy"] == "compact"
            assert configs["segment.bytes"] == "1048576"
            answer = await admin.create_topics([NewTopic(name, 1, 1)])
            assert answer.topic_errors[0][1] == errors.TopicAlreadyExistsError.errno

    run(test())


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip_by_codec(bootstrap: str, name: str, codec: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
        samples = make_samples()
        chosen = None if codec == "none" else codec
        assert await send(bootstrap, name, samples, compression_type=chosen) == list(range(40))
        messages = await read(bootstrap, name, 40, check_crcs=True)
        assert [as_sample(message) for message in messages] == samples
        assert [message.offset for message in messages] == list(range(40))

    run(test())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(bootstrap: str, name: str, acks: int | str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
        samples = make_samples()
        await send(bootstrap, name, samples, acks=acks)
        assert [as_sample(message) for message in await read(bootstrap, name, 40)] == samples

    run(test())


def test_idempotent_producers_in_small_batches(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
        samples = make_samples()
        for start in (0, 40):
            offsets = await send(
                bootstrap, name, samples, enable_idempotence=True, max_batch_size=1000
            )
            assert offsets == list(range(start, start + 40))
        messages = await read(bootstrap, name, 80, isolation_level="read_committed")
        assert [as_sample(message) for message in messages] == samples * 2

    run(test())


def test_messages_of_one_byte_to_ten_megabytes(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name, max_message_bytes=str(ROOMY_BYTES))
        now_ms = int(time.time() * 1000)
        samples = [Sample(None, bytes([size % 251]) * size, now_ms) for size in SIZES]
        await send(
            bootstrap, name, samples, max_request_size=ROOMY_BYTES, max_batch_size=ROOMY_BYTES
        )
        messages = await read(bootstrap, name, len(SIZES), max_partition_fetch_bytes=ROOMY_BYTES)
        assert [as_sample(message) for message in messages] == samples

    run(test())


def test_a_message_over_the_topics_limit_is_refused(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name, max_message_bytes="2000")
        with pytest.raises(errors.MessageSizeTooLargeError):
            await send(bootstrap, name, [Sample(None, b"x" * 5000, int(time.time() * 1000))])

    run(test())


def test_reads_from_offset_time_beginning_and_end(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
        samples = make_samples()
        await send(bootstrap, name, samples, max_batch_size=1000)
        late = Sample(b"late", b"late", samples[-1].timestamp_ms + 1)
        async with open_consumer(bootstrap, name) as (consumer, partition):
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 40}
            found = await consumer.offsets_for_times({partition: samples[17].timestamp_ms - 500})
            assert found[partition].offset == 17
            assert found[partition].timestamp == samples[17].timestamp_ms
            found = await consumer.offsets_for_times({partition: late.timestamp_ms})
            assert found[partition] is None
            consumer.seek(partition, 23)
            assert as_sample(await consumer.getone()) == samples[23]
            await consumer.seek_to_beginning(partition)
            assert as_sample(await consumer.getone()) == samples[0]
            await consumer.seek_to_end(partition)
            waiting = asyncio.create_task(consumer.getone())
            await send(bootstrap, name, [late])
            assert as_sample(await waiting) == late
            consumer.seek(partition, 999)
            with pytest.raises(errors.OffsetOutOfRangeError):
                await consumer.getone()

    run(test())


def test_delete_records_moves_the_beginning(bootstrap: str, name: str) -> None:
    async def test() -> None:
        partition = TopicPartition(name, 0)
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
            await send(bootstrap, name, make_samples())
            assert await admin.delete_records({partition: RecordsToDelete(25)}) == {partition: 25}
        assert [m.offset for m in await read(bootstrap, name, 2, offset=25)] == [25, 26]
        async with open_consumer(bootstrap, name) as (consumer, _):
            assert await consumer.beginning_offsets([partition]) == {partition: 25}

    run(test())


def test_alters_topic_configs_the_old_way(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name, retention_ms="1000000")
            resource = ConfigResource(ConfigResourceType.TOPIC, name, {"max.message.bytes": "5000"})
            (answer,) = await admin.alter_configs([resource])
            assert answer.resources[0][0] == 0
            configs = await topic_config(admin, name)
            assert configs["max.message.bytes"] == "5000"
            assert configs["retention.ms"] == "604800000"

    run(test())


def test_creates_partitions(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
            answer = await admin.create_partitions({name: NewPartitions(4)})
            assert answer.topic_errors[0][1] == 0
            for _ in until_deadline("four partitions"):
                if len((await admin.describe_topics([name]))[0]["partitions"]) == 4:
                    break

    run(test())


def test_deletes_topics(bootstrap: str, name: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            await create(admin, name)
            answer = await admin.delete_topics([name])
            assert answer.topic_error_codes == [(name, 0)]
            for _ in until_deadline("the topic to be gone"):
                if name not in await admin.list_topics():
                    break
            answer = await admin.delete_topics([name])
            unknown = errors.UnknownTopicOrPartitionError.errno
            assert answer.topic_error_codes == [(name, unknown)]

    run(test())


def test_describes_the_cluster(bootstrap: str) -> None:
    async def test() -> None:
        async with open_admin(bootstrap) as admin:
            cluster = await admin.describe_cluster()
        (broker,) = cluster["brokers"]
        assert f"{broker['host']}:{broker['port']}" == bootstrap
        assert cluster["controller_id"] == broker["node_id"]
        assert cluster["cluster_id"]

    run(test())
