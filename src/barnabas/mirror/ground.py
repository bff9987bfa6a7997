"""What a session stands on, and the two ways to copy from there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from barnabas.aio import AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.clients import Side
from barnabas.mirror.positions import Positions
from barnabas.mirror.progress import Progress
from barnabas.mirror.route import Route
from barnabas.mirror.selection import Selection
from barnabas.mirror.source import Source
from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """What to copy, from where to where, and in which rhythm."""

    source: Side
    target: Side
    selection: Selection
    name: str | None = None
    until_caught_up: bool = False
    commit_interval_ms: float = 1000
    refresh_interval_ms: float = 10_000
    replication_factor: int = -1
    from_end: bool = False


@dataclass(frozen=True, slots=True)
class Ground:
    """Clusters, names and state of one session; `number` is that of the session itself.

    `producer` is the mirror's own: whoever starts it next shuts this session out.
    """

    options: MirrorOptions
    route: Route
    source: Source
    target: ClusterClient
    producer: AIOKafkaProducer
    positions: Positions
    number: int
    progress: Progress
    tell: Callable[[str], None]


class Mover(Protocol):
    """Moves the records of a session."""

    async def start(self, stack: AsyncExitStack) -> None:
        """Open what it needs, to be closed when the stack is left."""

    async def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Copy these partitions from now on; those that are new, from their starts."""

    async def step(self) -> bool:
        """Copy some; False: there was nothing."""

    async def position(self, partition: TopicPartition) -> int:
        """Return how far a partition was read."""

    def lag(self) -> int | None:
        """Return how much there is to copy; None while that is not known."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A way to copy; `shared` says that other processes do, in lanes."""

    mover: Callable[[Ground], Mover]
    shared: bool
