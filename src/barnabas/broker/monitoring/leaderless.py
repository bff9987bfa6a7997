"""Partitions without a leader: no broker that has a replica can speak for them."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.phases import PartitionPhase


class Leaderless(NamedTuple):
    """What the controller knows of such a partition."""

    topic: str
    partition: int
    replicas: int
    in_sync: int
    """Replicas in the last ISR: one of them can lead as soon as its broker returns."""


def leaderless(knowledge: Knowledge) -> list[Leaderless]:
    """Return the partitions without a leader, except of topics that are being deleted."""
    found = []
    for key in knowledge.partitions_in(PartitionPhase.NEW, PartitionPhase.OFFLINE):
        if key.topic in knowledge.deleting:
            continue
        held = knowledge.leaderships.get(key)
        in_sync = len(held.isr) if held is not None else 0
        found.append(Leaderless(*key, len(knowledge.replicas(key)), in_sync))
    return found
