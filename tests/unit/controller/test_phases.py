"""The lives of partitions and replicas, step by step as Kafka's controller allows them."""

from __future__ import annotations

import itertools

import pytest

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.phases import (
    PARTITION_BEFORE,
    REPLICA_BEFORE,
    PartitionPhase,
    ReplicaPhase,
)
from barnabas.model.ids import TopicPartition

T0 = TopicPartition("t", 0)

PARTITION_STEPS = {
    ("NON_EXISTENT", "NEW"),
    ("NEW", "ONLINE"),
    ("NEW", "OFFLINE"),
    ("ONLINE", "ONLINE"),
    ("ONLINE", "OFFLINE"),
    ("OFFLINE", "ONLINE"),
    ("OFFLINE", "OFFLINE"),
    ("OFFLINE", "NON_EXISTENT"),
}

REPLICA_STEPS = {
    ("NON_EXISTENT", "NEW"),
    ("NEW", "ONLINE"),
    ("NEW", "OFFLINE"),
    ("ONLINE", "ONLINE"),
    ("ONLINE", "OFFLINE"),
    ("OFFLINE", "ONLINE"),
    ("OFFLINE", "OFFLINE"),
    ("OFFLINE", "DELETING"),
    ("DELETING", "DELETED"),
    ("DELETED", "NON_EXISTENT"),
    ("DELETING", "UNDELETABLE"),
    ("OFFLINE", "UNDELETABLE"),
    ("UNDELETABLE", "ONLINE"),
    ("UNDELETABLE", "OFFLINE"),
}


@pytest.mark.parametrize(
    ("before", "after"),
    list(itertools.product(PartitionPhase, repeat=2)),
    ids=lambda each: each.name,
)
def test_steps_of_a_partition(before: PartitionPhase, after: PartitionPhase) -> None:
    knowledge = Knowledge()
    knowledge.set_phase(T0, before)
    legal = (before.name, after.name) in PARTITION_STEPS
    assert knowledge.may_become(T0, after) is legal
    assert (before in PARTITION_BEFORE[after]) is legal


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.product(ReplicaPhase, repeat=2)), ids=lambda each: each.name
)
def test_steps_of_a_replica(before: ReplicaPhase, after: ReplicaPhase) -> None:
    knowledge = Knowledge()
    knowledge.set_replica_phase((T0, 1), before)
    legal = (before.name, after.name) in REPLICA_STEPS
    assert knowledge.replica_may_become((T0, 1), after) is legal
    assert (before in REPLICA_BEFORE[after]) is legal
