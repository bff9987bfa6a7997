"""`kafka-leader-election` and `kafka-preferred-replica-election` on three brokers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas
from tests.unit.cli.kafka.tool_runs import RunTool, runner
from tests.unit.cli.test_elect import partitions, settled

from barnabas.testing import Cluster


@pytest.fixture
def elect(three_brokers: Cluster, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-leader-election.sh", three_brokers.bootstrap, capsys)


@pytest.fixture
def led(trio: Barnabas, request: pytest.FixtureRequest) -> str:
    """A topic that every broker leads a partition of."""
    words = ("--partitions", "3", "--replication-factor", "3")
    assert trio("topics", "create", request.node.name, *words).code == 0
    return request.node.name


@pytest.fixture
def away(trio: Barnabas, led: str, three_brokers: Cluster) -> int:
    """The partition that broker 1 should lead, and does not: it has been away."""
    [mine] = [each["partition"] for each in partitions(trio, led) if each["replicas"][0] == 1]
    three_brokers.kill(1)
    three_brokers.start(1)
    settled(
        three_brokers,
        led,
        lambda each: (
            each.partition_index != mine or (1 in each.isr_nodes and each.leader_id in (0, 2))
        ),
    )
    return int(mine)


def test_leaders_are_elected(elect: RunTool, led: str, away: int) -> None:
    run = elect("--election-type", "preferred", "--topic", led, "--partition", str(away))
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"Successfully completed leader election (PREFERRED) for partitions {led}-{away}\n"
    )
    run = elect("--election-type", "PREFERRED", "--topic", led, "--partition", str(away))
    assert run.out == f"Valid replica already elected for partitions {led}-{away}\n"
    run = elect("--election-type", "unclean", "--topic", led, "--partition", "0")
    assert run.out == f"Valid replica already elected for partitions {led}-0\n"


def test_the_older_tool(
    three_brokers: Cluster,
    capsys: pytest.CaptureFixture[str],
    led: str,
    away: int,
    tmp_path: Path,
) -> None:
    older = runner("kafka-preferred-replica-election.sh", three_brokers.bootstrap, capsys)
    path = tmp_path / "partitions.json"
    path.write_text(json.dumps({"partitions": [{"topic": led, "partition": away}]}))
    run = older("--path-to-json-file", str(path))
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: "
        "KAFKA-8405\n"
        f"Successfully completed preferred leader election for partitions {led}-{away}\n"
    )
    path.write_text(json.dumps({"partitions": [{"topic": "none-such", "partition": 0}]}))
    run = older("--path-to-json-file", str(path))
    assert run.code == 1
    assert "UnknownTopicOrPartitionException" in run.out
    assert run.err == "1 preferred replica(s) could not be elected\n"


def test_partitions_that_do_not_exist(elect: RunTool, led: str, tmp_path: Path) -> None:
    path = tmp_path / "partitions.json"
    entries = [{"topic": led, "partition": 0}, {"topic": led, "partition": 9}]
    path.write_text(json.dumps({"partitions": entries}))
    run = elect("--election-type", "preferred", "--path-to-json-file", str(path))
    assert run.code == 1
    valid, failed = run.out.splitlines()
    assert valid == f"Valid replica already elected for partitions {led}-0"
    assert failed == (
        f"Error completing leader election (PREFERRED) for partition: {led}-9: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
        "the topic or partition does not exist on this broker"
    )
    assert run.err == "1 replica(s) could not be elected\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--topic", "t"], "Missing required option(s): election-type"),
        (["--election-type", "best"], "must be one of: PREFERRED, UNCLEAN"),
        (["--election-type", "unclean"], "One and only one of the following options is required"),
        (
            ["--election-type", "unclean", "--topic", "t", "--all-topic-partitions"],
            "One and only one of the following options is required",
        ),
        (["--election-type", "unclean", "--topic", "t"], "Missing required option(s): partition"),
        (
            ["--election-type", "unclean", "--all-topic-partitions", "--partition", "1"],
            "Option partition is only allowed if topic is used",
        ),
        (
            ["--election-type", "unclean", "--path-to-json-file", "none-such.json"],
            "none-such.json",
        ),
    ],
)
def test_misuse(elect: RunTool, words: list[str], text: str) -> None:
    run = elect(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err


def test_misuse_of_the_older_tool(capsys: pytest.CaptureFixture[str]) -> None:
    run = runner("kafka-preferred-replica-election", None, capsys)()
    assert run.code == 1
    assert "Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided" in run.err
