"""StopReplica (API key 5): the controller tells a broker to stop, and perhaps delete, replicas."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class StopReplicaPartitionV0(Struct):
    topic_name: str = field("string")
    partition_index: int = field("int32")


@struct
class StopReplicaTopicV1(Struct):
    name: str = field("string")
    partition_indexes: list[int] = field(["int32"])


@struct
class StopReplicaPartitionState(Struct):
    partition_index: int = field("int32")
    leader_epoch: int = field("int32", default=-1)
    delete_partition: bool = field("bool")


@struct
class StopReplicaTopicState(Struct):
    topic_name: str = field("string")
    partition_states: list[StopReplicaPartitionState] = field([StopReplicaPartitionState])


@message(key=5, versions="0-4", flexible="2+")
class StopReplicaRequest(Message):
    controller_id: int = field("int32")
    is_kraft_controller: bool = field("bool", versions="4+")
    controller_epoch: int = field("int32")
    broker_epoch: int = field("int64", versions="1+", default=-1, ignorable=True)
    delete_partitions: bool = field("bool", versions="0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = field(
        [StopReplicaPartitionV0], versions="0"
    )
    topics: list[StopReplicaTopicV1] = field([StopReplicaTopicV1], versions="1-2")
    topic_states: list[StopReplicaTopicState] = field([StopReplicaTopicState], versions="3+")


@struct
class StopReplicaPartitionError(Struct):
    topic_name: str = field("string")
    partition_index: int = field("int32")
    error_code: int = field("int16")


@message(key=5, versions="0-4", flexible="2+")
class StopReplicaResponse(Message):
    error_code: int = field("int16")
    partition_errors: list[StopReplicaPartitionError] = field([StopReplicaPartitionError])
