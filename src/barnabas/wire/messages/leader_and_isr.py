"""LeaderAndIsr (API key 4): the controller tells brokers which partitions they lead or follow."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class LeaderAndIsrPartitionState(Struct):
    topic_name: str = field("string", versions="0-1", ignorable=True)
    partition_index: int = field("int32")
    controller_epoch: int = field("int32")
    leader: int = field("int32")
    leader_epoch: int = field("int32")
    isr: list[int] = field(["int32"])
    partition_epoch: int = field("int32")
    replicas: list[int] = field(["int32"])
    adding_replicas: list[int] = field(["int32"], versions="3+", ignorable=True)
    removing_replicas: list[int] = field(["int32"], versions="3+", ignorable=True)
    is_new: bool = field("bool", versions="1+", ignorable=True)
    leader_recovery_state: int = field("int8", versions="6+")


@struct
class LeaderAndIsrTopicState(Struct):
    topic_name: str = field("string")
    topic_id: Uuid = field("uuid", versions="5+", ignorable=True)
    partition_states: list[LeaderAndIsrPartitionState] = field([LeaderAndIsrPartitionState])


@struct
class LeaderAndIsrLiveLeader(Struct):
    broker_id: int = field("int32")
    host_name: str = field("string")
    port: int = field("int32")


@message(key=4, versions="0-7", flexible="4+")
class LeaderAndIsrRequest(Message):
    controller_id: int = field("int32")
    is_kraft_controller: bool = field("bool", versions="7+")
    controller_epoch: int = field("int32")
    broker_epoch: int = field("int64", versions="2+", default=-1, ignorable=True)
    type: int = field("int8", versions="5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field(
        [LeaderAndIsrPartitionState], versions="0-1"
    )
    topic_states: list[LeaderAndIsrTopicState] = field([LeaderAndIsrTopicState], versions="2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = field([LeaderAndIsrLiveLeader])


@struct
class LeaderAndIsrPartitionError(Struct):
    topic_name: str = field("string", versions="0-4", ignorable=True)
    partition_index: int = field("int32")
    error_code: int = field("int16")


@struct
class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid = field("uuid")
    partition_errors: list[LeaderAndIsrPartitionError] = field([LeaderAndIsrPartitionError])


@message(key=4, versions="0-7", flexible="4+")
class LeaderAndIsrResponse(Message):
    error_code: int = field("int16")
    partition_errors: list[LeaderAndIsrPartitionError] = field(
        [LeaderAndIsrPartitionError], versions="0-4"
    )
    topics: list[LeaderAndIsrTopicError] = field([LeaderAndIsrTopicError], versions="5+")
