"""Kafka's tool for client metrics, and a Java producer that pushes its own to our broker."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
from tools.apache_kafka import Distribution
from tools.processes import start_barnabas

from barnabas import KafkaAdminClient
from barnabas.admin.client_telemetry import TelemetryClient

pytestmark = pytest.mark.interop

RECORDS = 2000
WAIT_S = 60.0


@pytest.fixture
def watched(kafka: Distribution, tmp_path: Path) -> Iterator[str]:
    """A broker of the test's own: its clients are not those of other tests."""
    running = start_barnabas(tmp_path / "data")
    yield running.bootstrap
    running.stop()


def tool(kafka: Distribution, bootstrap: str, *arguments: str, code: int = 0) -> str:
    done = kafka.run("kafka-client-metrics", "--bootstrap-server", bootstrap, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_resources_by_the_tool(kafka: Distribution, watched: str) -> None:
    name = ("--name", "watch")
    tool(kafka, watched, "--alter", *name, "--metrics", "a.,b.", "--interval", "5000")
    tool(kafka, watched, "--alter", *name, "--match", "client_id=web.*")
    assert tool(kafka, watched, "--list").strip() == "watch"
    shown = tool(kafka, watched, "--describe", *name)
    assert "interval.ms=5000" in shown
    assert "match=client_id=web.*" in shown
    assert "metrics=a.,b." in shown
    said = tool(kafka, watched, "--alter", *name, "--interval", "1", code=1)
    assert "must be 100 to 3600000" in said
    said = tool(kafka, watched, "--alter", *name, "--match", "user=ada", code=1)
    assert "must be NAME=PATTERN" in said
    tool(kafka, watched, "--delete", *name)
    assert tool(kafka, watched, "--list").strip() == ""


def test_a_java_producer_pushes_what_it_did(kafka: Distribution, watched: str) -> None:
    tool(kafka, watched, "--alter", "--name", "all", "--metrics", "*", "--interval", "500")
    command = kafka.command(
        "kafka-console-producer",
        "--bootstrap-server",
        watched,
        "--topic=t",
        "--producer-property",
        "client.id=java",
    )
    producer = subprocess.Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, text=True)
    assert producer.stdin is not None
    try:
        producer.stdin.write("tea\n" * RECORDS)
        producer.stdin.flush()
        with KafkaAdminClient(bootstrap_servers=watched) as admin:
            sent, deadline_s = 0.0, time.monotonic() + WAIT_S
            while sent != RECORDS:
                assert time.monotonic() < deadline_s, f"{sent} of {RECORDS} records were counted"
                time.sleep(0.1)
                ((_, clients),) = admin.describe_client_telemetry().items()
                found = [each for each in clients if each.client_id == "java" and each.pushes]
                if found:
                    sent = value(found[0], "org.apache.kafka.producer.record.send.total")
    finally:
        producer.communicate(timeout=WAIT_S)
    (client,) = found
    assert client.software_name == "apache-kafka-java"
    assert client.software_version.startswith(kafka.version)
    assert value(client, "org.apache.kafka.producer.record.error.total") == 0
    assert value(client, "org.apache.kafka.producer.connection.creation.total") >= 1
    assert value(client, "org.apache.kafka.producer.request.latency.max") > 0


def value(client: TelemetryClient, name: str) -> float:
    """The number of a client itself; others are of its topics and nodes."""
    found = [each for each in client.metrics if each.name == name]
    assert found, sorted({each.name for each in client.metrics})
    return min(found, key=lambda each: len(each.attributes)).value
