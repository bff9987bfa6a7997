"""Where to reset a group's offsets to: as typed by users, and as lines of a file.

    earliest | latest | current     the first record kept | after the last one | where it is now
    1500                            an offset
    2026-01-31T12:00:00Z            the first record that is not older (also @1767225600000)
    2h                              that long ago (ms, s, m, h, d)
    +100 | -100                     forward or back from where it is now

An offset outside the log becomes the nearest one inside. A file has a line
`topic,partition,offset` for each partition.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.cli.position import Beginning, End, Offset, Position, parse_position
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Current:
    """The group's committed offset, or the log end offset if it has committed none."""


@dataclass(frozen=True, slots=True)
class Shift:
    """This many records forward from the committed offset; back if negative."""

    count: int


Goal = Position | Current | Shift

_NAMES = {"earliest": "beginning", "latest": "end"}


def parse_goal(text: str, now_ms: int) -> Goal:
    """Parse where to reset offsets to."""
    if text == "current":
        return Current()
    if text[:1] in ("+", "-") and text[1:].isascii() and text[1:].isdigit():
        return Shift(int(text))
    try:
        return parse_position(_NAMES.get(text, text), now_ms)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of: earliest, latest, current, an offset (1500), a time "
            "(2026-01-31T12:00:00Z, @1767225600000), an age (15m, 2h, 1d), a step (+100, -100)"
        ) from None


async def find_goals(
    client: ClusterClient,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    goal: Goal,
) -> dict[TopicPartition, int]:
    """Return the offset that a goal means in each partition, inside its log."""
    starts, ends = await bounds(client, partitions)
    if isinstance(goal, Beginning):
        return starts
    if isinstance(goal, End):
        return ends
    if isinstance(goal, Offset):
        wanted = dict.fromkeys(partitions, goal.offset)
    elif isinstance(goal, Current):
        wanted = {partition: committed.get(partition, ends[partition]) for partition in partitions}
    elif isinstance(goal, Shift):
        missing = [partition for partition in partitions if partition not in committed]
        if missing:
            raise InvalidValueError(f"{missing[0]} has no committed offset to step from")
        wanted = {partition: committed[partition] + goal.count for partition in partitions}
    else:
        found = await list_offsets(client, dict.fromkeys(partitions, goal.timestamp_ms))
        wanted = {
            partition: answer.offset if answer.offset >= 0 else ends[partition]
            for partition, answer in found.items()
        }
    return within(wanted, starts, ends)


async def bounds(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the log start and log end offset of each partition."""
    wanted = list(partitions)
    starts, ends = await asyncio.gather(
        list_offsets(client, dict.fromkeys(wanted, EARLIEST)),
        list_offsets(client, dict.fromkeys(wanted, LATEST)),
    )
    return (
        {partition: starts[partition].offset for partition in wanted},
        {partition: ends[partition].offset for partition in wanted},
    )


def within(
    wanted: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Clamp offsets to the logs."""
    return {
        partition: min(max(offset, starts[partition]), ends[partition])
        for partition, offset in wanted.items()
    }


def write_offsets(offsets: Mapping[TopicPartition, int], file: TextIO) -> None:
    """Write offsets as lines that `read_offsets` can read."""
    writer = csv.writer(file, lineterminator="\n")
    for partition in sorted(offsets):
        writer.writerow([partition.topic, partition.partition, offsets[partition]])


def read_offsets(file: Iterable[str]) -> dict[TopicPartition, int]:
    """Read lines of topic, partition and offset."""
    offsets: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(file), 1):
        if not row:
            continue
        try:
            topic, partition, offset = row
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise InvalidValueError(
                f"line {number}: {','.join(row)!r} must be topic,partition,offset"
            ) from None
    if not offsets:
        raise InvalidValueError("the file has no offsets")
    return offsets
