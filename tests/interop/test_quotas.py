"""Quotas set by Apache Kafka's tool, and the Java producer that is held to one."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.held_rate import LIMIT, SECONDS, WINDOWS, Received
from tests.interop.conftest import Tool
from tools.apache_kafka import Distribution
from tools.processes import start_barnabas

pytestmark = pytest.mark.interop

RECORD_BYTES = 10_000


def test_quotas_by_the_tool(tool: Tool) -> None:
    """Of clients, of users' clients and of addresses, and of their defaults."""
    for entity, shown in (
        (["--entity-type=clients", "--entity-name=a b/c"], "client-id 'a b/c'"),
        (["--entity-type=clients", "--entity-default"], "the default client-id"),
        (
            [
                "--entity-type=users",
                "--entity-name=ada",
                "--entity-type=clients",
                "--entity-default",
            ],
            "user-principal 'ada', the default client-id",
        ),
    ):
        change = "--add-config=producer_byte_rate=1000,request_percentage=12.5"
        tool("kafka-configs", *entity, "--alter", change)
        described = tool("kafka-configs", *entity, "--describe")
        assert f"Quota configs for {shown} are" in described
        assert "producer_byte_rate=1000.0" in described
        assert "request_percentage=12.5" in described
        gone = "--delete-config=producer_byte_rate,request_percentage"
        tool("kafka-configs", *entity, "--alter", gone)
        assert "producer_byte_rate" not in tool("kafka-configs", *entity, "--describe")


def test_quotas_of_addresses_by_the_tool(tool: Tool) -> None:
    entity = ["--entity-type=ips", "--entity-name=127.0.0.99"]
    tool("kafka-configs", *entity, "--alter", "--add-config=connection_creation_rate=7")
    described = tool("kafka-configs", *entity, "--describe")
    assert "Quota configs for ip '127.0.0.99' are connection_creation_rate=7.0" in described
    tool("kafka-configs", *entity, "--alter", "--delete-config=connection_creation_rate")
    assert "connection_creation_rate" not in tool("kafka-configs", *entity, "--describe")


def test_what_the_tool_asks_for_wrongly_is_rejected(tool: Tool) -> None:
    entity = ["--entity-type=clients", "--entity-name=a", "--alter"]
    said = tool("kafka-configs", *entity, "--add-config=producer_byte_rate=-1", code=1)
    assert "must be above 0" in said


def test_the_java_producer_is_held_to_its_quota(kafka: Distribution, tmp_path: Path) -> None:
    """It offers ten times as much; what arrives is measured at the broker."""
    running = start_barnabas(tmp_path / "data", options={"quota.window.num": str(WINDOWS)})
    try:
        at = ("--bootstrap-server", running.bootstrap)
        entity = ("--entity-type=clients", "--entity-name=java")
        limit = f"--add-config=producer_byte_rate={LIMIT}"
        for words in (
            ("kafka-topics", *at, "--create", "--topic=t"),
            ("kafka-configs", *at, *entity, "--alter", limit),
        ):
            done = kafka.run(*words)
            assert done.returncode == 0, done.stdout + done.stderr
        seconds = SECONDS + 4 * WINDOWS
        outcome = []

        def press() -> None:
            done = kafka.run(
                "kafka-producer-perf-test",
                "--topic=t",
                f"--num-records={int(seconds * LIMIT / RECORD_BYTES)}",
                f"--record-size={RECORD_BYTES}",
                f"--throughput={10 * LIMIT // RECORD_BYTES}",
                "--producer-props",
                f"bootstrap.servers={running.bootstrap}",
                "client.id=java",
                "batch.size=100000",
                "linger.ms=5",
                "delivery.timeout.ms=300000",
                timeout_s=seconds + 120,
            )
            outcome.append(done)

        producer = threading.Thread(target=press)
        producer.start()
        received = _watched(running.bootstrap, producer)
        (done,) = outcome
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        running.stop()
    rate = received.rate()
    assert rate is not None
    print(f"Java held to {rate / LIMIT:.3f} of its quota over {SECONDS} s, {WINDOWS} windows")
    assert abs(rate - LIMIT) <= 0.05 * LIMIT


def _watched(bootstrap: str, producer: threading.Thread) -> Received:
    received = Received()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "watching"})
    partition, seen = TopicPartition("t", 0), 0
    while producer.is_alive():
        _, end = consumer.get_watermark_offsets(partition, timeout=30)
        if end > seen:
            received.add((end - seen) * RECORD_BYTES, time.monotonic())
            seen = end
        time.sleep(0.02)
    consumer.close()
    return received
