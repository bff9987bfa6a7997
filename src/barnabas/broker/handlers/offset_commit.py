"""OffsetCommit: store how far a group has read.

v0 stores offsets in the coordination tree under `/consumers`, where the oldest clients look for
them; later versions in `__consumer_offsets`. v2 to v4 may set a retention, v9 has member epochs,
v10 topic ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.offset_filter import committable
from barnabas.groups.offset_table import TOPIC_IDS_SINCE, refused_commit
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[OffsetCommitRequest]
) -> Coroutine[Any, Any, OffsetCommitResponse] | None:
    """Commit the valid partitions; the others get their own errors."""
    groups, group_id = broker.groups, request.body.group_id
    groups.authorize(request, group_id, Operation.READ)
    if request.version == 0:
        return _commit_to_tree(broker, request)
    shard = groups.shard(group_id)
    by_id = request.version >= TOPIC_IDS_SINCE
    call = groups.call(request, committable(broker, request, by_id=by_id))
    groups.apply(shard, shard.machine.offset_requests.handle_commit(request.body, call))
    return None


def refuse(
    request: OffsetCommitRequest, code: ErrorCode, message: str | None
) -> OffsetCommitResponse:
    """Answer every partition with one error."""
    return refused_commit(request, code)


async def _commit_to_tree(
    broker: Broker, request: Request[OffsetCommitRequest]
) -> OffsetCommitResponse:
    response = OffsetCommitResponse()
    for topic in request.body.topics:
        results = []
        for wanted in topic.partitions:
            result = OffsetCommitResponsePartition(partition_index=wanted.partition_index)
            try:
                await _store(broker, request, topic.name, wanted)
            except RequestError as refusal:
                result.error_code = refusal.code
            results.append(result)
        response.topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=results))
    return response


async def _store(
    broker: Broker,
    request: Request[OffsetCommitRequest],
    topic: str,
    wanted: OffsetCommitRequestPartition,
) -> None:
    if not broker.allows(request.session, Operation.READ, ResourceType.TOPIC, topic):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    view = broker.cluster.topic(topic)
    if view is None or not 0 <= wanted.partition_index < len(view.partitions):
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if len(wanted.committed_metadata or "") > broker.options.offset_metadata_max_bytes:
        raise RequestError(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    await broker.tree_offsets.store(
        request.body.group_id, topic, wanted.partition_index, wanted.committed_offset
    )
