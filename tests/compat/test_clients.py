"""Our clients, plain and on asyncio, at work: delivery, groups of each protocol, transactions.

Runs against our broker here and against Apache Kafka in tests/interop/test_clients.py, with a
client that we did not write (librdkafka) as the judge of what is in a log.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from tests.compat.samples import CODECS, Sample, make_samples, until_deadline

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewPartitions, NewTopic
from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.errors import KafkaError, ProducerFencedError
from barnabas.structs import OffsetAndMetadata

pytestmark = pytest.mark.compat

WAIT_S = 30.0


@pytest.fixture(scope="session")
def bootstrap(quick_bootstrap: str) -> str:
    """A broker where groups do not wait for more members."""
    return quick_bootstrap


@pytest.fixture(scope="session")
def serves_consumer_protocol(request: pytest.FixtureRequest) -> bool:
    """Whether the broker has groups of KIP-848."""
    return request.config.getoption("--broker") == "barnabas"


@pytest.fixture(
    params=[
        {"partition_assignment_strategy": ["range"]},
        {"partition_assignment_strategy": ["cooperative-sticky"]},
        {"group_protocol": "consumer"},
    ],
    ids=["eager", "cooperative", "consumer"],
)
def protocol(request: pytest.FixtureRequest, serves_consumer_protocol: bool) -> dict[str, Any]:
    """How members of a group agree."""
    chosen: dict[str, Any] = request.param
    if "group_protocol" in chosen and not serves_consumer_protocol:
        pytest.skip("this broker has no groups of KIP-848")
    return chosen


@pytest.fixture
def make_topic(bootstrap: str, new_name: Any) -> Callable[..., str]:
    def make(partitions: int = 1, **config: str) -> str:
        topic: str = new_name()
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            options = {name.replace("_", "."): value for name, value in config.items()}
            wanted = NewTopic(topic, partitions, 1, topic_configs=options)
            admin.create_topics([wanted], wait_for_metadata=True)
        return topic

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()


def judge(bootstrap: str, topic: str, count: int, isolation: str = "read_committed") -> list[Any]:
    """Read so many messages of partition 0 with librdkafka, which checks checksums."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "check.crcs": True,
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([Place(topic, 0, 0)])
    found: list[Any] = []
    try:
        for _ in until_deadline(f"{count} messages of {topic}"):
            found += consumer.consume(count - len(found), 0.2)
            if len(found) == count:
                return found
    finally:
        consumer.close()
    raise AssertionError


