"""What kafka-python's documentation shows, with kafka-python and with ours: one import differs.

Every program below gets the library as its one difference and must see the same. The file also
runs against Apache Kafka (tests/interop/test_clients.py), with our library alone.
"""

from __future__ import annotations

import importlib
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.compat.samples import until_deadline

import barnabas
import barnabas.errors

pytestmark = pytest.mark.compat


class Library:
    """The modules that a program imports from, under the root's name."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.kafka: Any = importlib.import_module(root)
        self.errors: Any = importlib.import_module(f"{root}.errors")
        self.structs: Any = importlib.import_module(f"{root}.structs")
        self.admin: Any = importlib.import_module(f"{root}.admin")


@pytest.fixture(params=["kafka", "barnabas"])
def library(request: pytest.FixtureRequest) -> Library:
    with warnings.catch_warnings():
        # kafka-python reads its schemas through functions that are on their way out.
        warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
        return Library(request.param)


@pytest.fixture(scope="session")
def bootstrap(quick_bootstrap: str) -> str:
    """A broker where groups do not wait for more members."""
    return quick_bootstrap


@pytest.fixture
def make_topic(library: Library, bootstrap: str, new_name: Any) -> Callable[..., str]:
    def make(partitions: int = 1) -> str:
        topic: str = new_name()
        with closing(library.kafka.KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
            admin.wait_for_topics([topic])
        return topic

    return make


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    return make_topic()


def fill(library: Library, bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    """Send the values b"0", b"1", …, each a second after the one before."""
    start_ms = 1_700_000_000_000
    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        for number in range(count):
            producer.send(
                topic, b"%d" % number, partition=partition, timestamp_ms=start_ms + 1000 * number
            )
        producer.flush(timeout=30)


def reader(library: Library, bootstrap: str, *topics: str, **options: Any) -> Any:
    """Return a consumer that starts at the beginning and ends when nothing comes for a while."""
    options = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 30_000, **options}
    return library.kafka.KafkaConsumer(*topics, bootstrap_servers=bootstrap, **options)


def take(consumer: Any, count: int) -> list[Any]:
    """Iterate over so many records."""
    found = []
    for record in consumer:
        found.append(record)
        if len(found) == count:
            break
    assert len(found) == count
    return found


# Producers.


def test_fire_and_forget_then_flush(library: Library, bootstrap: str, topic: str) -> None:
    producer = library.kafka.KafkaProducer(bootstrap_servers=[bootstrap])
    for _ in range(100):
        producer.send(topic, b"some_message_bytes")
    producer.flush()
    producer.close()
    with closing(reader(library, bootstrap, topic)) as consumer:
        found = take(consumer, 100)
    assert {record.value for record in found} == {b"some_message_bytes"}
    assert [record.offset for record in found] == list(range(100))


def test_wait_for_the_metadata(library: Library, bootstrap: str, topic: str) -> None:
    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        future = producer.send(topic, b"another_message")
        metadata = future.get(timeout=60)
        assert (metadata.topic, metadata.partition, metadata.offset) == (topic, 0, 0)
        assert metadata.timestamp > 0
        assert producer.send(topic, b"the next").get(timeout=60).offset == 1


def test_keys_choose_partitions(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(8)
    keys = [b"key-%d" % number for number in range(50)]
    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        futures = [producer.send(topic, key=key, value=b"bar") for key in keys]
        partitions = [future.get(timeout=30).partition for future in futures]
        assert producer.partitions_for(topic) == set(range(8))
    # kafka-python's hash function is the judge of both.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        murmur2 = importlib.import_module("kafka.partitioner.default").murmur2
    assert partitions == [(murmur2(key) & 0x7FFFFFFF) % 8 for key in keys]
    assert len(set(partitions)) == 8


def test_texts_and_json(library: Library, bootstrap: str, make_topic: Callable[..., str]) -> None:
    DefaultSerializer, JsonSerializer = (
        library.kafka.DefaultSerializer,
        library.kafka.JsonSerializer,
    )
    for serializer, sent in (
        (DefaultSerializer(), "value_str"),
        (DefaultSerializer("utf-16"), "懂不懂"),
        (JsonSerializer(), {"key": ["value", 1, None]}),
    ):
        topic = make_topic()
        with closing(
            library.kafka.KafkaProducer(bootstrap_servers=bootstrap, value_serializer=serializer)
        ) as producer:
            producer.send(topic, sent).get(timeout=30)
        with closing(reader(library, bootstrap, topic, value_deserializer=serializer)) as consumer:
            assert take(consumer, 1)[0].value == sent


@pytest.mark.filterwarnings("ignore:.* does not implement kafka.serializer:DeprecationWarning")
def test_serializers_that_are_functions(library: Library, bootstrap: str, topic: str) -> None:
    pair = struct.Struct("<iq")  # a packed format, as msgpack would be
    with closing(
        library.kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            key_serializer=str.encode,
            value_serializer=lambda value: pair.pack(*value),
        )
    ) as producer:
        producer.send(topic, key="ping", value=(1, 1234)).get(timeout=30)
    with closing(
        reader(
            library,
            bootstrap,
            topic,
            key_deserializer=bytes.decode,
            value_deserializer=pair.unpack,
        )
    ) as consumer:
        record = take(consumer, 1)[0]
    assert (record.key, record.value) == ("ping", (1, 1234))


def test_a_serializer_of_the_users_own(library: Library, bootstrap: str, topic: str) -> None:
    class Shouting(library.kafka.Serializer):  # type: ignore[misc, name-defined]
        closed = False

        def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
            return f"{topic}/{dict(headers or ())}/{data}!".encode()

        def close(self) -> None:
            self.closed = True

    shouting = Shouting()
    producer = library.kafka.KafkaProducer(bootstrap_servers=bootstrap, value_serializer=shouting)
    producer.send(topic, "hello", headers=[("lang", b"en")]).get(timeout=30)
    producer.close()
    assert shouting.closed
    with closing(reader(library, bootstrap, topic)) as consumer:
        assert take(consumer, 1)[0].value == f"{topic}/{{'lang': b'en'}}/hello!".encode()


def test_compression(library: Library, bootstrap: str, topic: str) -> None:
    with closing(
        library.kafka.KafkaProducer(
            bootstrap_servers=bootstrap, compression_type="gzip", linger_ms=20
        )
    ) as producer:
        for number in range(1000):
            producer.send(topic, b"msg %d" % number)
        producer.flush(timeout=30)
    with closing(reader(library, bootstrap, topic)) as consumer:
        found = take(consumer, 1000)
    assert [record.value for record in found] == [b"msg %d" % number for number in range(1000)]


def test_callbacks(library: Library, bootstrap: str, topic: str) -> None:
    told: list[Any] = []
    both = threading.Event()

    def on_success(metadata: Any) -> None:
        told.append((metadata.topic, metadata.partition, metadata.offset))

    def on_error(failure: Exception) -> None:
        told.append(failure)

    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap, retries=5)) as producer:
        future = producer.send(topic, b"raw_bytes").add_callback(on_success).add_errback(on_error)
        future.add_both(lambda _: both.set())
        producer.flush()
        assert both.wait(30)
    assert told == [(topic, 0, 0)]


def test_headers(library: Library, bootstrap: str, topic: str) -> None:
    headers = [("content-encoding", b"base64"), ("empty", b"")]
    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        producer.send(topic, value=b"c29tZSB2YWx1ZQ==", headers=headers).get(timeout=30)
    with closing(reader(library, bootstrap, topic)) as consumer:
        assert list(take(consumer, 1)[0].headers) == headers


def test_a_record_that_is_too_large(library: Library, bootstrap: str, topic: str) -> None:
    with closing(
        library.kafka.KafkaProducer(bootstrap_servers=bootstrap, max_request_size=1000)
    ) as producer:
        with pytest.raises(library.errors.MessageSizeTooLargeError):
            producer.send(topic, b"x" * 1001)
        assert producer.send(topic, b"x" * 10).get(timeout=30).offset == 0


def test_a_wait_that_is_too_short(library: Library, bootstrap: str, topic: str) -> None:
    producer = library.kafka.KafkaProducer(bootstrap_servers=bootstrap, linger_ms=60_000)
    future = producer.send(topic, b"waits for company")
    with pytest.raises(library.errors.KafkaTimeoutError):
        future.get(timeout=0.01)
    assert not future.is_done
    producer.flush(timeout=30)
    assert future.succeeded()
    producer.close(timeout=30)


def test_errors_are_kafka_errors(library: Library) -> None:
    errors = library.errors
    assert issubclass(errors.KafkaTimeoutError, errors.KafkaError)
    assert issubclass(errors.KafkaConnectionError, errors.KafkaError)
    assert issubclass(errors.TopicAlreadyExistsError, errors.BrokerResponseError)
    assert errors.UnknownTopicOrPartitionError.errno == 3
    assert errors.UnknownTopicOrPartitionError.retriable
    assert errors.UnknownTopicOrPartitionError.invalid_metadata
    assert not errors.TopicAlreadyExistsError.retriable


def test_nobody_listens() -> None:
    # Ours alone: kafka-python leaves its sockets to the garbage collector.
    with pytest.raises(barnabas.errors.NoBrokersAvailable) as caught:
        barnabas.KafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=200)
    assert "127.0.0.1:1" in str(caught.value)


def test_the_cluster_was_found(bootstrap: str) -> None:
    # Ours alone: kafka-python 3 says no once it talks to brokers instead of bootstrap addresses.
    with closing(barnabas.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        assert producer.bootstrap_connected()
    with closing(barnabas.KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
        assert consumer.bootstrap_connected()


def test_transactions(library: Library, bootstrap: str, topic: str) -> None:
    producer = library.kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, value=b"yes").get(timeout=30)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send(topic, value=b"no").get(timeout=30)
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send(topic, value=b"again").get(timeout=30)
    producer.commit_transaction()
    producer.close()
    READ_COMMITTED = library.kafka.IsolationLevel.READ_COMMITTED
    with closing(reader(library, bootstrap, topic, isolation_level=READ_COMMITTED)) as consumer:
        assert [record.value for record in take(consumer, 2)] == [b"yes", b"again"]
    with closing(reader(library, bootstrap, topic)) as consumer:
        assert [record.value for record in take(consumer, 3)] == [b"yes", b"no", b"again"]


def test_metrics(library: Library, bootstrap: str, topic: str) -> None:
    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        producer.send(topic, b"1").get(timeout=30)
        metrics = producer.metrics()
        assert metrics["producer-metrics"]["record-send-rate"] > 0
        assert metrics["producer-metrics"]["request-rate"] > 0
    with closing(reader(library, bootstrap, topic)) as consumer:
        take(consumer, 1)
        metrics = consumer.metrics()
        assert metrics["consumer-fetch-manager-metrics"]["records-consumed-rate"] > 0


# Consumers.


def test_iterate(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 3)
    with closing(reader(library, bootstrap, topic)) as consumer:
        found = [(r.topic, r.partition, r.offset, r.key, r.value) for r in take(consumer, 3)]
    assert found == [(topic, 0, number, None, b"%d" % number) for number in range(3)]


def test_iterate_again_when_the_time_was_up(library: Library, bootstrap: str, topic: str) -> None:
    place = library.kafka.TopicPartition(topic, 0)
    with closing(reader(library, bootstrap, consumer_timeout_ms=500)) as consumer:
        consumer.assign([place])
        assert [record.value for record in consumer] == []
        fill(library, bootstrap, topic, 2)
        found: list[bytes] = []
        for _ in until_deadline("two records"):
            found += [record.value for record in consumer]
            if len(found) >= 2:
                break
        assert found == [b"0", b"1"]
        fill(library, bootstrap, topic, 1)
        for _ in until_deadline("the third record"):
            if (record := next(consumer, None)) is not None:
                break
        assert record.offset == 2
        with pytest.raises(StopIteration):
            next(consumer)
        fill(library, bootstrap, topic, 1)
        for _ in until_deadline("the fourth record"):
            if offsets := [record.offset for record in consumer]:
                break
        assert offsets == [3]


def test_assign_by_hand(library: Library, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    fill(library, bootstrap, topic, 2, partition=2)
    place = library.kafka.TopicPartition(topic, 2)
    with closing(reader(library, bootstrap)) as consumer:
        consumer.assign([place])
        assert consumer.assignment() == {place}
        record = next(consumer)
        assert (record.partition, record.value) == (2, b"0")
        assert next(consumer).value == b"1"
        assert consumer.position(place) == 2


def test_a_group_goes_on_where_it_was(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 10)
    with closing(reader(library, bootstrap, topic, group_id=topic)) as consumer:
        assert [record.value for record in take(consumer, 4)] == [b"0", b"1", b"2", b"3"]
        # Closing commits what iteration has given out.
    with closing(reader(library, bootstrap, topic, group_id=topic)) as consumer:
        assert take(consumer, 1)[0].offset == 4


def test_commit_each_record_by_hand(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 5)
    TopicPartition, OffsetAndMetadata = (
        library.kafka.TopicPartition,
        library.kafka.OffsetAndMetadata,
    )
    place = TopicPartition(topic, 0)
    options = {"group_id": topic, "enable_auto_commit": False}
    with closing(reader(library, bootstrap, topic, **options)) as consumer:
        for message in consumer:
            consumer.commit(
                {
                    TopicPartition(message.topic, message.partition): OffsetAndMetadata(
                        message.offset + 1, "done", -1
                    )
                }
            )
            if message.offset == 2:
                break
        assert consumer.committed(place) == 3
        assert consumer.committed(place, metadata=True).metadata == "done"
    with closing(reader(library, bootstrap, topic, **options)) as consumer:
        assert next(consumer).value == b"3"


def test_commit_without_waiting(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 2)
    told: list[Any] = []
    place = library.kafka.TopicPartition(topic, 0)
    options = {"group_id": topic, "enable_auto_commit": False}
    with closing(reader(library, bootstrap, topic, **options)) as consumer:
        take(consumer, 2)
        consumer.commit_async(callback=lambda offsets, outcome: told.append((offsets, outcome)))
        for _ in until_deadline("the callback of a commit"):
            consumer.poll(timeout_ms=20)
            if told:
                break
        ((offsets, outcome),) = told
        assert offsets[place].offset == 2
        assert not isinstance(outcome, Exception)
        assert consumer.committed(place) == 2


def test_offsets_for_times_and_ends(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 10)
    place = library.kafka.TopicPartition(topic, 0)
    with closing(reader(library, bootstrap)) as consumer:
        found = consumer.offsets_for_times({place: 1_700_000_004_500})[place]
        assert (found.offset, found.timestamp) == (5, 1_700_000_005_000)
        assert consumer.offsets_for_times({place: 1_800_000_000_000}) == {place: None}
        assert consumer.beginning_offsets([place]) == {place: 0}
        assert consumer.end_offsets([place]) == {place: 10}
        consumer.assign([place])
        consumer.seek(place, found.offset)
        assert next(consumer).value == b"5"


def test_seek(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 10)
    place = library.kafka.TopicPartition(topic, 0)
    with closing(reader(library, bootstrap)) as consumer:
        consumer.assign([place])
        consumer.seek(place, 7)
        assert next(consumer).offset == 7
        consumer.seek_to_beginning(place)
        assert next(consumer).offset == 0
        consumer.seek_to_end()
        assert consumer.position(place) == 10
        fill(library, bootstrap, topic, 1)
        assert next(consumer).offset == 10
        assert consumer.highwater(place) == 11
        with pytest.raises((AssertionError, ValueError)):
            consumer.seek(place, -1)


def test_poll_gives_lists_by_partition(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        fill(library, bootstrap, topic, 5, partition)
    found: dict[Any, list[int]] = {}
    with closing(reader(library, bootstrap, topic, group_id=topic)) as consumer:
        for _ in until_deadline("ten records"):
            polled = consumer.poll(timeout_ms=500, max_records=3)
            assert sum(map(len, polled.values())) <= 3
            for place, records in polled.items():
                found.setdefault(place, []).extend(record.offset for record in records)
            if sum(map(len, found.values())) == 10:
                break
    assert found == {library.kafka.TopicPartition(topic, n): list(range(5)) for n in (0, 1)}


def test_pause_and_resume(library: Library, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        fill(library, bootstrap, topic, 3, partition)
    first, second = (library.kafka.TopicPartition(topic, number) for number in (0, 1))
    with closing(reader(library, bootstrap)) as consumer:
        consumer.assign([first, second])
        consumer.pause(first)
        assert consumer.paused() == {first}
        assert {record.partition for record in take(consumer, 3)} == {1}
        consumer.resume(first)
        assert consumer.paused() == set()
        assert {record.partition for record in take(consumer, 3)} == {0}


def test_subscribe_by_pattern(library: Library, bootstrap: str, new_name: Any) -> None:
    prefix = new_name().replace(".", "-")
    names = [f"{prefix}-awesome-1", f"{prefix}-awesome-2", f"{prefix}-dull"]
    with closing(library.kafka.KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics({name: {"num_partitions": 1} for name in names})
        admin.wait_for_topics(names)
    for name in names:
        fill(library, bootstrap, name, 1)
    with closing(reader(library, bootstrap, group_id=prefix)) as consumer:
        consumer.subscribe(pattern=f"^{prefix}-awesome.*")
        assert {record.topic for record in take(consumer, 2)} == set(names[:2])
        assert consumer.subscription() == set(names[:2])
        assert set(names) <= consumer.topics()
        assert consumer.partitions_for_topic(names[0]) == {0}
        consumer.unsubscribe()
        assert not consumer.subscription()


def test_members_share_partitions_and_listeners_are_told(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)

    class Listener(library.kafka.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.assigned: list[Any] = []
            self.revoked: list[Any] = []

        def on_partitions_revoked(self, revoked: Any) -> None:
            self.revoked.append(set(revoked))

        def on_partitions_assigned(self, assigned: Any) -> None:
            self.assigned.append(set(assigned))

    both = {library.kafka.TopicPartition(topic, number) for number in (0, 1)}
    listener = Listener()
    # Sessions as short as the tests' broker allows are not Apache Kafka's default: leave them.
    first = reader(library, bootstrap, group_id=topic, heartbeat_interval_ms=100)
    second = reader(library, bootstrap, group_id=topic, heartbeat_interval_ms=100)
    with closing(first), closing(second):
        first.subscribe([topic], listener=listener)
        for _ in until_deadline("the first member's assignment"):
            first.poll(timeout_ms=50)
            if first.assignment() == both:
                break
        assert both in listener.assigned
        second.subscribe([topic])
        for _ in until_deadline("a partition each"):
            first.poll(timeout_ms=50)
            second.poll(timeout_ms=50)
            if len(first.assignment()) == len(second.assignment()) == 1:
                break
        assert first.assignment() | second.assignment() == both
        assert any(listener.revoked)
        second.close()
        for _ in until_deadline("both partitions again"):
            first.poll(timeout_ms=50)
            if first.assignment() == both:
                break


def test_a_listener_asks_and_moves_its_consumer(bootstrap: str, new_name: Any) -> None:
    # Ours alone: listeners of kafka-python 3 must not call what waits.
    library, topic = Library("barnabas"), new_name()
    fill(library, bootstrap, topic, 5)

    class Listener(library.kafka.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]
        found: tuple[Any, ...] = ()

        def on_partitions_revoked(self, revoked: Any) -> None:
            consumer.commit()

        def on_partitions_assigned(self, assigned: Any) -> None:
            for place in assigned:
                self.found = (consumer.committed(place), consumer.position(place))
                consumer.seek(place, 3)

    listener = Listener()
    consumer = reader(library, bootstrap, group_id=topic, enable_auto_commit=False)
    with closing(consumer):
        consumer.subscribe([topic], listener=listener)
        assert [record.offset for record in take(consumer, 2)] == [3, 4]
        assert listener.found == (None, 0)


def test_offsets_in_a_transaction(
    library: Library, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    source, target = make_topic(), make_topic()
    fill(library, bootstrap, source, 3)
    place = library.kafka.TopicPartition(source, 0)
    producer = library.kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=target)
    producer.init_transactions()
    # Only readers of committed records wait until the offsets of a transaction are in place.
    options = {
        "group_id": source,
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
    }
    with closing(reader(library, bootstrap, source, **options)) as consumer, closing(producer):
        producer.begin_transaction()
        for record in take(consumer, 3):
            producer.send(target, record.value * 2)
        producer.send_offsets_to_transaction(
            {place: library.kafka.OffsetAndMetadata(3, "", -1)}, consumer.group_metadata()
        )
        producer.commit_transaction()
        assert consumer.committed(place) == 3
    with closing(reader(library, bootstrap, target, isolation_level="read_committed")) as consumer:
        assert [record.value for record in take(consumer, 3)] == [b"00", b"11", b"22"]


# Administration.


def test_administer_topics(library: Library, bootstrap: str, new_name: Any) -> None:
    plain, detailed = new_name(), new_name()
    with closing(library.kafka.KafkaAdminClient(bootstrap_servers=[bootstrap])) as admin:
        admin.create_topics([plain], timeout_ms=None, validate_only=False)
        admin.create_topics(
            {
                detailed: {
                    "num_partitions": 2,
                    "replication_factor": 1,
                    "configs": {"max.message.bytes": "100000"},
                }
            }
        )
        admin.wait_for_topics([plain, detailed])
        assert {plain, detailed} <= set(admin.list_topics())
        (described,) = admin.describe_topics([detailed])
        assert len(described["partitions"]) == 2
        resource = library.admin.ConfigResource("topic", detailed)
        options = admin.describe_configs([resource])["topic"][detailed]
        assert options["max.message.bytes"]["value"] == "100000"
        with pytest.raises(library.errors.TopicAlreadyExistsError):
            admin.create_topics([plain])
        admin.delete_topics([plain])
        for _ in until_deadline("the topic's end"):
            if plain not in admin.list_topics():
                break
        assert len(admin.describe_cluster()["brokers"]) == 1


def test_look_at_groups(library: Library, bootstrap: str, topic: str) -> None:
    fill(library, bootstrap, topic, 3)
    place = library.kafka.TopicPartition(topic, 0)
    with (
        closing(reader(library, bootstrap, topic, group_id=topic)) as consumer,
        closing(library.kafka.KafkaAdminClient(bootstrap_servers=bootstrap)) as admin,
    ):
        take(consumer, 3)
        consumer.commit()
        assert topic in {group["group_id"] for group in admin.list_groups()}
        described = admin.describe_groups([topic])[topic]
        assert described["group_state"] == "Stable"
        assert len(described["members"]) == 1
        assert admin.list_group_offsets([topic])[topic][place].offset == 3


def test_the_time_of_a_record(library: Library, bootstrap: str, topic: str) -> None:
    before_ms = int(time.time() * 1000)
    with closing(library.kafka.KafkaProducer(bootstrap_servers=bootstrap)) as producer:
        sent = producer.send(topic, b"now").get(timeout=30)
        given = producer.send(topic, b"then", timestamp_ms=1_700_000_000_000).get(timeout=30)
    after_ms = int(time.time() * 1000)
    assert before_ms <= sent.timestamp <= after_ms
    assert given.timestamp == 1_700_000_000_000
    with closing(reader(library, bootstrap, topic)) as consumer:
        first, second = take(consumer, 2)
    assert (first.timestamp, second.timestamp) == (sent.timestamp, 1_700_000_000_000)
    assert first.timestamp_type == 0


@pytest.fixture(autouse=True)
def _no_threads_are_left() -> Iterator[None]:
    """Whatever a program's clients start, their close ends."""
    before = set(threading.enumerate())
    yield
    for _ in until_deadline("the end of the clients' threads", 60):
        if not [t for t in threading.enumerate() if t not in before and not t.daemon]:
            break
