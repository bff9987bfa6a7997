"""A suite that used testcontainers: one import has changed."""

import pytest

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.testing import KafkaContainer  # was: from testcontainers.kafka import KafkaContainer


@pytest.fixture(scope="session")
def kafka():
    with KafkaContainer().with_kraft().with_env("KAFKA_NUM_PARTITIONS", "3") as kafka:
        yield kafka


def test_a_record_arrives(kafka):
    kafka.exec("kafka-topics --bootstrap-server localhost:9092 --create --topic greetings")
    address = kafka.get_bootstrap_server()
    with KafkaProducer(bootstrap_servers=address) as producer:
        producer.send("greetings", b"hello").get(timeout=30)
    with KafkaConsumer(
        "greetings", bootstrap_servers=address, auto_offset_reset="earliest"
    ) as consumer:
        assert next(consumer).value == b"hello"
