"""`kafka-cluster`, `kafka-broker-api-versions`, `kafka-features`, `kafka-log-dirs`."""

from __future__ import annotations

import json
import re

import pytest
from tests.unit.cli.conftest import Produce
from tests.unit.cli.kafka.tool_runs import RunTool, runner


@pytest.fixture
def tool(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    """Run a tool, which the first word names."""
    return lambda name, *words: runner(name, barnabas_bootstrap, capsys)(*words)


def test_the_cluster(tool: RunTool, barnabas_bootstrap: str) -> None:
    run = tool("kafka-cluster", "cluster-id")
    assert (run.code, run.err) == (0, "")
    assert re.fullmatch(r"Cluster ID: \S{22}\n", run.out)
    host, _, port = barnabas_bootstrap.partition(":")
    head, line = tool("kafka-cluster", "list-endpoints").out.splitlines()
    assert head.split() == ["ID", "HOST", "PORT", "RACK", "ENDPOINT_TYPE"]
    assert line.split() == ["0", host, port, "null", "broker"]


def test_versions_of_apis(tool: RunTool, barnabas_bootstrap: str) -> None:
    run = tool("kafka-broker-api-versions")
    first, *lines, last = run.out.splitlines()
    assert run.code == 0
    assert first == f"{barnabas_bootstrap} (id: 0 rack: null) -> ("
    assert re.fullmatch(r"\tProduce\(0\): 0 to \d+ \[usable: \d+\],", lines[0])
    assert all(line.startswith("\t") and line.endswith(",") for line in lines[:-1])
    assert last == ")"


def test_features(tool: RunTool) -> None:
    assert tool("kafka-features", "describe").code == 0
    run = tool("kafka-features", "upgrade", "--feature", "none.such")
    assert (run.code, run.out) == (1, "")
    assert "Can't parse feature=level string none.such: equals sign not found." in run.err
    run = tool("kafka-features", "upgrade", "--metadata", "9.9")
    assert "Unsupported metadata.version 9.9" in run.err


def test_directories(tool: RunTool, topic: str, produce: Produce) -> None:
    assert produce(topic, "a\n", "--partition", "0").code == 0
    run = tool("kafka-log-dirs", "--describe", "--topic-list", topic, "--broker-list", "0")
    first, second, text = run.out.splitlines()
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 0"
    document = json.loads(text)
    [broker] = document.pop("brokers")
    assert document == {"version": 1}
    [directory] = broker["logDirs"]
    assert (broker["broker"], directory["error"]) == (0, None)
    partitions = {each["partition"]: each for each in directory["partitions"]}
    assert set(partitions) == {f"{topic}-{n}" for n in range(3)}
    held = partitions[f"{topic}-0"]
    assert held.pop("size") > 0
    assert held == {"partition": f"{topic}-0", "offsetLag": 0, "isFuture": False}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("kafka-cluster",), "too few arguments"),
        (("kafka-cluster", "sing"), "invalid choice: 'sing'"),
        (("kafka-cluster", "unregister"), "argument --id/-i is required"),
        (("kafka-features",), "too few arguments"),
        (("kafka-features", "upgrade"), "You must specify at least one feature to upgrade"),
        (("kafka-log-dirs",), 'Missing required argument "[describe]"'),
        (("kafka-log-dirs", "--describe", "--broker-list", "x"), "Cannot parse argument 'x'"),
        (
            ("kafka-log-dirs", "--describe", "--broker-list", "0,7"),
            "ERROR: The given brokers do not exist from --broker-list: 7. "
            "Current existent brokers: 0",
        ),
    ],
)
def test_misuse(tool: RunTool, words: tuple[str, ...], text: str) -> None:
    run = tool(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1


def test_subscriptions_to_metrics(tool: RunTool) -> None:
    name = "tool-metrics"
    words = ("--metrics", "org.apache.kafka.producer.", "--interval", "30000")
    run = tool("kafka-client-metrics", "--alter", "--name", name, *words)
    assert run == (0, f"Altered client metrics config for {name}.\n", "")
    assert name in tool("kafka-client-metrics", "--list").out.splitlines()
    first, *options = tool("kafka-client-metrics", "--describe", "--name", name).out.splitlines()
    assert first == f"Client metrics configs for {name} are:"
    assert sorted(options) == ["  interval.ms=30000", "  metrics=org.apache.kafka.producer."]
    run = tool("kafka-client-metrics", "--delete", "--name", name)
    assert run == (0, f"Deleted client metrics config for {name}.\n", "")
    run = tool("kafka-client-metrics", "--alter")
    assert (run.code, "One of --name or --generate-name" in run.err) == (1, True)
