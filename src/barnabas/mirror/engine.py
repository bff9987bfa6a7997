"""An engine opens what copies the records of a session: in this process, or in others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.clusters import SourceLogs, start_client
from barnabas.mirror.copier import PartitionCopier, now_ms
from barnabas.mirror.positions import MirrorPositions
from barnabas.mirror.progress import MirrorProgress
from barnabas.mirror.replication_policy import ReplicationFlow, TopicFilter
from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """What to copy, from where to where, and how often to commit and refresh."""

    source: ClientOptions
    target: ClientOptions
    topics: TopicFilter
    name: str | None = None
    until_caught_up: bool = False
    commit_interval_ms: float = 1000
    refresh_interval_ms: float = 10_000
    replication_factor: int = -1
    from_end: bool = False


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session passes to its copier; `number` is the session's own.

    `producer` has the mirror's own transactional id: starting it again fences this session.
    """

    options: MirrorOptions
    flow: ReplicationFlow
    source: SourceLogs
    target: ClusterClient
    producer: AIOKafkaProducer
    positions: MirrorPositions
    number: int
    progress: MirrorProgress
    notify: Callable[[str], None]


class Copier(Protocol):
    """Copies the records of a session."""

    async def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Replace the partitions to copy; `starts` has the first offsets of those that are new."""

    async def step(self) -> bool:
        """Copy some records; return whether there were any."""

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset up to which a partition was read."""

    def lag(self) -> int | None:
        """Return how many records are left to copy; None while that is unknown."""


@dataclass(frozen=True, slots=True)
class Engine:
    """How to open a copier; `shared` means that tasks in other processes copy, shard by shard.

    What the copier opens is closed when the stack is left.
    """

    open: Callable[[SessionContext, AsyncExitStack], Awaitable[Copier]]
    shared: bool


async def _open_local(context: SessionContext, stack: AsyncExitStack) -> Copier:
    consumer = await start_client(stack, AIOKafkaConsumer(**context.options.source.consumer))
    return PartitionCopier(
        context.flow,
        context.source,
        consumer,
        context.producer,
        context.positions,
        commit_interval_ms=context.options.commit_interval_ms,
        checkpointed=False,
        on_commit=lambda records, skipped: context.progress.committed(records, skipped, now_ms()),
        notify=context.notify,
    )


LOCAL_ENGINE = Engine(_open_local, shared=False)
"""Copies in this process, with the mirror's own producer."""
