"""Leader hints: the current leader beside an error, and its endpoint (KIP-951).

A client that gets them need not refresh its metadata first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_LEADER

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session

WRONG_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors that mean: another broker leads, or there is a newer leader epoch."""


class Leader(NamedTuple):
    """The leader of a partition, and its epoch."""

    leader_id: int
    leader_epoch: int


class LeaderEndpoint(NamedTuple):
    """The endpoint of a leader."""

    node_id: int
    host: str
    port: int
    rack: str | None


def leader_of(broker: Broker, topic: str, index: int) -> Leader | None:
    """Return the leader of a partition as far as this broker knows, None if there is none."""
    partition = broker.partitions.get((topic, index))
    if partition is not None and partition.assigned_leader != NO_LEADER:
        if partition.is_assigned_leader and not partition.is_leader:
            return None  # another may lead that this broker does not know yet
        return Leader(partition.assigned_leader, partition.leader_epoch)
    view = broker.cluster.topic(topic)
    if view is None or not 0 <= index < len(view.partitions):
        return None
    known = view.partitions[index]
    return None if known.leader == NO_LEADER else Leader(known.leader, known.leader_epoch)


def endpoints_of(broker: Broker, session: Session, leaders: set[int]) -> list[LeaderEndpoint]:
    """Return the endpoints of leaders on the listener that the client uses."""
    return [LeaderEndpoint(*each) for each in broker.endpoints_for(session) if each[0] in leaders]
