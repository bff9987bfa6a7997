"""AlterReplicaLogDirs (API key 34): move replicas between the log directories of one broker."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class AlterReplicaLogDirTopic(Struct):
    name: str = field("string")
    partitions: list[int] = field(["int32"])


@struct
class AlterReplicaLogDir(Struct):
    path: str = field("string")
    topics: list[AlterReplicaLogDirTopic] = field([AlterReplicaLogDirTopic])


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message):
    dirs: list[AlterReplicaLogDir] = field([AlterReplicaLogDir])


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field("int32")
    error_code: int = field("int16")


@struct
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field("string")
    partitions: list[AlterReplicaLogDirPartitionResult] = field([AlterReplicaLogDirPartitionResult])


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int = field("int32")
    results: list[AlterReplicaLogDirTopicResult] = field([AlterReplicaLogDirTopicResult])
