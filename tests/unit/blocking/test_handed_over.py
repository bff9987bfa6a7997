"""Transactions that a producer leaves open, and that another one ends."""

from __future__ import annotations

import asyncio
import pickle
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import KafkaConsumer, KafkaProducer, TopicPartition, TransactionHandle
from barnabas.aio import AIOKafkaProducer
from barnabas.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
)
from barnabas.testing import Cluster

NO_LONGER_OPEN = (InvalidProducerEpochError, InvalidTxnStateError, ProducerFencedError)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def other(bootstrap: str) -> Iterator[KafkaProducer]:
    """A producer that has no transactions of its own."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        yield producer


def begun(bootstrap: str, topic: str) -> KafkaProducer:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def left_open(bootstrap: str, topic: str, value: bytes) -> TransactionHandle:
    with begun(bootstrap, topic) as producer:
        producer.send(topic, value, partition=0)
        handle = producer.hand_over()
    assert handle is not None
    return handle


def committed(bootstrap: str, topic: str) -> list[Any]:
    place = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        found: list[Any] = []
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=50).values():
                found += [record.value for record in records]
        return found


def test_another_producer_commits_what_was_handed_over(
    bootstrap: str, topic: str, other: KafkaProducer
) -> None:
    handle = left_open(bootstrap, topic, b"one")
    assert handle.transactional_id == topic
    assert committed(bootstrap, topic) == []  # though its producer is closed
    travelled = pickle.loads(pickle.dumps(handle))
    other.complete_transaction(travelled, commit=True)
    assert committed(bootstrap, topic) == [b"one"]
    other.complete_transaction(handle, commit=True)  # the same again is nothing
    with pytest.raises(NO_LONGER_OPEN):
        other.complete_transaction(handle, commit=False)
    assert committed(bootstrap, topic) == [b"one"]


def test_what_is_aborted_cannot_be_committed(
    bootstrap: str, topic: str, other: KafkaProducer
) -> None:
    handle = left_open(bootstrap, topic, b"one")
    other.complete_transaction(handle, commit=False)
    with pytest.raises(NO_LONGER_OPEN):
        other.complete_transaction(handle, commit=True)
    assert committed(bootstrap, topic) == []


def test_a_new_producer_of_the_name_ends_what_was_left(
    bootstrap: str, topic: str, other: KafkaProducer
) -> None:
    lost = left_open(bootstrap, topic, b"lost")
    again = left_open(bootstrap, topic, b"again")
    with pytest.raises(NO_LONGER_OPEN):
        other.complete_transaction(lost, commit=True)
    other.complete_transaction(again, commit=True)
    assert committed(bootstrap, topic) == [b"again"]


def test_a_producer_without_its_transaction_is_done(bootstrap: str, topic: str) -> None:
    with begun(bootstrap, topic) as producer:
        producer.send(topic, b"one", partition=0)
        producer.hand_over()
        # It would write into the transaction that is somebody else's now.
        with pytest.raises(IllegalStateError, match="its transaction was handed over"):
            producer.begin_transaction()
        with pytest.raises(IllegalStateError, match="its transaction was handed over"):
            producer.send(topic, b"two", partition=0)


def test_a_transaction_without_records_has_no_handle(bootstrap: str, topic: str) -> None:
    with begun(bootstrap, topic) as producer:
        assert producer.hand_over() is None


def test_only_an_open_transaction_can_be_handed_over(bootstrap: str, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        with pytest.raises(IllegalStateError, match="hand the transaction over"):
            producer.hand_over()


def test_producers_on_asyncio_do_the_same(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        options = {"bootstrap_servers": bootstrap}
        async with AIOKafkaProducer(**options, transactional_id=topic) as producer:
            await producer.begin_transaction()
            await producer.send(topic, b"one", partition=0)
            handle = await producer.hand_over()
        assert handle is not None
        async with AIOKafkaProducer(**options) as other:
            await other.complete_transaction(handle, commit=True)

    asyncio.run(run())
    assert committed(bootstrap, topic) == [b"one"]
