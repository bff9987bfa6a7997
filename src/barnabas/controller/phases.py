"""The lives of partitions and of replicas, as the controller sees them: which step follows which.

partition:  NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → NON_EXISTENT

replica:    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → DELETING → DELETED → NON_EXISTENT
                                                    ↓
                                              UNDELETABLE → ONLINE, OFFLINE
"""

from __future__ import annotations

from enum import Enum


class PartitionPhase(Enum):
    """Where a partition is in its life."""

    NON_EXISTENT = "does not exist, or was deleted"
    NEW = "has replicas, but neither a leader nor in-sync replicas yet"
    ONLINE = "has a leader"
    OFFLINE = "has lost its leader"


class ReplicaPhase(Enum):
    """Where one replica is in its life."""

    NON_EXISTENT = "does not exist, or was deleted"
    NEW = "is to be made by its broker"
    ONLINE = "is on a live broker, in or out of sync"
    OFFLINE = "is on a dead broker or a failed disk"
    DELETING = "its broker was told to delete it"
    DELETED = "its broker has deleted it"
    UNDELETABLE = "could not be deleted; it is tried again when its broker is back"


PARTITION_BEFORE = {
    PartitionPhase.NEW: {PartitionPhase.NON_EXISTENT},
    PartitionPhase.ONLINE: {PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE},
    PartitionPhase.OFFLINE: {PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE},
    PartitionPhase.NON_EXISTENT: {PartitionPhase.OFFLINE},
}
"""What a partition may have been before it becomes this."""

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
"""What a replica may have been before it becomes this."""
