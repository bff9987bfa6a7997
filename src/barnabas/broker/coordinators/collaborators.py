"""The parts of a broker that its coordinators use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.broker.loop import WheelTimer
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.registry import Registry
from barnabas.model.errors import RequestError
from barnabas.model.note import NoteSink
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.schema import Message


class Ask(Protocol):
    """Sends a request to another broker and returns its response."""

    async def __call__(self, broker_id: int, request: Message, timeout_ms: int) -> Any: ...


@dataclass(frozen=True, slots=True)
class Collaborators:
    """Shared by the group and transaction coordinators and the writers of markers."""

    broker_id: int
    options: Callable[[], BrokerOptions]
    """The options in effect."""
    now_ms: Callable[[], int]
    """The wall clock, for records; deadlines use the timer's clock."""
    timer: WheelTimer
    cluster: ClusterView
    partitions: HostedPartitions
    absent: Callable[[str, int], RequestError]
    """Returns the error for a partition that is not hosted here."""
    shown_leader: Callable[[str, int, int], int]
    """Returns the leader of a partition to show to clients."""
    create_topic: Callable[[NewTopic], Awaitable[None]]
    topic_is_gone: Callable[[str], Awaitable[bool]]
    """Asks the coordination tree whether a topic was deleted."""
    ask: Ask
    allows: Callable[[Session, Operation, ResourceType, str], bool]
    note: NoteSink
    metrics: Registry
