"""`kafka-delete-records`: delete the records of partitions before an offset."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient

FLAGS = Flags(
    "Delete the records of partitions before an offset.",
    (
        BOOTSTRAP._replace(required=True),
        COMMAND_CONFIG,
        Flag(
            "--offset-json-file",
            "FILE",
            '{"partitions":[{"topic":"t","partition":0,"offset":10}],"version":1}; offset -1: all',
            required=True,
        ),
    ),
)


def run(given: Given) -> int:
    """Read the offsets, and delete what is before them."""
    offsets = read_offsets(Path(given["offset-json-file"]))
    from barnabas.cli import session

    return session.run(given.connection(), partial(_delete, offsets))


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Read the offset of each partition; errors name the file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as failure:
        raise InvalidValueError(f"{path}: The input string is not a valid JSON") from failure
    version = document.get("version", 1) if isinstance(document, dict) else None
    if version != 1:
        raise InvalidValueError(f"{path}: Not supported version field value {version}")
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise InvalidValueError(f"{path}: Missing partitions field")
    offsets: dict[TopicPartition, int] = {}
    for entry in entries:
        key, offset = _entry(path, entry)
        if key in offsets:
            raise InvalidValueError(
                f"{path}: Offset json file contains duplicate topic partitions: {key}"
            )
        offsets[key] = offset
    return offsets


def _entry(path: Path, entry: Any) -> tuple[TopicPartition, int]:
    """Read one partition's offset."""
    try:
        topic, number, offset = entry["topic"], entry["partition"], entry["offset"]
    except (KeyError, TypeError):
        raise InvalidValueError(f"{path}: {entry!r} must have topic, partition, offset") from None
    if not isinstance(topic, str) or not all(type(each) is int for each in (number, offset)):
        raise InvalidValueError(f"{path}: {entry!r}: topic is a string, the others whole numbers")
    return TopicPartition(topic, number), offset


async def _delete(offsets: dict[TopicPartition, int], client: ClusterClient) -> int:
    from barnabas.admin.offsets import delete_records
    from barnabas.cli.kafka.exceptions import named
    from barnabas.model.errors import RequestError

    print("Executing records delete operation")
    outcomes = await delete_records(client, offsets) if offsets else {}
    print("Records delete operation completed:")
    for key, outcome in sorted(outcomes.items()):
        if isinstance(outcome, RequestError):
            print(f"partition: {key}\terror: {named(outcome)}")
        else:
            print(f"partition: {key}\tlow_watermark: {outcome}")
    return 0
