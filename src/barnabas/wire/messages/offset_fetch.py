"""OffsetFetch (API key 9): read the stored positions of consumer groups."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class OffsetFetchRequestTopic(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field(["int32"])


@struct
class OffsetFetchRequestTopics(Struct):
    name: str = field("string", versions="8-9", ignorable=True)
    topic_id: Uuid = field("uuid", versions="10+", ignorable=True)
    partition_indexes: list[int] = field(["int32"])


@struct
class OffsetFetchRequestGroup(Struct):
    group_id: str = field("string")
    member_id: str | None = field(
        "string", versions="9+", nullable=True, default=None, ignorable=True
    )
    member_epoch: int = field("int32", versions="9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field([OffsetFetchRequestTopics], nullable=True)


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest(Message):
    group_id: str = field("string", versions="0-7")
    topics: list[OffsetFetchRequestTopic] | None = field(
        [OffsetFetchRequestTopic], versions="0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = field([OffsetFetchRequestGroup], versions="8+")
    require_stable: bool = field("bool", versions="7+")


@struct
class OffsetFetchResponsePartition(Struct):
    partition_index: int = field("int32")
    committed_offset: int = field("int64")
    committed_leader_epoch: int = field("int32", versions="5-7", default=-1, ignorable=True)
    metadata: str | None = field("string", nullable=True)
    error_code: int = field("int16")


@struct
class OffsetFetchResponseTopic(Struct):
    name: str = field("string")
    partitions: list[OffsetFetchResponsePartition] = field([OffsetFetchResponsePartition])


@struct
class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field("int32")
    committed_offset: int = field("int64")
    committed_leader_epoch: int = field("int32", default=-1, ignorable=True)
    metadata: str | None = field("string", nullable=True)
    error_code: int = field("int16")


@struct
class OffsetFetchResponseTopics(Struct):
    name: str = field("string", versions="8-9", ignorable=True)
    topic_id: Uuid = field("uuid", versions="10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field([OffsetFetchResponsePartitions])


@struct
class OffsetFetchResponseGroup(Struct):
    group_id: str = field("string")
    topics: list[OffsetFetchResponseTopics] = field([OffsetFetchResponseTopics])
    error_code: int = field("int16")


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse(Message):
    throttle_time_ms: int = field("int32", versions="3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field([OffsetFetchResponseTopic], versions="0-7")
    error_code: int = field("int16", versions="2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field([OffsetFetchResponseGroup], versions="8+")
