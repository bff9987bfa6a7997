"""`kafka-delete-records`: its file, and what it prints for each partition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas, Produce
from tests.unit.cli.kafka.tool_runs import RunTool, runner


@pytest.fixture
def delete(barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-delete-records.sh", barnabas_bootstrap, capsys)


def entry(topic: str, partition: int, offset: int) -> dict[str, object]:
    return {"topic": topic, "partition": partition, "offset": offset}


def test_records_are_deleted(
    delete: RunTool, topic: str, produce: Produce, barnabas: Barnabas, tmp_path: Path
) -> None:
    assert produce(topic, "a\nb\nc\nd\n", "--partition", "0").code == 0
    path = tmp_path / "offsets.json"
    entries = [entry(topic, 0, 3), entry(topic, 1, -1), entry(topic, 2, 50)]
    path.write_text(json.dumps({"partitions": entries, "version": 1}))
    run = delete("--offset-json-file", str(path))
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        "Executing records delete operation\n"
        "Records delete operation completed:\n"
        f"partition: {topic}-0\tlow_watermark: 3\n"
        f"partition: {topic}-1\tlow_watermark: 0\n"
        f"partition: {topic}-2\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
        "The requested offset is not within the range of offsets maintained by the server.\n"
    )
    left = barnabas("consume", topic, "--from", "beginning", "--exit-at-end")
    assert left.out == "d\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "The input string is not a valid JSON"),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ("[]", "Not supported version field value None"),
        ("{}", "Missing partitions field"),
        ('{"partitions": [{"topic": "t"}]}', "must have topic, partition, offset"),
        ('{"partitions": [{"topic": "t", "partition": "0", "offset": 1}]}', "whole numbers"),
        (
            json.dumps({"partitions": [entry("t", 0, 1), entry("t", 0, 2)]}),
            "Offset json file contains duplicate topic partitions: t-0",
        ),
    ],
)
def test_wrong_files(delete: RunTool, tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(content)
    run = delete("--offset-json-file", str(path))
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1


def test_a_missing_file(delete: RunTool) -> None:
    run = delete("--offset-json-file", "none-such.json")
    assert run.code == 1
    assert "none-such.json" in run.err
    assert 'Missing required argument "[offset-json-file]"' in delete().err
