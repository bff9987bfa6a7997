"""Keys and values through a broker, with serializers named as a properties file names them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.errors import SerializationError
from barnabas.serialization import Deserializer, LongDeserializer, LongSerializer, Serializer
from barnabas.testing import Cluster

KAFKAS = "org.apache.kafka.common.serialization"
WRITING = {
    "key.serializer": f"{KAFKAS}.StringSerializer",
    "key.serializer.encoding": "UTF-16",
    "value.serializer": f"{KAFKAS}.LongSerializer",
}
READING = {
    "key.deserializer": f"{KAFKAS}.StringDeserializer",
    "key.deserializer.encoding": "UTF-16",
    "value.deserializer": f"{KAFKAS}.LongDeserializer",
    "auto.offset.reset": "earliest",
}
RECORDS = [("größe", 1 << 40), (None, -1), ("gone", None)]
BYTES = [
    ("größe".encode("utf-16-be"), (1 << 40).to_bytes(8, "big")),
    (None, b"\xff" * 8),
    ("gone".encode("utf-16-be"), None),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(options={"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def read(cluster: Cluster, topic: str, **options: Any) -> list[tuple[Any, Any]]:
    with KafkaConsumer(topic, bootstrap_servers=cluster.bootstrap, **options) as consumer:
        records = [next(consumer) for _ in RECORDS]
    return [(record.key, record.value) for record in records]


def test_plain_clients(cluster: Cluster, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, **WRITING) as producer:
        for key, value in RECORDS:
            producer.send(topic, key=key, value=value)
    marked = [(key if key is None else b"\xfe\xff" + key, value) for key, value in BYTES]
    assert read(cluster, topic, auto_offset_reset="earliest") == marked
    assert read(cluster, topic, **READING) == RECORDS


def test_clients_on_asyncio(cluster: Cluster, topic: str) -> None:
    async def there_and_back() -> list[tuple[Any, Any]]:
        servers = cluster.bootstrap
        async with AIOKafkaProducer(bootstrap_servers=servers, **WRITING) as producer:
            for key, value in RECORDS:
                await producer.send_and_wait(topic, key=key, value=value)
        async with AIOKafkaConsumer(topic, bootstrap_servers=servers, **READING) as consumer:
            records = [await consumer.getone() for _ in RECORDS]
        return [(record.key, record.value) for record in records]

    assert asyncio.run(there_and_back()) == RECORDS


def test_a_value_of_the_wrong_type_is_refused_by_send(cluster: Cluster, topic: str) -> None:
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, value_serializer=LongSerializer
    ) as producer:
        with pytest.raises(SerializationError, match="LongSerializer got str"):
            producer.send(topic, "one")
        producer.send(topic, 1).get(30)
        producer.send_many(topic, [(None, 2), 3]).get(30)
    with KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        value_deserializer=LongDeserializer(),
    ) as consumer:
        assert [next(consumer).value for _ in range(3)] == [1, 2, 3]


def test_what_the_client_has_made_is_closed_with_it(cluster: Cluster) -> None:
    closed: list[str] = []

    class Closing(Serializer, Deserializer):
        def serialize(self, topic: str, headers: Any, data: Any) -> Any:
            return data

        def deserialize(self, topic: str, headers: Any, data: Any) -> Any:
            return data

        def close(self) -> None:
            closed.append("closed")

    servers = cluster.bootstrap
    KafkaProducer(bootstrap_servers=servers, value_serializer=Closing).close()
    KafkaConsumer(bootstrap_servers=servers, key_deserializer=Closing).close()
    assert closed == ["closed"] * 2

    async def on_asyncio() -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers, key_serializer=Closing):
            pass
        async with AIOKafkaConsumer(bootstrap_servers=servers, value_deserializer=Closing):
            pass

    asyncio.run(on_asyncio())
    assert closed == ["closed"] * 4
