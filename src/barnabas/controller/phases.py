"""The phases of partitions and replicas, as the controller sees them, and their transitions.

partition:  NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → NON_EXISTENT

replica:    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → DELETING → DELETED → NON_EXISTENT
                                                    ↓
                                              UNDELETABLE → ONLINE, OFFLINE
"""

from __future__ import annotations

from enum import Enum


class PartitionPhase(Enum):
    """The phase of a partition."""

    NON_EXISTENT = "does not exist, or was deleted"
    NEW = "has replicas, but neither a leader nor in-sync replicas yet"
    ONLINE = "has a leader"
    OFFLINE = "has lost its leader"


class ReplicaPhase(Enum):
    """The phase of a replica."""

    NON_EXISTENT = "does not exist, or was deleted"
    NEW = "is to be created by its broker"
    ONLINE = "is on a live broker, in or out of sync"
    OFFLINE = "is on a dead broker or a failed disk"
    DELETING = "is being deleted by its broker"
    DELETED = "was deleted by its broker"
    UNDELETABLE = "could not be deleted; retried when its broker returns"


PARTITION_BEFORE = {
    PartitionPhase.NEW: {PartitionPhase.NON_EXISTENT},
    PartitionPhase.ONLINE: {PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE},
    PartitionPhase.OFFLINE: {PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE},
    PartitionPhase.NON_EXISTENT: {PartitionPhase.OFFLINE},
}
"""The phases from which a partition may enter each phase."""

REPLICA_BEFORE = {
    ReplicaPhase.NEW: {ReplicaPhase.NON_EXISTENT},
    ReplicaPhase.ONLINE: {
        ReplicaPhase.NEW,
        ReplicaPhase.ONLINE,
        ReplicaPhase.OFFLINE,
        ReplicaPhase.UNDELETABLE,
    },
    ReplicaPhase.OFFLINE: {
        ReplicaPhase.NEW,
        ReplicaPhase.ONLINE,
        ReplicaPhase.OFFLINE,
        ReplicaPhase.UNDELETABLE,
    },
    ReplicaPhase.DELETING: {ReplicaPhase.OFFLINE},
    ReplicaPhase.DELETED: {ReplicaPhase.DELETING},
    ReplicaPhase.UNDELETABLE: {ReplicaPhase.OFFLINE, ReplicaPhase.DELETING},
    ReplicaPhase.NON_EXISTENT: {ReplicaPhase.DELETED},
}
"""The phases from which a replica may enter each phase."""
