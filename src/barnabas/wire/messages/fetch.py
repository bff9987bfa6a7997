"""Fetch (API key 1): read record batches, by consumers and by follower replicas."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Records, Struct, field, message, struct


@struct
class ReplicaState(Struct):
    replica_id: int = field("int32", default=-1)
    replica_epoch: int = field("int64", default=-1)


@struct
class FetchPartition(Struct):
    partition: int = field("int32")
    current_leader_epoch: int = field("int32", versions="9+", default=-1, ignorable=True)
    fetch_offset: int = field("int64")
    last_fetched_epoch: int = field("int32", versions="12+", default=-1)
    log_start_offset: int = field("int64", versions="5+", default=-1, ignorable=True)
    partition_max_bytes: int = field("int32")
    replica_directory_id: Uuid = field("uuid", versions="17+", tag=0, ignorable=True)
    high_watermark: int = field(
        "int64", versions="18+", default=0x7FFF_FFFF_FFFF_FFFF, tag=1, ignorable=True
    )


@struct
class FetchTopic(Struct):
    topic: str = field("string", versions="0-12", ignorable=True)
    topic_id: Uuid = field("uuid", versions="13+", ignorable=True)
    partitions: list[FetchPartition] = field([FetchPartition])


@struct
class ForgottenTopic(Struct):
    topic: str = field("string", versions="7-12", ignorable=True)
    topic_id: Uuid = field("uuid", versions="13+", ignorable=True)
    partitions: list[int] = field(["int32"])


@message(key=1, versions="0-18", flexible="12+")
class FetchRequest(Message):
    cluster_id: str | None = field(
        "string", versions="12+", nullable=True, default=None, tag=0, ignorable=True
    )
    replica_id: int = field("int32", versions="0-14", default=-1)
    replica_state: ReplicaState | None = field(ReplicaState, versions="15+", tag=1)
    max_wait_ms: int = field("int32")
    min_bytes: int = field("int32")
    max_bytes: int = field("int32", versions="3+", default=0x7FFF_FFFF, ignorable=True)
    isolation_level: int = field("int8", versions="4+", ignorable=True)
    session_id: int = field("int32", versions="7+", ignorable=True)
    session_epoch: int = field("int32", versions="7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field([FetchTopic])
    forgotten_topics_data: list[ForgottenTopic] = field([ForgottenTopic], versions="7+")
    rack_id: str = field("string", versions="11+", ignorable=True)


@struct
class EpochEndOffset(Struct):
    epoch: int = field("int32", default=-1)
    end_offset: int = field("int64", default=-1)


@struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = field("int32", default=-1)
    leader_epoch: int = field("int32", default=-1)


@struct
class SnapshotId(Struct):
    end_offset: int = field("int64", default=-1)
    epoch: int = field("int32", default=-1)


@struct
class AbortedTransaction(Struct):
    producer_id: int = field("int64")
    first_offset: int = field("int64")


@struct
class PartitionData(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")
    high_watermark: int = field("int64")
    last_stable_offset: int = field("int64", versions="4+", default=-1, ignorable=True)
    log_start_offset: int = field("int64", versions="5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = field(EpochEndOffset, versions="12+", tag=0)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, versions="12+", tag=1)
    snapshot_id: SnapshotId | None = field(SnapshotId, versions="12+", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        [AbortedTransaction], versions="4+", nullable=True, ignorable=True
    )
    preferred_read_replica: int = field("int32", versions="11+", default=-1)
    records: Records = field("records", nullable=True)


@struct
class FetchableTopicResponse(Struct):
    topic: str = field("string", versions="0-12", ignorable=True)
    topic_id: Uuid = field("uuid", versions="13+", ignorable=True)
    partitions: list[PartitionData] = field([PartitionData])


@struct
class NodeEndpoint(Struct):
    node_id: int = field("int32")
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", nullable=True, default=None)


@message(key=1, versions="0-18", flexible="12+")
class FetchResponse(Message):
    throttle_time_ms: int = field("int32", versions="1+", ignorable=True)
    error_code: int = field("int16", versions="7+", ignorable=True)
    session_id: int = field("int32", versions="7+")
    responses: list[FetchableTopicResponse] = field([FetchableTopicResponse])
    node_endpoints: list[NodeEndpoint] = field([NodeEndpoint], versions="16+", tag=0)
