"""OffsetFetch for one group and for several, in one form.

Versions 0 to 7 ask for one group, later ones for a list; the rest of the code sees lists only. The
error of a group is in each partition (0, 1), in the response (2 to 7) or in the group (8 and
later).
"""

from __future__ import annotations

from typing import Final

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUPS_SINCE: Final = 8


def groups_asked(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """Return the groups of a request."""
    if version >= _GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def refused(
    asked: OffsetFetchRequestGroup, version: int, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """Build the response for a group that failed as a whole."""
    topics = []
    if version < 2:
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[no_offset(index, code) for index in topic.partition_indexes],
            )
            for topic in asked.topics or []
        ]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=code)


def no_offset(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    """Build the response for a partition without an offset, or with an error."""
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=-1, metadata="", error_code=code
    )


def fetched(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    """Build the response from the results of each group."""
    if version >= _GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
