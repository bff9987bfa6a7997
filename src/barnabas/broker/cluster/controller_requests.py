"""Requests from brokers to the controller: how this broker sends them, and how it handles them
while it is the controller itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.peers import Peers
from barnabas.config.broker import BrokerOptions
from barnabas.controller.isr_changes import Granted, Wish
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_EPOCH, TopicPartition, Uuid
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.controller.term import Term

NEWEST_ALTER_PARTITION = 3
DELIVERY_MS_MAX = 2000

Decided: TypeAlias = tuple[dict[Uuid, str], dict[TopicPartition, Granted] | ErrorCode]
"""The topics that the controller knows, and the accepted changes, or why all are rejected."""


class BrokerToController:
    """Sends requests to the controller, which may be on this broker."""

    def __init__(
        self,
        controller: ControllerHost,
        cluster: ClusterView,
        peers: Peers,
        options: Callable[[], BrokerOptions],
    ) -> None:
        self._controller = controller
        self._cluster = cluster
        self._peers = peers
        self._options = options

    async def ask(self, request: Message, timeout_ms: int) -> Message:
        """Send a request to the current controller; raise if it does not respond in time."""
        if self._controller.term is not None:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    return await self._call_own_controller(request)
            except TimeoutError:  # it waits for the coordination service, which may be unavailable
                raise RequestError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"the controller on this broker did not respond within {timeout_ms} ms",
                ) from None
        listener = self._options().endpoints.control_plane
        answer: Message = await self._peers.ask(
            self._cluster.controller_id, request, timeout_ms, listener
        )
        return answer

    async def _call_own_controller(self, request: Message) -> Message:
        if isinstance(request, AlterPartitionRequest):
            return await alter_partition(self._controller, request, NEWEST_ALTER_PARTITION)
        assert isinstance(request, ControlledShutdownRequest)
        return await controlled_shutdown(self._controller, request)


async def controlled_shutdown(
    controller: ControllerHost, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    """Move leaderships from a broker that is about to stop to others."""
    try:
        remaining = await controller.call(
            lambda term: term.controlled_shutdown(request.broker_id, request.broker_epoch)
        )
    except RequestError as refusal:
        return ControlledShutdownResponse(error_code=refusal.code)
    if request.broker_id == controller.broker_id:
        # No other broker can send it, and until then clients are still sent to this one.
        await controller.all_delivered(DELIVERY_MS_MAX)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=key.topic, partition_index=key.partition)
            for key in remaining
        ]
    )


async def alter_partition(
    controller: ControllerHost, request: AlterPartitionRequest, version: int
) -> AlterPartitionResponse:
    """Change the ISR of partitions as their leader proposes."""
    by_id = version >= 2

    async def decide(term: Term) -> Decided:
        # In the controller's queue: a new controller has to load the topics first.
        names = {topic.topic_id: name for name, topic in term.knowledge.topics.items()}
        wishes = [
            _isr_change(name, data, version)
            for topic in request.topics
            if (name := names.get(topic.topic_id) if by_id else topic.topic_name) is not None
            for data in topic.partitions
        ]
        return names, await term.alter_partitions(
            request.broker_id, request.broker_epoch, wishes, names_old_error=version < 2
        )

    try:
        names, answers = await controller.call(decide)
    except RequestError as refusal:
        return AlterPartitionResponse(error_code=refusal.code)
    if isinstance(answers, ErrorCode):
        return AlterPartitionResponse(error_code=answers)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response = AlterPartitionResponse()
    for topic in request.topics:
        name = names.get(topic.topic_id) if by_id else topic.topic_name
        results = []
        for data in topic.partitions:
            granted = answers.get(TopicPartition(name or "", data.partition_index))
            results.append(_answer(data.partition_index, granted or Granted(unknown)))
        response.topics.append(
            ResponseTopicData(
                topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=results
            )
        )
    return response


def _isr_change(topic: str, data: PartitionData, version: int) -> Wish:
    if version >= 3:
        isr = tuple(each.broker_id for each in data.new_isr_with_epochs)
        epochs = tuple(each.broker_epoch for each in data.new_isr_with_epochs)
    else:
        isr = tuple(data.new_isr)
        epochs = (NO_EPOCH,) * len(isr)
    return Wish(
        TopicPartition(topic, data.partition_index),
        data.leader_epoch,
        isr,
        epochs,
        data.partition_epoch,
        data.leader_recovery_state == 1,
    )


def _answer(index: int, granted: Granted) -> ResponsePartitionData:
    held = granted.leadership
    if held is None:
        return ResponsePartitionData(partition_index=index, error_code=granted.error)
    return ResponsePartitionData(
        partition_index=index,
        leader_id=held.leader,
        leader_epoch=held.leader_epoch,
        isr=list(held.isr),
        leader_recovery_state=int(held.recovering),
        partition_epoch=held.partition_epoch,
    )
