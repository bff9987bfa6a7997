"""Whom a client should have asked: the leader behind an error, and where it listens (KIP-951).

A client that hears it with the error need not ask for metadata first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_LEADER

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session

WRONG_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors that say: ask somebody else, or know a later epoch."""


class Leader(NamedTuple):
    """Who leads a partition, since which epoch."""

    leader_id: int
    leader_epoch: int


class LeaderEndpoint(NamedTuple):
    """Where a broker listens."""

    node_id: int
    host: str
    port: int
    rack: str | None


def leader_of(broker: Broker, topic: str, index: int) -> Leader | None:
    """Return who leads a partition as far as this broker knows, None where nobody does."""
    partition = broker.partitions.get((topic, index))
    if partition is not None and partition.assigned_leader != NO_LEADER:
        if partition.is_assigned_leader and not partition.is_leader:
            return None  # somebody else may, of whom this broker has not heard
        return Leader(partition.assigned_leader, partition.leader_epoch)
    view = broker.cluster.topic(topic)
    if view is None or not 0 <= index < len(view.partitions):
        return None
    told = view.partitions[index]
    return None if told.leader == NO_LEADER else Leader(told.leader, told.leader_epoch)


def endpoints_of(broker: Broker, session: Session, leaders: set[int]) -> list[LeaderEndpoint]:
    """Return where leaders listen, for the listener that the client uses."""
    return [LeaderEndpoint(*each) for each in broker.endpoints_for(session) if each[0] in leaders]
