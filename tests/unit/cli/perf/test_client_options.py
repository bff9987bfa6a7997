"""Options by Kafka's names, as other clients want them."""

from __future__ import annotations

from barnabas.cli.perf.client_options import in_snake_case, producers_and_consumers

OPTIONS = {
    "acks": "all",
    "batch.size": "1000",
    "bootstrap.servers": "a:1,b:2",
    "compression.type": "none",
    "enable.idempotence": "true",
}


def test_kafka_python_gets_keywords_and_values() -> None:
    assert in_snake_case("kafka-python", OPTIONS) == {
        "acks": "all",
        "batch_size": 1000,
        "bootstrap_servers": "a:1,b:2",
        "compression_type": None,
        "enable_idempotence": True,
    }


def test_aiokafka_has_names_of_its_own() -> None:
    assert in_snake_case("aiokafka", {"batch.size": "7", "acks": "-1"}) == {
        "max_batch_size": 7,
        "acks": "all",
    }
    assert in_snake_case("aiokafka", {"acks": "1"}) == {"acks": 1}


def test_each_side_of_a_round_trip_gets_its_own() -> None:
    options = {"acks": "1", "fetch.min.bytes": "1", "client.id": "x", "socket.nagle.disable": "1"}
    sending, reading = producers_and_consumers(options)
    assert sending.keys() == {"acks", "client.id", "socket.nagle.disable"}
    assert reading.keys() == {"fetch.min.bytes", "client.id", "socket.nagle.disable"}
