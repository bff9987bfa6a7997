"""What was seen of a cluster at one moment; two samples give rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.cli.top.page import Page
from barnabas.client.metadata import BrokerAddress, TopicView
from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Waiting:
    """For how long the oldest record that a group has not read has waited."""

    oldest_ms: int
    at_least: bool
    """Whether some of the partitions in which it lags were not looked at."""


@dataclass(frozen=True, slots=True)
class GroupSample:
    """A group: its state and positions."""

    state: str
    committed: Mapping[TopicPartition, int]
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the logs begin in which it lags: what was deleted before is not read."""
    waiting: Waiting | None = None
    """None if it has read all, or if that could not be read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A cluster at one moment."""

    at_s: float
    """By a clock that never jumps."""
    cluster_id: str | None
    controller_id: int | None
    """None if there is none, or if it could not be found out."""
    brokers: tuple[BrokerAddress, ...]
    topics: tuple[TopicView, ...]
    min_isr: Mapping[str, int] = field(default_factory=dict)
    """Of topics with a replica that is not in sync."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The high watermark of each partition with a leader."""
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Bytes of the leader's log, as far as the directories of brokers could be described."""
    groups: Mapping[str, GroupSample] = field(default_factory=dict)
    round_trips_ms: Mapping[int, float] = field(default_factory=dict)
    """How long each broker took to answer a small request of this command."""
    pages: Mapping[int, Page] = field(default_factory=dict)
    """The metrics of brokers, as far as their endpoints are known."""
    missing: tuple[str, ...] = ()
    """What could not be read, and why."""