def fill(bootstrap: str, topic: str, count: int, partitions: int = 1) -> None:
    """Write the values 0, 1, … to each partition, with librdkafka."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for partition in range(partitions):
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(WAIT_S) == 0


def plain_reader(bootstrap: str, *topics: str, **options: Any) -> KafkaConsumer:
    options = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 20_000, **options}
    return KafkaConsumer(*topics, bootstrap_servers=bootstrap, **options)


def take(consumer: KafkaConsumer, count: int) -> list[Any]:
    found = list(islice(consumer, count))
    assert len(found) == count
    return found


def as_sample(message: Any) -> Sample:
    return Sample(
        message.key(), message.value(), message.timestamp()[1], tuple(message.headers() or ())
    )


# Delivery.


@pytest.mark.parametrize("codec", CODECS)
def test_what_ours_write_librdkafka_reads(bootstrap: str, topic: str, codec: str) -> None:
    samples = make_samples()
    with KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=codec, linger_ms=20
    ) as producer:
        futures = [
            producer.send(
                topic, s.value, s.key, list(s.headers), partition=0, timestamp_ms=s.timestamp_ms
            )
            for s in samples
        ]
        assert [future.get(WAIT_S).offset for future in futures] == list(range(40))
    assert [as_sample(message) for message in judge(bootstrap, topic, 40)] == samples


@pytest.mark.parametrize("codec", CODECS)
def test_what_librdkafka_writes_ours_read(bootstrap: str, topic: str, codec: str) -> None:
    samples = make_samples()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20}
    )
    for s in samples:
        producer.produce(
            topic, s.value, s.key, headers=list(s.headers), timestamp=s.timestamp_ms, partition=0
        )
    assert producer.flush(WAIT_S) == 0
    with plain_reader(bootstrap, topic) as consumer:
        found = [Sample(r.key, r.value, r.timestamp, tuple(r.headers)) for r in take(consumer, 40)]
    assert found == samples


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(bootstrap: str, topic: str, acks: int | str) -> None:
    with KafkaProducer(
        bootstrap_servers=bootstrap, acks=acks, enable_idempotence=False
    ) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number)
        producer.flush(WAIT_S)
    found = judge(bootstrap, topic, 100)
    assert [message.value() for message in found] == [b"%d" % number for number in range(100)]


def test_many_records_in_small_batches_stay_in_order(bootstrap: str, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, batch_size=500) as producer:
        producer.send_many(topic, [b"%d" % number for number in range(20_000)]).get(WAIT_S)
    found = judge(bootstrap, topic, 20_000)
    assert [int(message.value()) for message in found] == list(range(20_000))


def test_a_record_of_megabytes(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(max_message_bytes="8000000")
    value = bytes(range(256)) * 20_000
    with KafkaProducer(bootstrap_servers=bootstrap, max_request_size=8_000_000) as producer:
        producer.send(topic, value).get(WAIT_S)
    with plain_reader(bootstrap, topic, max_partition_fetch_bytes=1000) as consumer:
        assert take(consumer, 1)[0].value == value


def test_a_record_that_the_broker_refuses(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(max_message_bytes="1000")
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(KafkaError) as caught:
            producer.send(topic, b"x" * 5000).get(WAIT_S)
        assert type(caught.value).__name__ in ("MessageSizeTooLargeError", "RecordTooLargeError")
        assert producer.send(topic, b"x").get(WAIT_S).offset == 0


def test_a_topic_is_made_by_its_first_record(bootstrap: str, new_name: Any) -> None:
    topic = new_name()
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        assert producer.send(topic, b"first").get(WAIT_S).offset == 0
    assert judge(bootstrap, topic, 1)[0].value() == b"first"


def test_tables(bootstrap: str, topic: str) -> None:
    rows = 10_000
    sent = pa.table(
        {
            "key": pa.array([None if n % 7 == 0 else b"k%d" % n for n in range(rows)], pa.binary()),
            "value": pa.array([b"v%d" % n for n in range(rows)], pa.binary()),
            "timestamp": pa.array(
                [1_700_000_000_000 + n for n in range(rows)], pa.timestamp("ms", tz="UTC")
            ),
        }
    )
    with KafkaProducer(bootstrap_servers=bootstrap, compression_type="lz4") as producer:
        places = producer.send_arrow(topic, sent).get(WAIT_S)
    assert sum(place.count for place in places) == rows
    batches: list[Any] = []
    with plain_reader(bootstrap, topic) as consumer:
        for _ in until_deadline("all rows"):
            batches.append(consumer.poll_arrow(500))
            if sum(batch.num_rows for batch in batches) == rows:
                break
    found = pa.Table.from_batches(batches)
    assert found.select(["key", "value", "timestamp"]).to_pylist() == sent.to_pylist()
    assert found["offset"].to_pylist() == list(range(rows))


def test_asyncio_producers_and_consumers(bootstrap: str, topic: str) -> None:
    async def program() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
            futures = [await producer.send(topic, b"%d" % number) for number in range(2000)]
            offsets = [(await future).offset for future in futures]
        assert offsets == list(range(2000))
        found: list[bytes] = []
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            async with asyncio.timeout(WAIT_S):
                async for record in consumer:
                    found.append(record.value)
                    if len(found) == 2000:
                        return found
        raise AssertionError

    assert asyncio.run(program()) == [b"%d" % number for number in range(2000)]


# Groups.


def drain(
    consumers: list[KafkaConsumer], done: Callable[[], bool], seen: Counter[tuple[int, int]]
) -> None:
    """Poll members in turn until it is done, and count what they read."""
    for _ in until_deadline("the group"):
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=50).values():
                seen.update((record.partition, record.offset) for record in records)
        if done():
            return


def test_members_come_and_go(
    bootstrap: str, make_topic: Callable[..., str], protocol: dict[str, Any]
) -> None:
    topic = make_topic(4)
    fill(bootstrap, topic, 50, 4)
    everything = {(partition, offset) for partition in range(4) for offset in range(50)}
    seen: Counter[tuple[int, int]] = Counter()
    options = {"group_id": topic, **protocol}
    if "group_protocol" not in protocol:
        options["heartbeat_interval_ms"] = 100
    with ExitStack() as stack:
        first = stack.enter_context(closing(plain_reader(bootstrap, topic, **options)))
        drain([first], lambda: set(seen) == everything, seen)
        first.commit()
        second = stack.enter_context(closing(plain_reader(bootstrap, topic, **options)))
        drain(
            [first, second],
            lambda: len(first.assignment()) == len(second.assignment()) == 2,
            seen,
        )
        fill(bootstrap, topic, 50, 4)
        everything |= {(partition, offset) for partition in range(4) for offset in range(50, 100)}
        drain([first, second], lambda: set(seen) == everything, seen)
        first.commit()
        second.commit()
        first.close()
        drain([second], lambda: len(second.assignment()) == 4, seen)
        fill(bootstrap, topic, 1, 4)
        everything |= {(partition, 100) for partition in range(4)}
        drain([second], lambda: set(seen) == everything, seen)
    # Every member committed before its partitions went to another: nothing came twice.
    assert max(seen.values()) == 1


def test_members_on_asyncio(
    bootstrap: str, make_topic: Callable[..., str], protocol: dict[str, Any]
) -> None:
    topic = make_topic(4)
    fill(bootstrap, topic, 50, 4)
    options = {
        "bootstrap_servers": bootstrap,
        "group_id": topic,
        "auto_offset_reset": "earliest",
        **protocol,
    }
    if "group_protocol" not in protocol:
        options["heartbeat_interval_ms"] = 100
    everything = {(partition, offset) for partition in range(4) for offset in range(50)}
    seen: Counter[tuple[int, int]] = Counter()

    async def read(consumer: AIOKafkaConsumer) -> None:
        async for record in consumer:
            seen[record.partition, record.offset] += 1

    async def reach(what: str, done: Callable[[], bool]) -> None:
        for _ in until_deadline(what):
            if done():
                return
            await asyncio.sleep(0.01)

    async def program() -> None:
        async with AIOKafkaConsumer(topic, **options) as first:
            reading = asyncio.create_task(read(first))
            await reach("all records", lambda: set(seen) == everything)
            async with AIOKafkaConsumer(topic, **options) as second:
                also = asyncio.create_task(read(second))
                await asyncio.sleep(0)  # iteration must have begun when the consumer stops
                await reach(
                    "two partitions each",
                    lambda: len(first.assignment()) == len(second.assignment()) == 2,
                )
            await also
            await reach("all partitions", lambda: len(first.assignment()) == 4)
        await reading

    asyncio.run(program())
    assert set(seen) == everything


def test_a_member_with_a_name_keeps_its_partitions(
    bootstrap: str, make_topic: Callable[..., str], protocol: dict[str, Any]
) -> None:
    topic = make_topic(2)
    fill(bootstrap, topic, 1, 2)
    options = {"group_id": topic, "group_instance_id": "the-one", **protocol}
    for _ in range(2):
        with plain_reader(bootstrap, topic, **options) as consumer:
            drain([consumer], lambda: len(consumer.assignment()) == 2, Counter())
            consumer.commit()
            assert consumer.group_metadata().group_instance_id == "the-one"


def test_a_group_notices_new_partitions(
    bootstrap: str, make_topic: Callable[..., str], protocol: dict[str, Any]
) -> None:
    topic = make_topic(1)
    options = {"group_id": topic, "metadata_max_age_ms": 200, **protocol}
    with (
        plain_reader(bootstrap, topic, **options) as consumer,
        KafkaAdminClient(bootstrap_servers=bootstrap) as admin,
    ):
        drain([consumer], lambda: len(consumer.assignment()) == 1, Counter())
        admin.create_partitions({topic: NewPartitions(3)})
        drain([consumer], lambda: len(consumer.assignment()) == 3, Counter())


def test_offsets_outlive_members(bootstrap: str, topic: str, protocol: dict[str, Any]) -> None:
    fill(bootstrap, topic, 20)
    place = TopicPartition(topic, 0)
    options = {"group_id": topic, "enable_auto_commit": False, **protocol}
    with plain_reader(bootstrap, topic, **options) as consumer:
        take(consumer, 7)
        consumer.commit({place: OffsetAndMetadata(7, "seven")})
    with plain_reader(bootstrap, topic, **options) as consumer:
        assert take(consumer, 1)[0].offset == 7
        assert consumer.committed(place, metadata=True).metadata == "seven"
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        assert admin.list_group_offsets([topic])[topic][place].offset == 7


def test_ours_and_librdkafka_in_one_group(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(4)
    fill(bootstrap, topic, 10, 4)
    theirs = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 100,
        }
    )
    theirs.subscribe([topic])
    options = {"partition_assignment_strategy": ["range"], "heartbeat_interval_ms": 100}
    with closing(theirs), plain_reader(bootstrap, topic, group_id=topic, **options) as ours:
        for _ in until_deadline("two partitions each"):
            theirs.poll(0.05)
            ours.poll(timeout_ms=50)
            if len(theirs.assignment()) == len(ours.assignment()) == 2:
                break
        both = {each.partition for each in theirs.assignment()}
        both |= {each.partition for each in ours.assignment()}
        assert both == {0, 1, 2, 3}


# Transactions.


def test_transactions_as_librdkafka_sees_them(bootstrap: str, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number).get(WAIT_S)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    assert [message.value() for message in judge(bootstrap, topic, 3)] == [b"0", b"2", b"4"]
    assert len(judge(bootstrap, topic, 6, "read_uncommitted")) == 6


def test_aborted_records_are_skipped(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number, partition=0)
        assert producer.flush(WAIT_S) == 0
        if number % 2:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    with plain_reader(bootstrap, topic, isolation_level="read_committed") as consumer:
        assert [record.value for record in take(consumer, 3)] == [b"0", b"2", b"4"]
    with plain_reader(bootstrap, topic) as consumer:
        assert len(take(consumer, 6)) == 6


def test_a_second_producer_fences_the_first(bootstrap: str, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as old:
        old.init_transactions()
        old.begin_transaction()
        old.send(topic, b"old").get(WAIT_S)
        with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as new:
            new.init_transactions()
            with pytest.raises(ProducerFencedError):
                old.commit_transaction()
            new.begin_transaction()
            new.send(topic, b"new")
            new.commit_transaction()
    assert [message.value() for message in judge(bootstrap, topic, 1)] == [b"new"]


def test_exactly_once_while_members_come_and_go(
    bootstrap: str, make_topic: Callable[..., str], protocol: dict[str, Any]
) -> None:
    source, target = make_topic(4), make_topic(1)
    fill(bootstrap, source, 100, 4)
    stop = threading.Event()
    failures: list[BaseException] = []

    def work(number: int, rounds: int | None) -> None:
        """Copy records in transactions; as one that stops for good after some rounds."""
        try:
            with (
                KafkaProducer(
                    bootstrap_servers=bootstrap, transactional_id=f"{target}-{number}"
                ) as producer,
                plain_reader(
                    bootstrap,
                    source,
                    group_id=source,
                    enable_auto_commit=False,
                    isolation_level="read_committed",
                    max_poll_records=10,
                    **protocol,
                ) as consumer,
            ):
                producer.init_transactions()
                while not stop.is_set() and rounds != 0:
                    found = consumer.poll(timeout_ms=100)
                    if not found:
                        continue
                    rounds = rounds - 1 if rounds is not None else None
                    producer.begin_transaction()
                    for place, records in found.items():
                        for record in records:
                            producer.send(target, b"%d %s" % (place.partition, record.value))
                    positions = {
                        place: OffsetAndMetadata(records[-1].offset + 1)
                        for place, records in found.items()
                    }
                    try:
                        producer.send_offsets_to_transaction(positions, consumer.group_metadata())
                        producer.commit_transaction()
                    except KafkaError:  # the group moved on without this member
                        producer.abort_transaction()
                        for place in found:
                            if place in consumer.assignment():
                                committed = consumer.committed(place)
                                consumer.seek(place, committed or 0)
        except BaseException as failure:  # noqa: BLE001  # shown by the test's own thread
            failures.append(failure)

    workers = [
        threading.Thread(target=work, args=(number, rounds))
        for number, rounds in enumerate([2, None, 3])
    ]
    for worker in workers:
        worker.start()
    try:
        copied = [message.value() for message in judge(bootstrap, target, 400)]
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert failures == []
    wanted = Counter(b"%d %d" % (part, number) for part in range(4) for number in range(100))
    assert Counter(copied) == wanted


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    """Whatever the clients start, their close ends."""
    before = set(threading.enumerate())
    yield
    for _ in until_deadline("the end of the clients' threads", 60):
        if not [t for t in threading.enumerate() if t not in before]:
            break
