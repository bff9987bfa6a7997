"""kafka-python, the newest release: pure Python, idempotent by default."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from tests.compat.samples import CODECS, ROOMY_BYTES, SIZES, Sample, make_samples, until_deadline

with warnings.catch_warnings():
    # It reads its schemas through functions of the standard library that are on its way out.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition, codec, errors
    from kafka.admin import AlterConfigOp, ConfigResource, OffsetSpec

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def create(admin: KafkaAdminClient, topic: str, partitions: int = 1, **config: str) -> None:
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": dotted}
    admin.create_topics({topic: wanted})
    admin.wait_for_topics([topic])


def send(bootstrap: str, topic: str, samples: Iterable[Sample], **config: Any) -> list[int]:
    """Produce to partition 0, and return the offsets in order."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, **config)
    try:
        futures = [
            producer.send(
                topic,
                key=sample.key,
                value=sample.value,
                headers=list(sample.headers),
                timestamp_ms=sample.timestamp_ms,
                partition=0,
            )
            for sample in samples
        ]
        return [future.get(timeout=30).offset for future in futures]
    finally:
        producer.close(timeout=30)


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[KafkaConsumer]:
    client = KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="none",
        check_crcs=True,
        max_partition_fetch_bytes=ROOMY_BYTES,
    )
    yield client
    client.close()


def read(consumer: KafkaConsumer, topic: str, count: int, offset: int | None = 0) -> list[Any]:
    """Read `count` messages of partition 0, from an offset on or from where the consumer is."""
    partition = TopicPartition(topic, 0)
    if offset is not None:
        consumer.assign([partition])
        consumer.seek(partition, offset)
    messages: list[Any] = []
    for left in until_deadline(f"{count} messages of {topic}"):
        polled = consumer.poll(timeout_ms=int(min(left, 0.2) * 1000), max_records=count)
        messages.extend(polled.get(partition, []))
        if len(messages) >= count:
            break
    return messages


def as_sample(message: Any) -> Sample:
    headers = tuple((key, value) for key, value in message.headers)
    return Sample(message.key, message.value, message.timestamp, headers)


def topic_config(admin: KafkaAdminClient, topic: str) -> dict[str, Any]:
    answer = admin.describe_configs([ConfigResource("topic", topic)], config_filter="all")
    return answer["topic"][topic]  # type: ignore[no-any-return]


def test_creates_lists_and_describes_topics(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name, partitions=3, cleanup_policy="compact", segment_bytes="1048576")
    assert name in admin.list_topics()
    (described,) = admin.describe_topics([name])
    assert sorted(p["partition_index"] for p in described["partitions"]) == [0, 1, 2]
    configs = topic_config(admin, name)
    assert configs["cleanup.policy"]["value"] == "compact"
    assert configs["segment.bytes"]["value"] == "1048576"
    with pytest.raises(errors.TopicAlreadyExistsError):
        create(admin, name)


@pytest.mark.parametrize("compression", CODECS)
def test_round_trip_by_codec(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str, compression: str
) -> None:
    if compression != "none" and not getattr(codec, f"has_{compression}")():
        pytest.skip(f"kafka-python finds no library for {compression} (make deps fetches it)")
    create(admin, name)
    samples = make_samples()
    chosen = None if compression == "none" else compression
    assert send(bootstrap, name, samples, compression_type=chosen) == list(range(40))
    messages = read(consumer, name, 40)
    assert [as_sample(message) for message in messages] == samples
    assert [message.offset for message in messages] == list(range(40))


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str, acks: int | str
) -> None:
    create(admin, name)
    samples = make_samples()
    send(bootstrap, name, samples, acks=acks, enable_idempotence=False)
    assert [as_sample(message) for message in read(consumer, name, 40)] == samples


def test_idempotent_producers_in_small_batches(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str
) -> None:
    create(admin, name)
    samples = make_samples()
    for start in (0, 40):
        offsets = send(bootstrap, name, samples, enable_idempotence=True, batch_size=200)
        assert offsets == list(range(start, start + 40))
    assert [as_sample(message) for message in read(consumer, name, 80)] == samples * 2


def test_messages_of_one_byte_to_ten_megabytes(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str
) -> None:
    create(admin, name, max_message_bytes=str(ROOMY_BYTES))
    now_ms = int(time.time() * 1000)
    samples = [Sample(None, bytes([size % 251]) * size, now_ms) for size in SIZES]
    send(bootstrap, name, samples, max_request_size=ROOMY_BYTES)
    assert [as_sample(message) for message in read(consumer, name, len(SIZES))] == samples


def test_a_message_over_the_topics_limit_is_refused(
    admin: KafkaAdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name, max_message_bytes="2000")
    with pytest.raises(errors.MessageSizeTooLargeError):
        send(bootstrap, name, [Sample(None, b"x" * 5000, int(time.time() * 1000))])


