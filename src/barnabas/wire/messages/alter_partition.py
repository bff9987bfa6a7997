"""AlterPartition (API key 56): a leader asks the controller to change the in-sync replicas."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class BrokerState(Struct):
    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)


@struct
class PartitionData(Struct):
    partition_index: int = field("int32")
    leader_epoch: int = field("int32")
    new_isr: list[int] = field(["int32"], versions="0-2")
    new_isr_with_epochs: list[BrokerState] = field([BrokerState], versions="3+")
    leader_recovery_state: int = field("int8", versions="1+")
    partition_epoch: int = field("int32")


@struct
class TopicData(Struct):
    topic_name: str = field("string", versions="0-1", ignorable=True)
    topic_id: Uuid = field("uuid", versions="2+", ignorable=True)
    partitions: list[PartitionData] = field([PartitionData])


@message(key=56, versions="0-3", flexible="0+")
class AlterPartitionRequest(Message):
    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)
    topics: list[TopicData] = field([TopicData])


@struct
class ResponsePartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32")
    isr: list[int] = field(["int32"])
    leader_recovery_state: int = field("int8", versions="1+", ignorable=True)
    partition_epoch: int = field("int32")


@struct
class ResponseTopicData(Struct):
    topic_name: str = field("string", versions="0-1", ignorable=True)
    topic_id: Uuid = field("uuid", versions="2+", ignorable=True)
    partitions: list[ResponsePartitionData] = field([ResponsePartitionData])


@message(key=56, versions="0-3", flexible="0+")
class AlterPartitionResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    topics: list[ResponseTopicData] = field([ResponseTopicData])
