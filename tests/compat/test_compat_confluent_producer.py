"""`Producer` of confluent-kafka and of barnabas.compat.confluent_kafka: the same outcomes."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from tests.compat.confluent import Confluent
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat

NOWHERE = "127.0.0.1:1"


class Reports:
    """A delivery callback that keeps what it gets."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, Any]] = []
        self.threads: set[int] = set()

    def __call__(self, error: Any, message: Any) -> None:
        self.found.append((error, message))
        self.threads.add(threading.get_ident())

    @property
    def codes(self) -> list[str | None]:
        return [None if error is None else error.name() for error, _ in self.found]


def test_delivery_is_reported_in_poll_and_flush(
    confluent: Confluent, quick_bootstrap: str, name: str
) -> None:
    confluent.topic(quick_bootstrap, name)
    reports = Reports()
    producer = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    producer.produce(
        name,
        "wert",
        "schlüssel",
        on_delivery=reports,
        timestamp=1_700_000_000_000,
        headers={"a": b"1", "b": None, "c": "x"},
    )
    producer.produce(name, callback=reports, value=None, key=b"gone", partition=0)
    assert len(producer) == 2
    for _ in until_deadline("the reports"):
        assert bool(producer)
        if producer.poll(0.1) and len(reports.found) == 2:
            break
    assert len(producer) == 0
    assert producer.flush() == 0
    (error, first), (_, second) = reports.found
    assert error is None
    assert first.error() is None
    assert (first.topic(), first.partition(), first.offset()) == (name, 0, 0)
    assert (first.key(), first.value(), len(first)) == ("schlüssel".encode(), b"wert", 4)
    assert first.timestamp() == (confluent.kafka.TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    assert first.headers() is None  # reports have none
    assert first.leader_epoch() is None
    assert 0 < first.latency() < 30
    assert (second.offset(), second.value(), len(second)) == (1, None, 0)
    assert reports.threads == {threading.get_ident()}


def test_nothing_is_reported_without_poll(
    confluent: Confluent, quick_bootstrap: str, name: str
) -> None:
    confluent.topic(quick_bootstrap, name)
    reports = Reports()
    producer = confluent.kafka.Producer(
        {"bootstrap.servers": quick_bootstrap, "on_delivery": reports, "linger.ms": 0}
    )
    producer.produce(name, b"v")
    reader = confluent.consumer(quick_bootstrap, f"{name}.group")
    reader.assign([confluent.kafka.TopicPartition(name, 0, 0)])
    assert reader.poll(30).value() == b"v"  # it has been delivered
    reader.close()
    assert reports.found == []
    assert len(producer) > 0
    assert producer.poll(10) == 1
    assert (reports.codes, len(producer)) == ([None], 0)
    assert producer.poll(0) == 0


def test_a_full_queue(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)
    reports = Reports()
    conf = {
        "bootstrap.servers": quick_bootstrap,
        "queue.buffering.max.messages": 2,
        "linger.ms": 60_000,
        "on_delivery": reports,
    }
    producer = confluent.kafka.Producer(conf)
    producer.produce(name, b"1")
    producer.produce(name, b"2")
    with pytest.raises(BufferError, match=r"^Local: Queue full$"):
        producer.produce(name, b"3")
    assert producer.flush(0) == 2
    batch: list[dict[str, Any]] = [{"value": b"4"}, {"value": b"5"}]
    assert producer.produce_batch(name, batch) == 0
    assert [each["_error"].code() for each in batch] == [confluent.kafka.KafkaError._QUEUE_FULL] * 2
    assert producer.flush(30) == 0  # which does not linger
    assert producer.produce_batch(name, [{"value": b"6"}]) == 1
    assert producer.flush(30) == 0
    assert [message.value() for _, message in reports.found] == [b"1", b"2", b"6"]


def test_no_broker_in_time(confluent: Confluent, name: str) -> None:
    reports, errors = Reports(), []
    producer = confluent.kafka.Producer(
        {
            "bootstrap.servers": NOWHERE,
            "message.timeout.ms": 300,
            "error_cb": errors.append,
            "on_delivery": reports,
        }
    )
    producer.produce(name, b"v", b"k", 3)
    assert producer.flush(30) == 0
    assert reports.codes == ["_MSG_TIMED_OUT"]
    (error, message) = reports.found[0]
    assert message.error() == error
    assert error.str().startswith("Local: Message timed out")
    assert not error.fatal()
    assert (message.topic(), message.partition(), message.offset(), message.value()) == (
        name,
        3,
        None,
        b"v",
    )
    for _ in until_deadline("error_cb"):
        producer.poll(0.1)
        if confluent.kafka.KafkaError._ALL_BROKERS_DOWN in [each.code() for each in errors]:
            break
    assert confluent.kafka.KafkaError._TRANSPORT in [each.code() for each in errors]
    assert not any(each.fatal() for each in errors)


def test_what_cannot_be_produced(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)
    KafkaError, KafkaException = confluent.kafka.KafkaError, confluent.kafka.KafkaException
    reports = Reports()
    producer = confluent.kafka.Producer(
        {"bootstrap.servers": quick_bootstrap, "message.max.bytes": 2000, "on_delivery": reports}
    )
    with pytest.raises(KafkaException) as failure:
        producer.produce(name, b"x" * 3000)
    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert len(producer) == 0
    producer.produce(name, b"v", partition=7)  # the topic is not known yet
    assert producer.flush(30) == 0
    assert reports.codes == ["_UNKNOWN_PARTITION"]
    with pytest.raises(KafkaException) as failure:
        producer.produce(name, b"v", partition=7)
    assert failure.value.args[0].code() == KafkaError._UNKNOWN_PARTITION
    with pytest.raises(TypeError):
        producer.produce(name, 5)
    with pytest.raises(TypeError):
        producer.produce(None, b"v")
    with pytest.raises(TypeError):
        producer.produce(name, b"v", headers=5)


def test_a_topic_name_that_no_broker_takes(confluent: Confluent, quick_bootstrap: str) -> None:
    reports = Reports()
    producer = confluent.kafka.Producer(
        {"bootstrap.servers": quick_bootstrap, "on_delivery": reports}
    )
    producer.produce("no spaces, please", b"v")
    assert producer.flush(30) == 0
    assert reports.codes == ["TOPIC_EXCEPTION"]


def test_a_callback_that_raises(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)

    def fail(error: Any, message: Any) -> None:
        raise LookupError(message.value())

    producer = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    producer.produce(name, b"first", on_delivery=fail)
    with pytest.raises(LookupError, match="first"):
        producer.flush(30)
    reports = Reports()
    producer.produce(name, b"second", on_delivery=reports)
    assert producer.flush(30) == 0
    assert reports.codes == [None]


def test_reports_of_errors_only(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)
    reports = Reports()
    producer = confluent.kafka.Producer(
        {
            "bootstrap.servers": quick_bootstrap,
            "delivery.report.only.error": True,
            "on_delivery": reports,
        }
    )
    producer.produce(name, b"good")
    producer.produce(name, b"bad", partition=3)
    assert producer.flush(30) == 0
    assert reports.codes == ["_UNKNOWN_PARTITION"]


def test_purge(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)
    reports = Reports()
    producer = confluent.kafka.Producer(
        {"bootstrap.servers": quick_bootstrap, "linger.ms": 60_000, "on_delivery": reports}
    )
    producer.list_topics(name, 30)
    for number in range(3):
        producer.produce(name, b"%d" % number)
    producer.purge()
    assert producer.flush(30) == 0
    assert reports.codes == ["_PURGE_QUEUE"] * 3
    if confluent.ours:  # librdkafka may still purge what is produced now
        producer.produce(name, b"after")
        assert producer.flush(30) == 0
        assert [message.offset() for _, message in reports.found[3:]] == [0]


@pytest.mark.parametrize(
    ("partitioner", "function"),
    [("consistent", "consistent"), ("murmur2_random", "murmur2"), ("fnv1a", "fnv1a")],
)
def test_partitions_of_keys(
    confluent: Confluent, quick_bootstrap: str, name: str, partitioner: str, function: str
) -> None:
    confluent.topic(quick_bootstrap, name, 5)
    reports = Reports()
    producer = confluent.kafka.Producer(
        {
            "bootstrap.servers": quick_bootstrap,
            "partitioner": partitioner,
            "on_delivery": reports,
        }
    )
    keys = [b"key-%d" % number for number in range(40)]
    for key in keys:
        producer.produce(name, None, key)
    assert producer.flush(30) == 0
    import confluent_kafka

    expected = getattr(confluent_kafka, function)
    assert {message.key(): message.partition() for _, message in reports.found} == {
        key: expected(key, 5) for key in keys
    }
    assert [getattr(confluent.kafka, function)(key, 5) for key in keys] == [
        expected(key, 5) for key in keys
    ]


def test_statistics(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)
    told: list[str] = []
    producer = confluent.kafka.Producer(
        {
            "bootstrap.servers": quick_bootstrap,
            "client.id": "counted",
            "statistics.interval.ms": 50,
            "stats_cb": told.append,
        }
    )
    producer.produce(name, b"12345")
    assert producer.flush(30) == 0
    for _ in until_deadline("statistics of the message"):
        producer.poll(0.1)
        if told and json.loads(told[-1])["txmsgs"] == 1:
            break
    numbers = json.loads(told[-1])
    assert (numbers["type"], numbers["client_id"], numbers["msg_cnt"]) == ("producer", "counted", 0)
    assert numbers["tx"] > 0
    assert numbers["tx_bytes"] > 5
    assert numbers["rx"] > 0
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    assert numbers["brokers"][f"{quick_bootstrap}/{broker.id}"]["nodeid"] == broker.id
    assert "UP" in {each["state"] for each in numbers["brokers"].values()}
    assert list(numbers["topics"]) == [name]


def test_closing(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)
    reports = Reports()
    with confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap}) as producer:
        producer.produce(name, b"v", on_delivery=reports)
    assert reports.codes == [None]
    for call in (
        lambda: producer.produce(name, b"v"),
        lambda: producer.poll(0),
        lambda: producer.flush(),
        lambda: producer.list_topics(),
    ):
        with pytest.raises(RuntimeError):
            call()
    assert producer.close() is True
    another = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    another.produce(name, b"w", on_delivery=reports)
    assert another.close() is True
    assert reports.codes == [None, None]