def test_reads_from_offset_time_beginning_and_end(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str
) -> None:
    create(admin, name)
    samples = make_samples()
    send(bootstrap, name, samples, batch_size=200)
    partition = TopicPartition(name, 0)
    assert as_sample(read(consumer, name, 1, offset=23)[0]) == samples[23]
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 40}
    found = consumer.offsets_for_times({partition: samples[17].timestamp_ms - 500})[partition]
    assert (found.offset, found.timestamp) == (17, samples[17].timestamp_ms)
    late_ms = samples[-1].timestamp_ms + 1
    assert consumer.offsets_for_times({partition: late_ms})[partition] is None
    consumer.seek_to_beginning(partition)
    assert as_sample(read(consumer, name, 1, offset=None)[0]) == samples[0]
    consumer.seek_to_end(partition)
    assert consumer.position(partition) == 40
    late = Sample(b"late", b"late", late_ms)
    send(bootstrap, name, [late])
    assert as_sample(read(consumer, name, 1, offset=None)[0]) == late


def test_an_offset_out_of_range_is_said(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str
) -> None:
    create(admin, name)
    send(bootstrap, name, make_samples())
    with pytest.raises(errors.OffsetOutOfRangeError):
        read(consumer, name, 1, offset=999)


def test_delete_records_moves_the_beginning(
    admin: KafkaAdminClient, bootstrap: str, consumer: KafkaConsumer, name: str
) -> None:
    create(admin, name)
    send(bootstrap, name, make_samples())
    partition = TopicPartition(name, 0)
    admin.delete_records({partition: 25})
    assert consumer.beginning_offsets([partition]) == {partition: 25}
    assert read(consumer, name, 1, offset=25)[0].offset == 25
    with pytest.raises(errors.OffsetOutOfRangeError):
        read(consumer, name, 1, offset=24)


def test_list_offsets(admin: KafkaAdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    samples = make_samples()
    send(bootstrap, name, [*samples[20:], *samples[:20]], batch_size=200)
    partition = TopicPartition(name, 0)

    def ask(spec: Any) -> tuple[int, int]:
        answer = admin.list_partition_offsets({partition: spec})[partition]
        return answer.offset, answer.timestamp

    assert ask(OffsetSpec.EARLIEST) == (0, -1)
    assert ask(OffsetSpec.LATEST) == (40, -1)
    assert ask(OffsetSpec.MAX_TIMESTAMP) == (19, samples[-1].timestamp_ms)
    assert ask(samples[39].timestamp_ms) == (19, samples[39].timestamp_ms)


def test_alters_topic_configs_incrementally(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name, retention_ms="1000000")
    changes = {"max.message.bytes": "5000", "cleanup.policy": (AlterConfigOp.APPEND, "compact")}
    admin.alter_configs([ConfigResource("topic", name, changes)], incremental=True)
    configs = topic_config(admin, name)
    assert configs["max.message.bytes"]["value"] == "5000"
    assert sorted(configs["cleanup.policy"]["value"].split(",")) == ["compact", "delete"]
    assert configs["retention.ms"]["value"] == "1000000"
    admin.reset_configs([ConfigResource("topic", name, ["retention.ms"])])
    assert topic_config(admin, name)["retention.ms"]["value"] == "604800000"


def test_alters_topic_configs_the_old_way(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name, retention_ms="1000000")
    resource = ConfigResource("topic", name, {"max.message.bytes": "5000"})
    admin.alter_configs([resource], incremental=False)
    configs = topic_config(admin, name)
    assert configs["max.message.bytes"]["value"] == "5000"
    # The old request drops what it does not name; this client reads and names the rest itself.
    assert configs["retention.ms"]["value"] == "1000000"


def test_creates_partitions(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name)
    admin.create_partitions({name: 4})
    for _ in until_deadline("four partitions"):
        if len(admin.describe_topics([name])[0]["partitions"]) == 4:
            break
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({name: 2})


def test_deletes_topics(admin: KafkaAdminClient, name: str) -> None:
    create(admin, name)
    admin.delete_topics([name])
    for _ in until_deadline("the topic to be gone"):
        if name not in admin.list_topics():
            break
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_describes_the_cluster(admin: KafkaAdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller_id"] == broker.get("node_id", broker.get("broker_id"))
    assert cluster["cluster_id"]


def test_describes_log_dirs(admin: KafkaAdminClient, bootstrap: str, name: str) -> None:
    create(admin, name, partitions=2)
    send(bootstrap, name, make_samples())
    (answer,) = admin.describe_log_dirs(topic_partitions=[name])
    sizes = {
        partition["partition_index"]: partition["partition_size"]
        for directory in answer["log_dirs"]
        for topic in directory["topics"]
        for partition in topic["partitions"]
    }
    assert sorted(sizes) == [0, 1]
    assert sizes[0] > 0
    assert sizes[1] == 0


def test_reads_what_waits_behind_a_long_poll(
    admin: KafkaAdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name)
    waiting = KafkaConsumer(bootstrap_servers=bootstrap, fetch_max_wait_ms=25_000)
    partition = TopicPartition(name, 0)
    try:
        waiting.assign([partition])
        waiting.seek(partition, 0)
        assert waiting.poll(timeout_ms=300) == {}  # now a fetch waits at the broker
        started = time.monotonic()
        send(bootstrap, name, make_samples()[:1])
        assert len(waiting.poll(timeout_ms=20_000)[partition]) == 1
        assert time.monotonic() - started < 20
    finally:
        waiting.close()
