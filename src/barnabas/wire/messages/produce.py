"""Produce (API key 0): append record batches to the partitions that a broker leads."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Records, Struct, field, message, struct


@struct
class PartitionProduceData(Struct):
    index: int = field("int32")
    records: Records = field("records", nullable=True)


@struct
class TopicProduceData(Struct):
    name: str = field("string", versions="0-12", ignorable=True)
    topic_id: Uuid = field("uuid", versions="13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field([PartitionProduceData])


@message(key=0, versions="0-13", flexible="9+")
class ProduceRequest(Message):
    transactional_id: str | None = field("string", versions="3+", nullable=True, default=None)
    acks: int = field("int16")
    timeout_ms: int = field("int32")
    topic_data: list[TopicProduceData] = field([TopicProduceData])


@struct
class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field("int32")
    batch_index_error_message: str | None = field("string", nullable=True, default=None)


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = field("int32", default=-1)
    leader_epoch: int = field("int32", default=-1)


@struct
class PartitionProduceResponse(Struct):
    index: int = field("int32")
    error_code: int = field("int16")
    base_offset: int = field("int64")
    log_append_time_ms: int = field("int64", versions="2+", default=-1, ignorable=True)
    log_start_offset: int = field("int64", versions="5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(
        [BatchIndexAndErrorMessage], versions="8+", ignorable=True
    )
    error_message: str | None = field(
        "string", versions="8+", nullable=True, default=None, ignorable=True
    )
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, versions="10+", tag=0)


@struct
class TopicProduceResponse(Struct):
    name: str = field("string", versions="0-12", ignorable=True)
    topic_id: Uuid = field("uuid", versions="13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field([PartitionProduceResponse])


@struct
class NodeEndpoint(Struct):
    node_id: int = field("int32")
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", nullable=True, default=None)


@message(key=0, versions="0-13", flexible="9+")
class ProduceResponse(Message):
    responses: list[TopicProduceResponse] = field([TopicProduceResponse])
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field([NodeEndpoint], versions="10+", tag=0)
