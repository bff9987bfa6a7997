"""Reassignments on a single broker: where a partition is, or an error that says why not there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.broker.serving import Serving, Wire, create_topic

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

HERE = -7
"""Stands for the id of the broker under test."""


def reassign(
    wire: Wire, topic: str, partition: int, replicas: list[int] | None, fixed_factor: bool = False
) -> tuple[int, str | None]:
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=not fixed_factor,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)],
            )
        ],
    )
    answer = wire.ask(request, 1)
    assert answer.error_code == ErrorCode.NONE
    assert answer.allow_replication_factor_change is not fixed_factor
    (result,) = answer.responses
    assert result.name == topic
    (only,) = result.partitions
    assert only.partition_index == partition
    return only.error_code, only.error_message


@pytest.mark.parametrize(
    ("replicas", "fixed_factor", "code", "reason"),
    [
        ([HERE], False, ErrorCode.NONE, None),
        ([HERE], True, ErrorCode.NONE, None),
        (None, False, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        ([], False, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "[]"),
        ([HERE, HERE], False, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "distinct"),
        ([4711], False, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "[4711]"),
        ([HERE, 4711], True, ErrorCode.INVALID_REPLICA_ASSIGNMENT, "[4711]"),
    ],
)
def test_only_the_present_replicas_can_be_reached(
    serving: Serving,
    wire: Wire,
    new_name: Callable[[], str],
    replicas: list[int] | None,
    fixed_factor: bool,
    code: ErrorCode,
    reason: str | None,
) -> None:
    create_topic(wire, name := new_name(), 2)
    if replicas is not None:
        replicas = [serving.broker.broker_id if each == HERE else each for each in replicas]
    found, message = reassign(wire, name, 1, replicas, fixed_factor)
    assert found == code
    assert (reason is None and message is None) or (reason or "") in (message or "")


@pytest.mark.parametrize("partition", [-1, 2])
def test_partitions_that_are_not_there(
    serving: Serving, wire: Wire, new_name: Callable[[], str], partition: int
) -> None:
    create_topic(wire, name := new_name(), 2)
    here = [serving.broker.broker_id]
    assert reassign(wire, name, partition, here)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(wire, new_name(), 0, here)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
