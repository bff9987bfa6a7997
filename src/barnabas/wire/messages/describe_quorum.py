"""DescribeQuorum (API key 55): leader, voters and observers of the controllers' own log."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class PartitionRequest(Struct):
    partition_index: int = field("int32")


@struct
class TopicRequest(Struct):
    topic_name: str = field("string")
    partitions: list[PartitionRequest] = field([PartitionRequest])


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest(Message):
    topics: list[TopicRequest] = field([TopicRequest])


@struct
class ReplicaState(Struct):
    replica_id: int = field("int32")
    replica_directory_id: Uuid = field("uuid", versions="2+")
    log_end_offset: int = field("int64")
    last_fetch_timestamp: int = field("int64", versions="1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field("int64", versions="1+", default=-1, ignorable=True)


@struct
class PartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", versions="2+", nullable=True, ignorable=True)
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
    high_watermark: int = field("int64")
    current_voters: list[ReplicaState] = field([ReplicaState])
    observers: list[ReplicaState] = field([ReplicaState])


@struct
class TopicData(Struct):
    topic_name: str = field("string")
    partitions: list[PartitionData] = field([PartitionData])


@struct
class Listener(Struct):
    name: str = field("string", versions="2+")
    host: str = field("string", versions="2+")
    port: int = field("uint16", versions="2+")


@struct
class Node(Struct):
    node_id: int = field("int32", versions="2+")
    listeners: list[Listener] = field([Listener], versions="2+")


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse(Message):
    error_code: int = field("int16")
    error_message: str | None = field("string", versions="2+", nullable=True, ignorable=True)
    topics: list[TopicData] = field([TopicData])
    nodes: list[Node] = field([Node], versions="2+")