def test_the_cluster(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name, 2)
    KafkaError = confluent.kafka.KafkaError
    producer = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    view = producer.list_topics(timeout=30)
    (broker,) = view.brokers.values()
    assert f"{broker.host}:{broker.port}" == quick_bootstrap
    assert str(broker) == f"{quick_bootstrap}/{broker.id}"
    assert view.controller_id == broker.id
    assert view.cluster_id == producer.cluster_id(30)
    topic = view.topics[name]
    assert (str(topic), topic.error, sorted(topic.partitions)) == (name, None, [0, 1])
    partition = topic.partitions[1]
    assert (
        partition.id,
        partition.leader,
        partition.replicas,
        partition.isrs,
        partition.error,
    ) == (
        1,
        broker.id,
        [broker.id],
        [broker.id],
        None,
    )
    alone = producer.list_topics(name, 30)
    assert list(alone.topics) == [name]
    consumer = confluent.consumer(quick_bootstrap, f"{name}.group")
    missing = consumer.list_topics(f"{name}-not", 30)
    assert missing.topics[f"{name}-not"].error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert missing.topics[f"{name}-not"].partitions == {}
    consumer.close()
    with pytest.raises(confluent.kafka.KafkaException) as failure:
        confluent.kafka.Producer({"bootstrap.servers": NOWHERE}).list_topics(timeout=0.2)
    assert failure.value.args[0].code() in (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
