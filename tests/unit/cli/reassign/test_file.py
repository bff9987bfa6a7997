"""Files of plans, elections and topics: Kafka's shapes in and out, and what is wrong with some."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cli.reassign.file import (
    Target,
    plan_document,
    read_partitions,
    read_plan,
    read_topics,
    write_plan,
)
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition


def written(directory: Path, text: str) -> Path:
    path = directory / "file.json"
    path.write_text(text)
    return path


def test_a_plan_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, {TopicPartition("t", 1): [2], TopicPartition("t", 0): (1, 2)})
    assert json.loads(path.read_text()) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "any"]},
            {"topic": "t", "partition": 1, "replicas": [2], "log_dirs": ["any"]},
        ],
    }
    assert read_plan(path) == {
        TopicPartition("t", 0): Target((1, 2), ("any", "any")),
        TopicPartition("t", 1): Target((2,), ("any",)),
    }
    assert plan_document({}) == {"version": 1, "partitions": []}


def test_directories() -> None:
    assert Target((1, 2), ("any", "/d")).directory_on(2) == "/d"
    assert Target((1, 2), ("any", "/d")).directory_on(1) is None
    assert Target((1, 2)).directory_on(1) is None


def test_files_of_other_tools(tmp_path: Path) -> None:
    """No version, no directories, more fields than we know."""
    plan = written(
        tmp_path, '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"weight":7}],"by":"x"}'
    )
    assert read_plan(plan) == {TopicPartition("t", 0): Target((1,))}
    assert read_partitions(plan) == [TopicPartition("t", 0)]
    topics = written(tmp_path, '{"topics":[{"topic":"t"},{"topic":"u"},{"topic":"t"}],"version":1}')
    assert read_topics(topics) == ["t", "u"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "invalid JSON"),
        ("[]", "no list of partitions"),
        ("{}", "no list of partitions"),
        ('{"partitions":[]}', "no list of partitions"),
        ('{"partitions":[7]}', "7 in partitions"),
        ('{"version":2,"partitions":[{}]}', "version 2"),
        ('{"partitions":[{"topic":"t"}]}', "names no partition"),
        ('{"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}', "names no partition"),
        ('{"partitions":[{"topic":"t","partition":0}]}', "not a list of brokers"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "not a list of brokers"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}', "not a list of brokers"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}', "broker twice"),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any","any"]}]}',
            "1 replicas and 2 log_dirs",
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},'
            '{"topic":"t","partition":0,"replicas":[2]}]}',
            "named twice",
        ),
    ],
)
def test_what_is_no_plan(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InvalidValueError, match=complaint) as refusal:
        read_plan(written(tmp_path, text))
    assert "file.json" in str(refusal.value)


def test_a_topic_must_be_a_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="names no topic"):
        read_topics(written(tmp_path, '{"topics":[{"topic":7}]}'))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"/nowhere: cannot read: No such file"):
        read_plan(tmp_path / "nowhere")
