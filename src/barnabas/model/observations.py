"""What a broker's process observes of itself and its cluster, as its console shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """Five seconds of this broker; rates are per second."""

    time_s: int
    """The end of the five seconds, by the wall clock."""
    bytes_in: float
    bytes_out: float
    messages_in: float
    requests: float
    produce_ms: float
    """99th percentile of the time to answer Produce requests; 0 without any."""
    fetch_ms: float
    loop_lag_ms: float
    """The longest delay of a timer."""
    busy: float
    """Share of the time in which the event loop ran, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A data directory and the disk below it."""

    path: str
    total_bytes: int
    free_bytes: int
    online: bool


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """How many requests of one API there were since the start, and what they took lately."""

    api: str
    count: int
    median_ms: float
    p99_ms: float
    largest_ms: float


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """Another broker, or this one, as this broker sees it."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool


@dataclass(frozen=True, slots=True)
class Health:
    """What this broker knows of problems of the cluster."""

    offline_partitions: Sequence[tuple[str, int]]
    under_replicated: Sequence[tuple[str, int]]
    """Each at most the first hundred; the counts are of all."""
    offline_count: int
    under_replicated_count: int
    under_min_isr_count: int
    partitions: int
    topics: int
    controller_id: int
    """-1 if there is none."""
    silent: bool
    """Whether this broker has lost its cluster, and does not serve its partitions."""


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """Something that was decided, and why."""

    time_ms: int
    event: str
    subject: str
    cause: str
    text: str
    data: Mapping[str, Any]
    count: int = 1
