"""The Java tools move a replica from one log directory of our broker to the other."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.apache_kafka import Distribution
from tools.processes import RunningBroker, start_barnabas

pytestmark = pytest.mark.interop

TOPIC = "moving"
COUNT = 2000


class Cluster:
    """A broker with two log directories, and the tools against it."""

    def __init__(self, kafka: Distribution, broker: RunningBroker, paths: list[Path]) -> None:
        self._kafka = kafka
        self._broker = broker
        self.paths = paths

    def run(self, tool: str, *arguments: str, input: str | None = None, code: int = 0) -> str:
        bootstrap = f"--bootstrap-server={self._broker.bootstrap}"
        done = self._kafka.run(tool, bootstrap, *arguments, input=input)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def directory_of(self, partition: int) -> Path:
        """Return where kafka-log-dirs says that the partition is, which no move concerns."""
        out = self.run("kafka-log-dirs", "--describe", f"--topic-list={TOPIC}")
        (line,) = [line for line in out.splitlines() if line.startswith("{")]
        (broker,) = json.loads(line)["brokers"]
        (found,) = [
            Path(directory["logDir"])
            for directory in broker["logDirs"]
            for replica in directory["partitions"]
            if replica["partition"] == f"{TOPIC}-{partition}" and not replica["isFuture"]
        ]
        return found

    def broker_id(self) -> int:
        described = self.run("kafka-topics", "--describe", f"--topic={TOPIC}")
        (number,) = set(re.findall(r"Leader: (\d+)", described))
        return int(number)


@pytest.fixture
def cluster(kafka: Distribution, tmp_path: Path) -> Iterator[Cluster]:
    paths = [tmp_path / "one", tmp_path / "two"]
    options = {"log.dirs": ",".join(map(str, paths))}
    broker = start_barnabas(tmp_path / "broker", options=options)
    try:
        yield Cluster(kafka, broker, paths)
    finally:
        assert broker.stop() == 0


def write_plan(path: Path, partition: int, replicas: list[int], log_dirs: list[str]) -> str:
    entry = {"topic": TOPIC, "partition": partition, "replicas": replicas, "log_dirs": log_dirs}
    path.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    return f"--reassignment-json-file={path}"


def test_a_replica_moves_between_directories(cluster: Cluster, tmp_path: Path) -> None:
    cluster.run("kafka-topics", "--create", f"--topic={TOPIC}", "--partitions=2")
    lines = "".join(f"value {number}\n" for number in range(COUNT))
    cluster.run("kafka-console-producer", f"--topic={TOPIC}", input=lines)
    source = cluster.directory_of(0)
    (target,) = [path for path in cluster.paths if path != source]
    plan = write_plan(tmp_path / "plan.json", 0, [cluster.broker_id()], [str(target)])
    assert "Successfully started" in cluster.run("kafka-reassign-partitions", plan, "--execute")
    deadline = time.monotonic() + 120
    while "is still in progress" in (
        out := cluster.run("kafka-reassign-partitions", plan, "--verify")
    ):
        assert time.monotonic() < deadline, out
    assert f"Reassignment of partition {TOPIC}-0 is completed" in out
    assert f"Reassignment of replica {TOPIC}-0-{cluster.broker_id()} completed" in out
    assert cluster.directory_of(0) == target
    assert (target / f"{TOPIC}-0").is_dir()
    assert not (source / f"{TOPIC}-0").exists()
    read = cluster.run(
        "kafka-console-consumer",
        f"--topic={TOPIC}",
        "--from-beginning",
        f"--max-messages={COUNT}",
        "--timeout-ms=20000",
    )
    found = [line for line in read.splitlines() if line.startswith("value ")]
    assert sorted(found) == sorted(lines.splitlines())
    listed = cluster.run("kafka-reassign-partitions", "--list")
    assert "No partition reassignments found" in listed


def test_a_broker_that_is_not_there_is_named(cluster: Cluster, tmp_path: Path) -> None:
    cluster.run("kafka-topics", "--create", f"--topic={TOPIC}")
    plan = write_plan(tmp_path / "plan.json", 0, [4711], ["any"])
    assert "4711" in cluster.run("kafka-reassign-partitions", plan, "--execute", code=1)


def test_a_move_that_does_not_exist_is_not_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    cluster.run("kafka-topics", "--create", f"--topic={TOPIC}")
    plan = write_plan(tmp_path / "plan.json", 0, [cluster.broker_id()], ["any"])
    out = cluster.run("kafka-reassign-partitions", plan, "--cancel")
    assert "None of the specified partition reassignments are active" in out
