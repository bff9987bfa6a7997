"""The same program with kafka-python's producer and with ours: one import is the difference."""

from __future__ import annotations

import importlib
import threading
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat


@pytest.fixture(
    params=[
        ("kafka", "kafka.errors", "kafka.structs"),
        ("barnabas.blocking.producer", "barnabas.errors", "barnabas.structs"),
    ],
    ids=["kafka-python", "barnabas"],
)
def library(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any, Any]]:
    """The producer's class, the errors and the structs of one of the two."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        producer, errors, structs = map(importlib.import_module, request.param)
        yield producer.KafkaProducer, errors, structs


def read(bootstrap: str, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "parity"})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([Place(topic, number, 0) for number in partitions])
    found: list[Any] = []
    for _ in until_deadline(f"{count} records"):
        found += consumer.consume(count - len(found), 0.2)
        if len(found) == count:
            break
    consumer.close()
    return found


def test_a_program_of_the_tutorial(library: tuple[Any, Any, Any], bootstrap: str) -> None:
    KafkaProducer, _, structs = library
    topic = f"parity-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(
        bootstrap_servers=[bootstrap],
        client_id="parity",
        acks="all",
        retries=5,
        linger_ms=2,
        batch_size=16384,
        compression_type="gzip",
        max_in_flight_requests_per_connection=5,
        key_serializer=lambda key: None if key is None else key.encode(),
        value_serializer=lambda value: None if value is None else value.encode(),
    )
    done = threading.Event()
    seen: list[Any] = []

    def succeeded(tag: str, metadata: Any) -> None:
        seen.append((tag, metadata.topic, metadata.partition >= 0, metadata.offset >= 0))
        done.set()

    future = producer.send(topic, "value", key="key", headers=[("h", b"1")], timestamp_ms=5)
    future.add_callback(succeeded, "tag").add_errback(pytest.fail)
    metadata = future.get(timeout=20)
    assert metadata.topic == topic
    assert metadata.topic_partition == structs.TopicPartition(topic, metadata.partition)
    assert (metadata.offset, metadata.timestamp) == (0, 5)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, 5)
    assert metadata.serialized_header_size == 2
    assert done.wait(20)
    assert seen == [("tag", topic, True, True)]
    assert future.succeeded()
    assert not future.failed()
    assert future.is_done
    assert future.exception is None
    assert future.value == metadata
    assert 0 in producer.partitions_for(topic)
    producer.send(topic, None, key="deleted")
    producer.flush(timeout=20)
    assert producer.metrics()["producer-metrics"]["record-send-rate"] >= 0
    producer.close(timeout=20)
    first, second = sorted(read(bootstrap, topic, 2), key=lambda record: record.value() is None)
    assert (first.key(), first.value(), first.headers()) == (b"key", b"value", [("h", b"1")])
    assert (second.key(), second.value()) == (b"deleted", None)


def test_mistakes_raise_the_same(library: tuple[Any, Any, Any], bootstrap: str) -> None:
    KafkaProducer, errors, _ = library
    topic = f"parity-{uuid.uuid4().hex[:8]}"
    with KafkaProducer(bootstrap_servers=bootstrap, max_request_size=1000) as producer:
        with pytest.raises(TypeError):
            producer.send(topic, "text")
        with pytest.raises(TypeError):
            producer.send(topic, b"v", headers={"h": b"1"})
        with pytest.raises(ValueError):
            producer.send(topic)
        with pytest.raises(ValueError):
            producer.send(topic, b"v", partition=-1)
        with pytest.raises(ValueError):
            producer.send(topic, b"v", partition=1000)
        with pytest.raises(errors.MessageSizeTooLargeError):
            producer.send(topic, b"v" * 2000)
        with pytest.raises(errors.IllegalStateError):
            producer.begin_transaction()
    with pytest.raises(errors.IllegalStateError):
        producer.send(topic, b"v")
    with pytest.raises(ValueError):
        KafkaProducer(bootstrap_servers=bootstrap, no_such_option=1)


def test_transactions(library: tuple[Any, Any, Any], bootstrap: str) -> None:
    KafkaProducer, errors, structs = library
    topic = f"parity-{uuid.uuid4().hex[:8]}"
    old = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    with pytest.raises(errors.KafkaError):
        old.begin_transaction()
    old.init_transactions()
    old.begin_transaction()
    old.send(topic, b"1").get(20)
    old.send_offsets_to_transaction(
        {structs.TopicPartition(topic, 0): structs.OffsetAndMetadata(1, "", -1)}, topic
    )
    old.commit_transaction()
    old.begin_transaction()
    old.send(topic, b"2").get(20)
    old.abort_transaction()
    old.begin_transaction()
    old.send(topic, b"3").get(20)
    new = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    new.init_transactions()
    with pytest.raises(errors.ProducerFencedError):
        old.commit_transaction()
    new.begin_transaction()
    new.send(topic, b"4").get(20)
    new.commit_transaction()
    new.close(timeout=20)
    old.close(timeout=1)
