"""OffsetForLeaderEpoch: where an epoch ended, so that a reader can detect a truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[OffsetForLeaderEpochRequest]
) -> OffsetForLeaderEpochResponse:
    """Look up each partition's epoch."""
    response = OffsetForLeaderEpochResponse()
    acts_as_broker = broker.sees(
        request.session, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )
    for topic in request.body.topics:
        results = []
        for wanted in topic.partitions:
            result = EpochEndOffset(partition=wanted.partition)
            try:
                if not (
                    acts_as_broker
                    or broker.allows(
                        request.session, Operation.DESCRIBE, ResourceType.TOPIC, topic.topic
                    )
                ):
                    raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                result.leader_epoch, result.end_offset = _look_up(broker, topic.topic, wanted)
            except RequestError as refusal:
                result.error_code = refusal.code
            results.append(result)
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    return response


def refuse(
    request: OffsetForLeaderEpochRequest, code: ErrorCode, message: str | None
) -> OffsetForLeaderEpochResponse:
    """Answer every partition with one error."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(partition=each.partition, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _look_up(broker: Broker, topic: str, wanted: OffsetForLeaderPartition) -> tuple[int, int]:
    partition = broker.partitions.get((topic, wanted.partition))
    if partition is None:
        raise broker.absent(topic, wanted.partition)
    partition.check_leader(wanted.current_leader_epoch)
    log = partition.log
    return log.leader_epochs.end_offset_of(wanted.leader_epoch, log.log_end_offset)
