"""Assignors of kafka-python and aiokafka, given to our consumer as they are."""

from __future__ import annotations

import warnings
from typing import Any

import aiokafka.coordinator.assignors.roundrobin as aiokafka_roundrobin
import aiokafka.coordinator.assignors.sticky.sticky_assignor as aiokafka_sticky
import pytest
from tests.unit.consumer.group.test_assignors import MEMBERS, cluster, never

from barnabas.assignment.contract import Share
from barnabas.consumer.group.assignors import is_cooperative, strategies
from barnabas.model.ids import TopicPartition

with warnings.catch_warnings():
    # kafka-python reads its message definitions in a way that Python 3.11 frowns at.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka.coordinator.assignors.cooperative_sticky as kafka_cooperative
    import kafka.coordinator.assignors.range as kafka_range


@pytest.mark.parametrize(
    "assignor",
    [
        kafka_range.RangePartitionAssignor,
        kafka_cooperative.CooperativeStickyAssignor,
        aiokafka_roundrobin.RoundRobinPartitionAssignor,
        aiokafka_sticky.StickyPartitionAssignor,
    ],
)
def test_assignors_of_other_libraries_work_as_they_are(assignor: Any) -> None:
    """kafka-python wants a list of members, aiokafka a dict; both get what they read."""
    made = strategies([assignor], never)
    strategy = made[assignor.name]
    strategy.user_data(["t"], (), -1)
    shares = strategy.assign(cluster(t=5), MEMBERS)
    dealt = [each for share in shares.values() for each in share.partitions]
    assert sorted(dealt) == [TopicPartition("t", number) for number in range(5)]
    strategy.on_assignment(Share([TopicPartition("t", 0)]), 3)


def test_kafka_python_s_cooperative_assignor_is_cooperative() -> None:
    """It says so by `supported_protocols`."""
    assert is_cooperative(strategies([kafka_cooperative.CooperativeStickyAssignor], never))
    assert not is_cooperative(strategies([kafka_range.RangePartitionAssignor], never))
