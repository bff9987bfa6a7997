"""ElectLeaders (API key 43): elect partition leaders by hand."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class TopicPartitions(Struct):
    topic: str = field("string")
    partitions: list[int] = field(["int32"])


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest(Message):
    election_type: int = field("int8", versions="1+")
    topic_partitions: list[TopicPartitions] | None = field([TopicPartitions], nullable=True)
    timeout_ms: int = field("int32", default=60000)


@struct
class PartitionResult(Struct):
    partition_id: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True)


@struct
class ReplicaElectionResult(Struct):
    topic: str = field("string")
    partition_result: list[PartitionResult] = field([PartitionResult])


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16", versions="1+")
    replica_election_results: list[ReplicaElectionResult] = field([ReplicaElectionResult])
