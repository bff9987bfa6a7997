"""`kafka-verifiable-producer` and `kafka-verifiable-consumer`: their events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner


@pytest.fixture
def producer(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-verifiable-producer", barnabas_bootstrap, capsys)


@pytest.fixture
def consumer(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-verifiable-consumer", barnabas_bootstrap, capsys)


def events(out: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in out.splitlines()]
    assert all(isinstance(event.pop("timestamp"), int) for event in found)
    return found


def test_events(producer: RunTool, consumer: RunTool, topic: str) -> None:
    run = producer("--topic", topic, "--max-messages", "3", "--value-prefix", "7", "--acks", "1")
    begun, *sent, ended, data = events(run.out)
    assert (run.code, run.err) == (0, "")
    assert [begun["name"], ended["name"]] == ["startup_complete", "shutdown_complete"]
    assert sorted(each["value"] for each in sent) == ["7.0", "7.1", "7.2"]
    assert {each["name"] for each in sent} == {"producer_send_success"}
    assert set(sent[0]) == {"name", "key", "value", "topic", "partition", "offset"}
    assert data.pop("avg_throughput") > 0
    assert data == {"name": "tool_data", "sent": 3, "acked": 3, "target_throughput": -1}

    run = consumer("--topic", topic, "--group-id", topic, "--max-messages", "3", "--verbose")
    assert run.code == 0
    found = events(run.out)
    names = [event["name"] for event in found]
    assert (names[0], names[-1]) == ("startup_complete", "shutdown_complete")
    [assigned] = [event for event in found if event["name"] == "partitions_assigned"]
    assert assigned["partitions"] == [{"topic": topic, "partition": n} for n in range(3)]
    assert sum(each["count"] for each in found if each["name"] == "records_consumed") == 3
    assert sorted(e["value"] for e in found if e["name"] == "record_data") == ["7.0", "7.1", "7.2"]
    committed = [event for event in found if event["name"] == "offsets_committed"]
    assert committed
    assert all(event["success"] for event in committed)


def test_keys_that_repeat(producer: RunTool, topic: str) -> None:
    words = ("--max-messages", "4", "--repeating-keys", "2", "--throughput", "1000")
    run = producer("--topic", topic, *words)
    sent = [event for event in events(run.out) if event["name"] == "producer_send_success"]
    assert sorted((each["key"], each["value"]) for each in sent) == [
        *(("0", "0"), ("0", "2")),
        *(("1", "1"), ("1", "3")),
    ]


def test_misuse(producer: RunTool, consumer: RunTool, capsys: pytest.CaptureFixture[str]) -> None:
    assert 'Missing required argument "[topic]"' in producer().err
    assert 'Missing required argument "[group-id]"' in consumer("--topic", "t").err
    run = runner("kafka-verifiable-producer", "127.0.0.1:1", capsys)("--topic", "t")
    assert (run.code, run.out) == (1, "")
    assert "127.0.0.1:1" in run.err
    assert len(run.err.splitlines()) == 1
