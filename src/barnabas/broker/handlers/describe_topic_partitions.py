"""DescribeTopicPartitions: topics page by page, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.metadata.cluster_view import TopicView
from barnabas.metadata.topic_names import INTERNAL_TOPICS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_LEADER
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[DescribeTopicPartitionsRequest]
) -> DescribeTopicPartitionsResponse:
    """Describe as many partitions as the limit allows; the cursor says where to continue."""
    body = request.body
    limit = broker.options.max_request_partition_size_limit
    left = min(body.response_partition_limit, limit) if body.response_partition_limit > 0 else limit
    asked = {topic.name for topic in body.topics}
    names = _visible(broker, request, asked or broker.cluster.topic_names)
    first = 0
    if body.cursor is not None:
        if body.cursor.partition_index < 0:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"cursor partition {body.cursor.partition_index} must not be negative",
            )
        names = [name for name in names if name >= body.cursor.topic_name]
        asked = {name for name in asked if name >= body.cursor.topic_name}
        if names and names[0] == body.cursor.topic_name:
            first = body.cursor.partition_index
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if left <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        described = _describe(broker, request, name, first, left)
        response.topics.append(described)
        left -= len(described.partitions)
        topic = broker.cluster.topic(name)
        shown = first + len(described.partitions)
        if topic is not None and not described.error_code and shown < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=shown)
            break
        first = 0
    response.topics += [
        DescribeTopicPartitionsResponseTopic(
            name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        for name in sorted(asked)
        if not broker.allows(request.session, Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]
    return response


def refuse(
    request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str | None
) -> DescribeTopicPartitionsResponse:
    """Answer every topic with one error."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=code)
            for topic in request.topics
        ]
    )


def _visible(
    broker: Broker, request: Request[DescribeTopicPartitionsRequest], names: Iterable[str]
) -> list[str]:
    return sorted(
        name
        for name in names
        if broker.sees(request.session, Operation.DESCRIBE, ResourceType.TOPIC, name)
    )


def _describe(
    broker: Broker,
    request: Request[DescribeTopicPartitionsRequest],
    name: str,
    first: int,
    count: int,
) -> DescribeTopicPartitionsResponseTopic:
    topic = broker.cluster.topic(name)
    if topic is None:
        error = broker.topics.name_error(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeTopicPartitionsResponseTopic(name=name, error_code=error)
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=_partitions(broker, topic, first, count),
        topic_authorized_operations=broker.authorized_operations(
            request.session, ResourceType.TOPIC, name
        ),
    )


def _partitions(
    broker: Broker, topic: TopicView, first: int, count: int
) -> list[DescribeTopicPartitionsResponsePartition]:
    brokers = broker.cluster.brokers
    leaders = {
        number: broker.shown_leader(topic.name, number, view.leader)
        for number, view in enumerate(topic.partitions[first : first + count], first)
    }
    return [
        DescribeTopicPartitionsResponsePartition(
            error_code=ErrorCode.NONE
            if leaders[number] in brokers
            else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=number,
            leader_id=leaders[number] if leaders[number] in brokers else NO_LEADER,
            leader_epoch=view.leader_epoch,
            replica_nodes=list(view.replicas),
            isr_nodes=list(view.isr),
            eligible_leader_replicas=[],  # the Java client expects lists, though null is legal
            last_known_elr=[],
            offline_replicas=broker.offline_replicas(topic.name, number, view.replicas),
        )
        for number, view in enumerate(topic.partitions[first : first + count], first)
    ]
