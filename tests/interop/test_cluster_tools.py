"""The Java tools move partitions between three of our brokers, and have leaders elected."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.interop.conftest import Tool
from tools.apache_kafka import Distribution

from barnabas.testing import Cluster

pytestmark = pytest.mark.interop

COUNT = 3000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, racks=("red", "green", "blue")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def run(kafka: Distribution, cluster: Cluster) -> Tool:
    def run(name: str, *arguments: str, input: str | None = None, code: int = 0) -> str:
        done = kafka.run(name, "--bootstrap-server", cluster.bootstrap, *arguments, input=input)
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return output

    return run


def replicas(described: str) -> list[str]:
    return re.findall(r"Replicas: ([\d,]+)", described)


def test_reassignment(run: Tool, cluster: Cluster, name: str, tmp_path: Path) -> None:
    """Propose, execute with a throttle, verify to the end; nothing is lost, no throttle is left."""
    run("kafka-topics", "--create", f"--topic={name}", "--replica-assignment=0:1,1:0")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(COUNT):
        producer.produce(name, f"value {number}".encode(), partition=number % 2)
    assert producer.flush(30) == 0
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": name}]}))
    proposed = run(
        "kafka-reassign-partitions",
        "--generate",
        f"--topics-to-move-json-file={topics}",
        "--broker-list=1,2",
    )
    current, new = [json.loads(line) for line in proposed.splitlines() if line.startswith("{")]
    assert [entry["replicas"] for entry in current["partitions"]] == [[0, 1], [1, 0]]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(new))
    option = f"--reassignment-json-file={plan}"
    started = run("kafka-reassign-partitions", option, "--execute", "--throttle=10000000")
    assert "Successfully started partition reassignments" in started
    deadline = time.monotonic() + 120
    while "still in progress" in (out := run("kafka-reassign-partitions", option, "--verify")):
        assert time.monotonic() < deadline, out
    assert out.count("is completed") == 2
    assert "Clearing broker-level throttles" in out
    described = run("kafka-topics", "--describe", f"--topic={name}")
    assert replicas(described) == [
        ",".join(map(str, entry["replicas"])) for entry in new["partitions"]
    ]
    assert "throttled" not in described
    assert "No partition reassignments found" in run("kafka-reassign-partitions", "--list")
    read = run(
        "kafka-console-consumer",
        f"--topic={name}",
        "--from-beginning",
        f"--max-messages={COUNT}",
        "--timeout-ms=30000",
    )
    found = [line for line in read.splitlines() if line.startswith("value ")]
    assert sorted(found) == sorted(f"value {number}" for number in range(COUNT))


def test_leader_election(run: Tool, cluster: Cluster, name: str) -> None:
    run("kafka-topics", "--create", f"--topic={name}", "--replica-assignment=1:0:2")
    one = [f"--topic={name}", "--partition=0"]
    cluster.kill(1)
    cluster.start(1)
    deadline = time.monotonic() + 120
    while "Isr: 0,2,1" not in (out := run("kafka-topics", "--describe", f"--topic={name}")):
        assert time.monotonic() < deadline, out
    assert "Leader: 0" in out
    elected = run("kafka-leader-election", "--election-type=preferred", *one)
    assert "Successfully completed leader election (PREFERRED)" in elected
    assert "Leader: 1" in run("kafka-topics", "--describe", f"--topic={name}")
    again = run("kafka-leader-election", "--election-type=preferred", *one)
    assert "Valid replica already elected" in again
    run("kafka-leader-election", "--election-type=preferred", "--all-topic-partitions")


def test_what_is_wrong_is_described(run: Tool, cluster: Cluster, name: str) -> None:
    least = "--config=min.insync.replicas=3"
    run("kafka-topics", "--create", f"--topic={name}", "--replica-assignment=1:0:2", least)
    cluster.kill(1)
    try:
        for option in ("--under-replicated-partitions", "--under-min-isr-partitions"):
            out = run("kafka-topics", "--describe", option)
            assert re.search(rf"Topic: {re.escape(name)}\s+Partition: 0\s+Leader: 0", out), option
        assert name not in run("kafka-topics", "--describe", "--unavailable-partitions")
    finally:
        cluster.start(1)
