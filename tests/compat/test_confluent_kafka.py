"""confluent-kafka (librdkafka): the client of most Python, Go and .NET programs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.compat.samples import CODECS, ROOMY_BYTES, SIZES, Sample, make_samples, until_deadline

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def done(future: Future[Any]) -> Any:
    """The result of one admin call."""
    return future.result(timeout=30)


def create(admin: AdminClient, topic: str, partitions: int = 1, **config: str) -> None:
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dotted)
    done(admin.create_topics([new])[topic])


def deliver(
    bootstrap: str, topic: str, samples: Iterable[Sample], partition: int = 0, **config: Any
) -> list[Message]:
    """Produce, wait for every delivery report, and return the reports in order."""
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **dotted})
    reports: list[Message] = []

    def report(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        reports.append(message)

    for sample in samples:
        producer.produce(
            topic,
            key=sample.key,
            value=sample.value,
            partition=partition,
            timestamp=sample.timestamp_ms,
            headers=list(sample.headers),
            on_delivery=report,
        )
    assert producer.flush(30) == 0
    return reports


def reader(bootstrap: str, **config: Any) -> Consumer:
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",  # librdkafka wants a name even when partitions are assigned
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            **dotted,
        }
    )


def read(
    bootstrap: str,
    topic: str,
    count: int,
    offset: int = OFFSET_BEGINNING,
    partition: int = 0,
    **config: Any,
) -> list[Message]:
    """Read `count` messages of one partition from an offset on."""
    consumer = reader(bootstrap, **config)
    messages: list[Message] = []
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        for left in until_deadline(f"{count} messages of {topic}"):
            for message in consumer.consume(count - len(messages), min(left, 0.2)):
                assert message.error() is None, message.error()
                messages.append(message)
            if len(messages) >= count:
                return messages
    finally:
        consumer.close()
    return messages


def as_sample(message: Message) -> Sample:
    return Sample(
        message.key(), message.value(), message.timestamp()[1], tuple(message.headers() or ())
    )


def code(raised: pytest.ExceptionInfo[KafkaException]) -> int:
    number: int = raised.value.args[0].code()
    return number


def topic_config(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return done(admin.describe_configs([resource])[resource])  # type: ignore[no-any-return]


def test_creates_lists_and_describes_topics(admin: AdminClient, name: str) -> None:
    create(admin, name, partitions=3, cleanup_policy="compact", segment_bytes="1048576")
    listed = admin.list_topics(timeout=30).topics[name]
    assert sorted(listed.partitions) == [0, 1, 2]
    described = done(admin.describe_topics(TopicCollection([name]))[name])
    assert [p.id for p in described.partitions] == [0, 1, 2]
    assert all(p.leader.id == p.replicas[0].id == p.isr[0].id for p in described.partitions)
    assert not described.is_internal
    entries = topic_config(admin, name)
    assert entries["cleanup.policy"].value == "compact"
    assert entries["segment.bytes"].value == "1048576"
    assert not entries["segment.bytes"].is_default
    assert entries["retention.ms"].value == "604800000"
    assert entries["retention.ms"].is_default


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (NewTopic("no/slash", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("too-many-replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("bad-config", 1, 1, config={"segment.bytes": "x"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-name", 1, 1, config={"no.such.option": "1"}), KafkaError.INVALID_CONFIG),
    ],
    ids=["name", "replication", "config value", "config name"],
)
def test_refuses_topics_that_cannot_be(admin: AdminClient, new: NewTopic, expected: int) -> None:
    with pytest.raises(KafkaException) as raised:
        done(admin.create_topics([new])[new.topic])
    assert code(raised) == expected


def test_a_topic_is_created_once(admin: AdminClient, name: str) -> None:
    create(admin, name)
    with pytest.raises(KafkaException) as raised:
        create(admin, name)
    assert code(raised) == KafkaError.TOPIC_ALREADY_EXISTS


def test_validate_only_creates_nothing(admin: AdminClient, name: str) -> None:
    done(admin.create_topics([NewTopic(name, 2, 1)], validate_only=True)[name])
    assert name not in admin.list_topics(timeout=30).topics


def test_producing_creates_a_topic(admin: AdminClient, bootstrap: str, name: str) -> None:
    samples = make_samples()[:3]
    deliver(bootstrap, name, samples)
    assert [as_sample(m) for m in read(bootstrap, name, 3)] == samples


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip_by_codec(admin: AdminClient, bootstrap: str, name: str, codec: str) -> None:
    create(admin, name)
    samples = make_samples()
    reports = deliver(bootstrap, name, samples, compression_type=codec)
    assert [report.offset() for report in reports] == list(range(len(samples)))
    messages = read(bootstrap, name, len(samples), check_crcs=True)
    assert [as_sample(message) for message in messages] == samples
    assert [message.offset() for message in messages] == list(range(len(samples)))
    assert {message.timestamp()[0] for message in messages} == {TIMESTAMP_CREATE_TIME}


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_a_topic_may_choose_its_codec(
    admin: AdminClient, bootstrap: str, name: str, codec: str
) -> None:
    create(admin, name, compression_type=codec)
    samples = make_samples()
    deliver(bootstrap, name, samples, compression_type="none" if codec == "gzip" else "gzip")
    assert [as_sample(m) for m in read(bootstrap, name, len(samples), check_crcs=True)] == samples


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(
    admin: AdminClient, bootstrap: str, name: str, acks: str
) -> None:
    create(admin, name)
    samples = make_samples()
    reports = deliver(bootstrap, name, samples, acks=acks)
    if acks != "0":  # without acknowledgement the producer is told no offsets
        assert [report.offset() for report in reports] == list(range(len(samples)))
    assert [as_sample(message) for message in read(bootstrap, name, len(samples))] == samples


def test_idempotent_producers(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    samples = make_samples()
    for _ in range(2):  # two producers, each with an id and sequence numbers of its own
        deliver(
            bootstrap, name, samples, enable_idempotence=True, batch_num_messages=3, linger_ms=0
        )
    messages = read(bootstrap, name, 2 * len(samples), isolation_level="read_committed")
    assert [as_sample(message) for message in messages] == samples * 2


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_messages_of_one_byte_to_ten_megabytes(
    admin: AdminClient, bootstrap: str, name: str, codec: str
) -> None:
    create(admin, name, max_message_bytes=str(ROOMY_BYTES))
    now_ms = int(time.time() * 1000)
    samples = [Sample(None, bytes([size % 251]) * size, now_ms) for size in SIZES]
    deliver(bootstrap, name, samples, message_max_bytes=ROOMY_BYTES, compression_type=codec)
    messages = read(
        bootstrap,
        name,
        len(samples),
        # Below the largest message on purpose: a broker returns one batch even when it is larger.
        max_partition_fetch_bytes=1_000_000,
        fetch_max_bytes=ROOMY_BYTES,
        receive_message_max_bytes=2 * ROOMY_BYTES,
    )
    assert [len(message.value()) for message in messages] == list(SIZES)
    assert [as_sample(message) for message in messages] == samples


def test_a_message_over_the_topics_limit_is_refused(
    admin: AdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name, max_message_bytes="2000")
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[KafkaError | None] = []
    for size in (100, 5000):
        producer.produce(name, b"x" * size, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(30) == 0
    assert errors[0] is None
    assert errors[1] is not None
    assert errors[1].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_compacted_topic_refuses_records_without_key(
    admin: AdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name, cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[KafkaError | None] = []
    for key in (b"k", None):
        producer.produce(name, b"v", key=key, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(30) == 0
    assert errors[0] is None
    assert errors[1] is not None
    assert errors[1].code() == KafkaError.INVALID_RECORD


def test_log_append_time_is_the_brokers(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name, message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    deliver(bootstrap, name, make_samples(), compression_type="snappy")
    after_ms = int(time.time() * 1000)
    for message in read(bootstrap, name, 40):
        kind, timestamp_ms = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert before_ms <= timestamp_ms <= after_ms


def test_reads_from_offset_time_beginning_and_end(
    admin: AdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name)
    samples = make_samples()
    deliver(bootstrap, name, samples, batch_num_messages=7)
    assert as_sample(read(bootstrap, name, 1, offset=23)[0]) == samples[23]
    consumer = reader(bootstrap)
    try:
        assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30) == (0, 40)
        asked = [
            TopicPartition(name, 0, samples[17].timestamp_ms),
            TopicPartition(name, 0, samples[17].timestamp_ms + 1),
            TopicPartition(name, 0, samples[-1].timestamp_ms + 1),
        ]
        found = [consumer.offsets_for_times([one], timeout=30)[0].offset for one in asked]
        assert found == [17, 18, OFFSET_END]
        consumer.assign([TopicPartition(name, 0, OFFSET_END)])
        assert consumer.consume(1, 0.3) == []
        late = Sample(b"late", b"late", samples[-1].timestamp_ms)
        deliver(bootstrap, name, [late])
        for left in until_deadline("the record after the end"):
            if got := consumer.consume(1, left):
                assert as_sample(got[0]) == late
                assert got[0].offset() == 40
                break
    finally:
        consumer.close()


def test_an_offset_out_of_range_is_said_and_reset(
    admin: AdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name)
    deliver(bootstrap, name, make_samples())
    assert read(bootstrap, name, 1, offset=999, auto_offset_reset="earliest")[0].offset() == 0
    consumer = reader(bootstrap, auto_offset_reset="error")
    try:
        consumer.assign([TopicPartition(name, 0, 999)])
        message = consumer.poll(30)
        assert message is not None
        assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    finally:
        consumer.close()


def test_a_waiting_fetch_is_answered_by_the_append(
    admin: AdminClient, bootstrap: str, name: str
) -> None:
    create(admin, name)
    consumer = reader(bootstrap, fetch_wait_max_ms=25_000)
    try:
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
        assert consumer.poll(0.5) is None  # now a fetch waits at the broker
        started = time.monotonic()
        deliver(bootstrap, name, make_samples()[:1])
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        assert time.monotonic() - started < 20
    finally:
        consumer.close()


def test_spreads_and_reads_many_partitions(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name, partitions=12)
    for partition in range(12):
        deliver(bootstrap, name, make_samples()[: partition + 1], partition=partition)
    consumer = reader(bootstrap)
    counts = dict.fromkeys(range(12), 0)
    try:
        consumer.assign([TopicPartition(name, p, OFFSET_BEGINNING) for p in range(12)])
        for left in until_deadline("78 messages"):
            for message in consumer.consume(100, min(left, 0.2)):
                assert message.error() is None
                counts[message.partition()] += 1
            if sum(counts.values()) >= 78:
                break
    finally:
        consumer.close()
    assert counts == {partition: partition + 1 for partition in range(12)}


def test_delete_records_moves_the_beginning(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    deliver(bootstrap, name, make_samples())
    partition = TopicPartition(name, 0, 25)
    assert done(admin.delete_records([partition])[partition]).low_watermark == 25
    assert read(bootstrap, name, 1)[0].offset() == 25
    too_far = TopicPartition(name, 0, 41)
    with pytest.raises(KafkaException) as raised:
        done(admin.delete_records([too_far])[too_far])
    assert code(raised) == KafkaError.OFFSET_OUT_OF_RANGE
    everything = TopicPartition(name, 0, OFFSET_END)
    assert done(admin.delete_records([everything])[everything]).low_watermark == 40


def test_list_offsets(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    samples = make_samples()
    latest_first = [*samples[20:], *samples[:20]]  # so the largest timestamp is not the last
    deliver(bootstrap, name, latest_first, batch_num_messages=6)

    def ask(spec: OffsetSpec) -> Any:
        partition = TopicPartition(name, 0)
        futures = admin.list_offsets(
            {partition: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED
        )
        return done(futures[partition])

    assert ask(OffsetSpec.earliest()).offset == 0
    assert ask(OffsetSpec.latest()).offset == 40
    largest = ask(OffsetSpec.max_timestamp())
    assert (largest.offset, largest.timestamp) == (19, samples[-1].timestamp_ms)
    assert ask(OffsetSpec.for_timestamp(samples[5].timestamp_ms)).offset == 0
    assert ask(OffsetSpec.for_timestamp(samples[39].timestamp_ms)).offset == 19


def test_alters_topic_configs_incrementally(admin: AdminClient, name: str) -> None:
    create(admin, name, retention_ms="1000000")

    def alter(option: str, operation: AlterConfigOpType, value: str | None = None) -> None:
        entry = ConfigEntry(option, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource])[resource])

    alter("max.message.bytes", AlterConfigOpType.SET, "5000")
    alter("cleanup.policy", AlterConfigOpType.APPEND, "compact")
    entries = topic_config(admin, name)
    assert entries["max.message.bytes"].value == "5000"
    assert sorted(entries["cleanup.policy"].value.split(",")) == ["compact", "delete"]
    assert entries["retention.ms"].value == "1000000"
    alter("cleanup.policy", AlterConfigOpType.SUBTRACT, "delete")
    alter("max.message.bytes", AlterConfigOpType.DELETE)
    entries = topic_config(admin, name)
    assert entries["cleanup.policy"].value == "compact"
    assert entries["max.message.bytes"].is_default
    with pytest.raises(KafkaException) as raised:
        alter("max.message.bytes", AlterConfigOpType.SET, "not a number")
    assert code(raised) == KafkaError.INVALID_CONFIG


def test_alters_topic_configs_the_old_way(admin: AdminClient, name: str) -> None:
    create(admin, name, retention_ms="1000000")
    resource = ConfigResource(ResourceType.TOPIC, name, set_config={"max.message.bytes": "5000"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (DeprecationWarning, PendingDeprecationWarning))
        done(admin.alter_configs([resource])[resource])
    entries = topic_config(admin, name)
    assert entries["max.message.bytes"].value == "5000"
    assert entries["retention.ms"].is_default  # what is not named goes back to its default


def test_describes_and_alters_a_brokers_configs(admin: AdminClient) -> None:
    cluster = done(admin.describe_cluster())
    resource = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    entries = done(admin.describe_configs([resource])[resource])
    assert entries["num.partitions"].value == "1"
    assert entries["log.dirs"].is_read_only
    change = ConfigEntry(
        "log.cleaner.backoff.ms", "14000", incremental_operation=AlterConfigOpType.SET
    )
    altered = ConfigResource(ResourceType.BROKER, resource.name, incremental_configs=[change])
    done(admin.incremental_alter_configs([altered])[altered])
    for _ in until_deadline("the altered option to be described"):
        entries = done(admin.describe_configs([resource])[resource])
        if entries["log.cleaner.backoff.ms"].value == "14000":
            break


def test_creates_partitions(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    deliver(bootstrap, name, make_samples()[:5])
    done(admin.create_partitions([NewPartitions(name, 4)])[name])
    for _ in until_deadline("four partitions"):
        if len(admin.list_topics(name, timeout=30).topics[name].partitions) == 4:
            break
    deliver(bootstrap, name, make_samples()[:5], partition=3)
    assert len(read(bootstrap, name, 5, partition=3)) == 5
    assert len(read(bootstrap, name, 5, partition=0)) == 5
    with pytest.raises(KafkaException) as raised:
        done(admin.create_partitions([NewPartitions(name, 2)])[name])
    assert code(raised) == KafkaError.INVALID_PARTITIONS


def test_deletes_topics(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    deliver(bootstrap, name, make_samples())
    done(admin.delete_topics([name])[name])
    for _ in until_deadline("the topic to be gone"):
        if name not in admin.list_topics(timeout=30).topics:
            break
    with pytest.raises(KafkaException) as raised:
        done(admin.delete_topics([name])[name])
    assert code(raised) == KafkaError.UNKNOWN_TOPIC_OR_PART
    create(admin, name)  # the name is free again, and the new topic is empty
    deliver(bootstrap, name, make_samples()[:1])
    assert read(bootstrap, name, 1)[0].offset() == 0


def test_describes_the_cluster(admin: AdminClient, bootstrap: str) -> None:
    cluster = done(admin.describe_cluster())
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]
    assert cluster.controller.id == cluster.nodes[0].id
    assert cluster.cluster_id == admin.list_topics(timeout=30).cluster_id
    assert cluster.cluster_id


def messages_of(consumer: Consumer, count: int) -> Iterator[Message]:
    for left in until_deadline(f"{count} messages"):
        for message in consumer.consume(count, min(left, 0.2)):
            yield message
            count -= 1
        if count <= 0:
            return


def test_pauses_seeks_and_resumes(admin: AdminClient, bootstrap: str, name: str) -> None:
    create(admin, name)
    deliver(bootstrap, name, make_samples())
    consumer = reader(bootstrap)
    partition = TopicPartition(name, 0, OFFSET_BEGINNING)
    try:
        consumer.assign([partition])
        assert [m.offset() for m in messages_of(consumer, 5)] == [0, 1, 2, 3, 4]
        consumer.pause([partition])
        assert consumer.consume(1, 0.2) == []
        consumer.seek(TopicPartition(name, 0, 30))
        consumer.resume([partition])
        assert [m.offset() for m in messages_of(consumer, 3)] == [30, 31, 32]
    finally:
        consumer.close()
