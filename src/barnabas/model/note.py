"""A note: one decision, with its cause and numbers, as the part that made it states it.

    note(Note("isr.shrink", "orders-3", "lag-time", {"from": [1, 2, 3], "to": [1, 2]}))

Machines return notes in their `Outcome`, or pass them to a sink that they were given; they have
neither a log nor a clock. The broker makes of each note one entry of its diary, one log line and
one count, so that the three cannot disagree. `diary.catalogue` lists events and their causes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias


class Note(NamedTuple):
    """One decision."""

    event: str
    """What happened: `group.rebalance`."""
    subject: str
    """What it happened to: `orders-3`, `group:billing`, `broker:2`, `client:app@10.0.0.7`."""
    cause: str
    """Why, from the event's closed list: `session-timeout`."""
    data: Mapping[str, Any] = MappingProxyType({})
    """The numbers: what JSON can express, and nothing secret."""


NoteSink: TypeAlias = Callable[[Note], None]
"""Takes a note; it is cheap and never raises."""


def unnoted(note: Note) -> None:
    """Drop a note: for parts that are used without a broker."""


PartitionNote: TypeAlias = Callable[[str, tuple[str, int], str, dict[str, Any]], None]
"""Takes the event, partition, cause and numbers of what a broker did with its own replica."""


def unheard(event: str, key: tuple[str, int], cause: str, data: dict[str, Any]) -> None:
    """Drop what happened to a replica: for parts that are used without a broker."""
