"""The controller's answers, right after its election and while its tree is away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.cluster.controller_requests import BrokerToController, alter_partition
from barnabas.broker.handlers import list_partition_reassignments
from barnabas.controller.isr_changes import Granted
from barnabas.controller.leadership import Assignment
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from barnabas.wire.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

TOPIC_ID = bytes(range(16))
KEY = TopicPartition("t", 0)


class Elected:
    """A controller that knows nothing until its turn has come."""

    def __init__(self) -> None:
        self.term: Any = SimpleNamespace(
            knowledge=SimpleNamespace(topics={}, moving=set(), assignment={}.get),
            alter_partitions=self._alter,
        )

    async def _alter(self, *wanted: Any, **options: Any) -> dict[TopicPartition, Granted]:
        _, _, wishes = wanted
        return {wish.key: Granted(ErrorCode.FENCED_LEADER_EPOCH) for wish in wishes}

    async def call(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        known = self.term.knowledge
        known.topics["t"] = SimpleNamespace(topic_id=TOPIC_ID)
        known.moving.add(KEY)
        known.assignment = {KEY: Assignment((1, 2), adding=(2,))}.get
        return await work(self.term)


def broker() -> Any:
    return SimpleNamespace(controller=Elected(), check_cluster=lambda *asked: None)


def test_a_leader_is_not_told_that_its_topic_is_unknown() -> None:
    """It would wait for ever for the controller's word about that topic."""
    data = PartitionData(partition_index=0, new_isr_with_epochs=[BrokerState(broker_id=1)])
    request = AlterPartitionRequest(
        broker_id=1, topics=[TopicData(topic_id=TOPIC_ID, partitions=[data])]
    )
    response = asyncio.run(alter_partition(broker().controller, request, 3))
    (answer,) = response.topics[0].partitions
    assert answer.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_what_moves_is_listed() -> None:
    """A tool would think that its reassignment is over."""
    request: Any = SimpleNamespace(
        body=ListPartitionReassignmentsRequest(topics=None), session=None
    )
    response = asyncio.run(list_partition_reassignments.handle(broker(), request))
    assert [(topic.name, topic.partitions[0].replicas) for topic in response.topics] == [
        ("t", [1, 2])
    ]


def test_a_controller_that_waits_for_its_tree_is_not_waited_for() -> None:
    """Otherwise a broker whose ZooKeeper is away could never be stopped."""

    async def never(work: object) -> Any:
        await asyncio.get_running_loop().create_future()

    here: Any = SimpleNamespace(term=object(), call=never)
    nobody: Any = None
    asking = BrokerToController(here, ClusterView(), peers=nobody, options=nobody)
    with pytest.raises(RequestError, match="10 ms") as refusal:
        asyncio.run(asking.ask(ControlledShutdownRequest(broker_id=0), 10))
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
