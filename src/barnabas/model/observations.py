"""What a broker's process observes of itself and its cluster, as its console shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.model.ids import TopicPartition


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
class Replicas:
    """The replicas of one broker, according to the metadata of another, or its own."""

    held: int
    led: int
    lagging: Sequence[TopicPartition]
    """Where it is not in sync."""
    leaderless: Sequence[TopicPartition]
    """Where there is no leader."""


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
    broker: int = -1
    """Of the broker that decided."""


@dataclass(frozen=True, slots=True)
class Diary:
    """Entries of the diaries of all brokers, the newest first."""

    entries: Sequence[DiaryEntry]
    missing: str = ""
    """Why those of other brokers may be missing; empty if none are."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of this process's log."""

    number: int
    """Counts the lines of the process, from 1."""
    time_ms: int
    level: int
    """As in the module logging."""
    logger: str
    text: str
    """The message, and the traceback below it."""

    @property
    def level_name(self) -> str:
        """The level as Kafka calls it."""
        names = ((50, "FATAL"), (40, "ERROR"), (30, "WARN"), (20, "INFO"), (10, "DEBUG"))
        return next((name for number, name in names if self.level >= number), "TRACE")


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """One request that was answered, and where its time went."""

    time_ms: int
    api: str
    version: int
    client_id: str
    principal: str
    host: str
    size_bytes: int
    queue_ms: float
    local_ms: float
    remote_ms: float
    throttle_ms: float
    send_ms: float
    error: str
    """The last error in its response; empty without one."""

    @property
    def total_ms(self) -> float:
        """How long the request took; what its client is told to wait comes afterwards."""
        return self.queue_ms + self.local_ms + self.remote_ms + self.send_ms


@dataclass(frozen=True, slots=True)
class ErrorSeen:
    """An error that a client was answered."""

    api: str
    error: str
    client_id: str
    count: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class WaitingSeen:
    """A request that is not answered yet."""

    api: str
    client_id: str
    principal: str
    host: str
    waiting_ms: int
    awaits: str
    """What it waits for, in words."""


@dataclass(frozen=True, slots=True)
class RequestsSeen:
    """What this broker saw of its clients' requests, and what waits now."""

    recent: Sequence[RequestSeen]
    """The newest first."""
    slowest: Sequence[RequestSeen]
    errors: Sequence[ErrorSeen]
    """The most frequent first."""
    waiting: Sequence[WaitingSeen]
    """The longest first, at most a few hundred."""
    waiting_count: int


@dataclass(frozen=True, slots=True)
class TopicClient:
    """A client that writes to a topic at this broker, or reads it."""

    api: str
    client_id: str
    principal: str
    host: str
    last_ms: int


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """What a topic had at this broker since the start."""

    bytes_in: int
    bytes_out: int
    messages_in: int


@dataclass(frozen=True, slots=True)
class LogState:
    """One partition's log at this broker: what retention and compaction have made of it."""

    partition: int
    segments: int
    size_bytes: int
    start_offset: int
    end_offset: int
    oldest_ms: int | None
    """The largest timestamp of the oldest segment, from which its retention counts."""
    cleaned_offset: int | None
    """Up to where it was compacted; None if it is not."""
    dirty_bytes: int | None
    """Bytes that were not compacted yet."""
    is_compacting: bool
