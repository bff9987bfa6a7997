"""Metadata: brokers, topics and leaders; missing topics may be created on the way.

v0 asks for all topics with an empty list, later versions with null. v4 lets the client forbid
creation, v10 added topic ids, v12 lookup by id, v13 an error for the whole response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.cluster_operations import cluster_operations
from barnabas.metadata.cluster_view import PartitionView, TopicView
from barnabas.metadata.topic_names import INTERNAL_TOPICS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_LEADER, ZERO_UUID
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


PATIENCE_MS = 10_000
"""How long a broker that has just started lets clients wait for metadata it does not have."""


def handle(
    broker: Broker, request: Request[MetadataRequest]
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    """Describe the requested topics; create missing ones where allowed."""
    if not broker.control.informed:
        return _answer_when_informed(broker, request)
    wanted = request.body.topics
    if wanted is None or (request.version == 0 and not wanted):
        return _answer(broker, request, _all(broker, request))
    missing, denied = _creatable(broker, request, wanted)
    if missing:
        return _create_and_answer(broker, request, wanted, missing, denied)
    return _answer(broker, request, [_describe(broker, request, topic, denied) for topic in wanted])


async def _answer_when_informed(
    broker: Broker, request: Request[MetadataRequest]
) -> MetadataResponse:
    """Wait for the controller's update: clients treat an unknown topic as deleted."""
    await broker.control.until_informed(PATIENCE_MS)
    answer = handle(broker, request)
    return answer if isinstance(answer, MetadataResponse) else await answer


def refuse(request: MetadataRequest, code: ErrorCode, message: str | None) -> MetadataResponse:
    """Answer every topic with one error."""
    return MetadataResponse(
        error_code=code,
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ],
    )


def _creatable(
    broker: Broker, request: Request[MetadataRequest], wanted: list[MetadataRequestTopic]
) -> tuple[list[str], dict[str, ErrorCode]]:
    """Return the missing topics that are created, and those that the client may not create."""
    creatable: list[str] = []
    denied: dict[str, ErrorCode] = {}
    if not (broker.options.auto_create_topics_enable and request.body.allow_auto_topic_creation):
        return creatable, denied
    session = request.session
    for topic in wanted:
        name = topic.name
        if not name or broker.cluster.topic(name) is not None:
            continue
        if not broker.sees(session, Operation.DESCRIBE, ResourceType.TOPIC, name):
            continue  # which describing it says
        if broker.sees(
            session, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME
        ) or broker.allows(session, Operation.CREATE, ResourceType.TOPIC, name):
            creatable.append(name)
        else:
            denied[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return creatable, denied


async def _create_and_answer(
    broker: Broker,
    request: Request[MetadataRequest],
    wanted: list[MetadataRequestTopic],
    missing: list[str],
    denied: dict[str, ErrorCode],
) -> MetadataResponse:
    failures = dict(denied)
    mutations = broker.quotas.mutations(request, strict=False)
    for name in dict.fromkeys(missing):
        try:
            if broker.topics.name_error(name) is None and name not in INTERNAL_TOPICS:
                mutations.record(broker.options.num_partitions, broker.timer.now_ms())
            await broker.topics.create_automatically(name)
        except RequestError as refusal:
            failures[name] = refusal.code
    response = _answer(
        broker, request, [_describe(broker, request, topic, failures) for topic in wanted]
    )
    response.throttle_time_ms = mutations.throttle_ms(broker.timer.now_ms())
    return response


def _all(broker: Broker, request: Request[MetadataRequest]) -> list[MetadataResponseTopic]:
    return [
        _topic(broker, request, topic)
        for topic in broker.cluster.topics
        if broker.sees(request.session, Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]


def _describe(
    broker: Broker,
    request: Request[MetadataRequest],
    wanted: MetadataRequestTopic,
    failures: Mapping[str, ErrorCode],
) -> MetadataResponseTopic:
    """Describe a topic; `failures` are of topics that could not be created."""
    if wanted.name is not None and wanted.name in failures:
        return MetadataResponseTopic(error_code=failures[wanted.name], name=wanted.name)
    if wanted.name is None:
        topic = broker.cluster.topic_by_id(wanted.topic_id)
        absent = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = broker.cluster.topic(wanted.name)
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            absent = broker.topics.name_error(wanted.name) or absent
    name = topic.name if topic is not None else wanted.name
    if name is not None and not broker.allows(
        request.session, Operation.DESCRIBE, ResourceType.TOPIC, name
    ):
        absent, topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
    if topic is None:
        return MetadataResponseTopic(
            error_code=absent,
            name=wanted.name if wanted.name is not None or request.version >= 12 else "",
            topic_id=wanted.topic_id,
        )
    return _topic(broker, request, topic)


def _topic(
    broker: Broker, request: Request[MetadataRequest], topic: TopicView
) -> MetadataResponseTopic:
    response = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id or ZERO_UUID,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(broker, request, topic.name, number, view)
            for number, view in enumerate(topic.partitions)
        ],
    )
    if request.body.include_topic_authorized_operations:
        response.topic_authorized_operations = broker.authorized_operations(
            request.session, ResourceType.TOPIC, topic.name
        )
    return response


def _partition(
    broker: Broker,
    request: Request[MetadataRequest],
    topic: str,
    number: int,
    view: PartitionView,
) -> MetadataResponsePartition:
    error, leader = ErrorCode.NONE, broker.shown_leader(topic, number, view.leader)
    brokers = broker.cluster.brokers
    if leader not in brokers:
        error, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
    elif request.session.listener not in brokers[leader].endpoints:
        error = (
            ErrorCode.LISTENER_NOT_FOUND if request.version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
        )
        leader = NO_LEADER
    return MetadataResponsePartition(
        error_code=error,
        partition_index=number,
        leader_id=leader,
        leader_epoch=view.leader_epoch,
        replica_nodes=list(view.replicas),
        isr_nodes=list(view.isr),
        offline_replicas=broker.offline_replicas(topic, number, view.replicas),
    )


def _answer(
    broker: Broker, request: Request[MetadataRequest], topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    session = request.session
    response = MetadataResponse(
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.shown_controller,
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in broker.endpoints_for(session)
        ],
        topics=topics,
    )
    if request.body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(broker, session)
    return response
