"""Files of reassignments, as Kafka's tools read and write them.

A plan: `{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],
"log_dirs":["any","any"]}]}`; topics to move: `{"version":1,"topics":[{"topic":"t"}]}`; an election:
`{"partitions":[{"topic":"t","partition":0}]}`. Errors name the file and the entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

ANY_DIRECTORY = "any"


@dataclass(frozen=True, slots=True)
class Target:
    """Target of a partition: brokers, and for each a directory or `any`."""

    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] = ()

    def directory_on(self, broker_id: int) -> str | None:
        """Return the directory asked for on a broker, None where any will do."""
        if not self.log_dirs:
            return None
        directory = self.log_dirs[self.replicas.index(broker_id)]
        return None if directory == ANY_DIRECTORY else directory


def read_plan(path: Path) -> dict[TopicPartition, Target]:
    """Read the target of each partition."""
    plan: dict[TopicPartition, Target] = {}
    for entry in _entries(path, "partitions"):
        key = _partition(path, entry)
        if key in plan:
            raise InvalidValueError(f"{path}: partition {key} is named twice")
        plan[key] = _target(path, key, entry)
    return plan


def _target(path: Path, key: TopicPartition, entry: Mapping[str, Any]) -> Target:
    replicas = entry.get("replicas")
    if not isinstance(replicas, list) or not replicas or not all(map(_is_id, replicas)):
        raise InvalidValueError(
            f"{path}: replicas of {key} are not a list of brokers: {replicas!r}"
        )
    if len(set(replicas)) < len(replicas):
        raise InvalidValueError(f"{path}: replicas of {key} name a broker twice: {replicas}")
    directories = entry.get("log_dirs") or []
    if not isinstance(directories, list) or not all(isinstance(d, str) for d in directories):
        raise InvalidValueError(
            f"{path}: log_dirs of {key} are not a list of paths: {directories!r}"
        )
    if directories and len(directories) != len(replicas):
        raise InvalidValueError(
            f"{path}: {key} has {len(replicas)} replicas and {len(directories)} log_dirs"
        )
    return Target(tuple(replicas), tuple(directories))


def read_partitions(path: Path) -> list[TopicPartition]:
    """Read a list of partitions for an election (a plan will do)."""
    return list(dict.fromkeys(_partition(path, entry) for entry in _entries(path, "partitions")))


def read_topics(path: Path) -> list[str]:
    """Read which topics to move."""
    topics: dict[str, None] = {}
    for entry in _entries(path, "topics"):
        topic = entry.get("topic")
        if not isinstance(topic, str):
            raise InvalidValueError(f"{path}: {entry!r} names no topic")
        topics[topic] = None
    return list(topics)


def plan_document(replicas: Mapping[TopicPartition, Sequence[int]]) -> dict[str, Any]:
    """Return a plan as a document in the file's format."""
    return {
        "version": 1,
        "partitions": [
            {
                "topic": key.topic,
                "partition": key.partition,
                "replicas": list(replicas[key]),
                "log_dirs": [ANY_DIRECTORY] * len(replicas[key]),
            }
            for key in sorted(replicas)
        ],
    }


def write_plan(path: Path, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Write a plan."""
    path.write_text(json.dumps(plan_document(replicas), indent=2) + "\n", encoding="utf-8")


def _entries(path: Path, name: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise InvalidValueError(f"{path}: cannot read: {failure.strerror}") from failure
    except ValueError as failure:
        raise InvalidValueError(f"{path}: invalid JSON: {failure}") from failure
    entries = document.get(name) if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise InvalidValueError(f"{path}: no list of {name}")
    for entry in entries:
        if not isinstance(entry, dict):
            raise InvalidValueError(f"{path}: {entry!r} in {name} is not an object")
    version = document.get("version", 1)
    if version != 1:
        raise InvalidValueError(f"{path}: version {version!r}: must be 1")
    return entries


def _partition(path: Path, entry: Mapping[str, Any]) -> TopicPartition:
    topic, number = entry.get("topic"), entry.get("partition")
    if not isinstance(topic, str) or not _is_id(number):
        raise InvalidValueError(f"{path}: {entry!r} names no partition")
    assert isinstance(number, int)
    return TopicPartition(topic, number)


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
