"""Transactions of confluent-kafka and of barnabas.compat.confluent_kafka: the same outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.compat.confluent import Confluent

pytestmark = pytest.mark.compat


@pytest.fixture
def topic(confluent: Confluent, quick_bootstrap: str, name: str) -> str:
    return confluent.topic(quick_bootstrap, name)


def transactional(confluent: Confluent, bootstrap: str, name: str) -> Any:
    producer = confluent.kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0}
    )
    producer.init_transactions(30)
    return producer


def committed(confluent: Confluent, bootstrap: str, topic: str) -> list[bytes]:
    """Return the values up to the end of what may be read."""
    kafka = confluent.kafka
    reader = confluent.consumer(
        bootstrap, "not used", isolation_level="read_committed", enable_partition_eof=True
    )
    reader.assign([kafka.TopicPartition(topic, 0, kafka.OFFSET_BEGINNING)])
    found = []
    while (message := reader.poll(30)) is not None and message.error() is None:
        found.append(message.value())
    assert message is not None
    assert message.error() == kafka.KafkaError._PARTITION_EOF
    reader.close()
    return found


def error_of(confluent: Confluent, call: Callable[[], object]) -> Any:
    with pytest.raises(confluent.kafka.KafkaException) as failure:
        call()
    return failure.value.args[0]


def test_committed_and_aborted(confluent: Confluent, quick_bootstrap: str, topic: str) -> None:
    producer = transactional(confluent, quick_bootstrap, topic)
    told: list[Any] = []

    def report(error: Any, message: Any) -> None:
        told.append((None if error is None else error.name(), message.value()))

    producer.begin_transaction()
    producer.produce(topic, b"kept 1", on_delivery=report)
    producer.produce(topic, b"kept 2", on_delivery=report)
    producer.commit_transaction(30)
    assert told == [(None, b"kept 1"), (None, b"kept 2")]  # which has polled
    assert len(producer) == 0
    producer.begin_transaction()
    producer.produce(topic, b"dropped")
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.commit_transaction()  # nothing
    assert committed(confluent, quick_bootstrap, topic) == [b"kept 1", b"kept 2"]


def test_what_an_abort_purges(confluent: Confluent, quick_bootstrap: str, topic: str) -> None:
    told: list[Any] = []
    producer = confluent.kafka.Producer(
        {
            "bootstrap.servers": quick_bootstrap,
            "transactional.id": topic,
            "linger.ms": 20_000,
            "on_delivery": lambda error, message: told.append(error and error.name()),
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"never sent")
    producer.abort_transaction(30)
    assert told == ["_PURGE_QUEUE"]
    assert committed(confluent, quick_bootstrap, topic) == []


def test_offsets_in_transactions(
    confluent: Confluent, quick_bootstrap: str, new_name: Callable[[], str]
) -> None:
    source, target = (confluent.topic(quick_bootstrap, new_name()) for _ in range(2))
    confluent.fill(quick_bootstrap, source, 4)
    group = f"{source}.group"
    producer = transactional(confluent, quick_bootstrap, source)
    consumer = confluent.consumer(quick_bootstrap, group, enable_auto_commit=False)
    consumer.subscribe([source])
    for commit in (True, False):
        messages = consumer.consume(2, 30)
        assert len(messages) == 2
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, b"from " + message.value())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
        )
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    where = [confluent.kafka.TopicPartition(source, 0)]
    assert [each.offset for each in consumer.committed(where, 30)] == [2]
    assert committed(confluent, quick_bootstrap, target) == [b"from 0", b"from 1"]
    consumer.close()


def test_a_second_producer_fences_the_first(
    confluent: Confluent, quick_bootstrap: str, topic: str
) -> None:
    first = transactional(confluent, quick_bootstrap, topic)
    first.begin_transaction()
    first.produce(topic, b"zombie")
    assert first.flush(30) == 0
    second = transactional(confluent, quick_bootstrap, topic)
    second.begin_transaction()
    second.produce(topic, b"successor")
    second.commit_transaction(30)
    error = error_of(confluent, lambda: first.commit_transaction(30))
    assert (error.name(), error.fatal(), error.retriable()) == ("_FENCED", True, False)
    assert error_of(confluent, lambda: first.begin_transaction()).fatal()
    assert committed(confluent, quick_bootstrap, topic) == [b"successor"]


def test_calls_in_the_wrong_order(confluent: Confluent, quick_bootstrap: str, topic: str) -> None:
    kafka = confluent.kafka
    plain = kafka.Producer({"bootstrap.servers": quick_bootstrap})
    for call in (plain.init_transactions, plain.begin_transaction, plain.abort_transaction):
        assert error_of(confluent, call).name() == "_NOT_CONFIGURED"
    producer = kafka.Producer({"bootstrap.servers": quick_bootstrap, "transactional.id": topic})
    assert error_of(confluent, producer.begin_transaction).name() == "_STATE"
    assert error_of(confluent, lambda: producer.produce(topic, b"v")).name() == "_STATE"
    producer.init_transactions(30)
    assert error_of(confluent, lambda: producer.produce(topic, b"v")).name() == "_STATE"
    assert error_of(confluent, lambda: producer.commit_transaction(30)).name() == "_STATE"
    producer.begin_transaction()
    error = error_of(confluent, producer.begin_transaction)
    assert (error.name(), error.fatal(), error.txn_requires_abort()) == ("_STATE", False, False)
    producer.produce(topic, b"v")
    producer.commit_transaction(30)
    assert committed(confluent, quick_bootstrap, topic) == [b"v"]
    with pytest.raises(TypeError):
        producer.send_offsets_to_transaction([], None)
    nowhere = kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": topic})
    error = error_of(confluent, lambda: nowhere.init_transactions(0.2))
    assert (error.name(), error.retriable(), error.fatal()) == ("_TIMED_OUT", True, False)


def test_a_message_that_fails(confluent: Confluent, quick_bootstrap: str, topic: str) -> None:
    producer = transactional(confluent, quick_bootstrap, topic)
    producer.begin_transaction()
    producer.produce(topic, b"v", partition=9)
    error = error_of(confluent, lambda: producer.commit_transaction(30))
    assert (error.txn_requires_abort(), error.fatal()) == (True, False)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, b"w")
    producer.commit_transaction(30)
    assert committed(confluent, quick_bootstrap, topic) == [b"w"]
