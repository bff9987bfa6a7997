"""CreateTopics (API key 19): create topics."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class CreatableReplicaAssignment(Struct):
    partition_index: int = field("int32")
    broker_ids: list[int] = field(["int32"])


@struct
class CreatableTopicConfig(Struct):
    name: str = field("string")
    value: str | None = field("string", nullable=True)


@struct
class CreatableTopic(Struct):
    name: str = field("string")
    num_partitions: int = field("int32")
    replication_factor: int = field("int16")
    assignments: list[CreatableReplicaAssignment] = field([CreatableReplicaAssignment])
    configs: list[CreatableTopicConfig] = field([CreatableTopicConfig])


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = field([CreatableTopic])
    timeout_ms: int = field("int32", default=60000)
    validate_only: bool = field("bool", versions="1+")


@struct
class CreatableTopicConfigs(Struct):
    name: str = field("string")
    value: str | None = field("string", nullable=True)
    read_only: bool = field("bool")
    config_source: int = field("int8", default=-1, ignorable=True)
    is_sensitive: bool = field("bool")


@struct
class CreatableTopicResult(Struct):
    name: str = field("string")
    topic_id: Uuid = field("uuid", versions="7+", ignorable=True)
    error_code: int = field("int16")
    error_message: str | None = field("string", versions="1+", nullable=True, ignorable=True)
    topic_config_error_code: int = field("int16", versions="5+", tag=0, ignorable=True)
    num_partitions: int = field("int32", versions="5+", default=-1, ignorable=True)
    replication_factor: int = field("int16", versions="5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        [CreatableTopicConfigs], versions="5+", nullable=True, ignorable=True
    )


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse(Message):
    throttle_time_ms: int = field("int32", versions="2+", ignorable=True)
    topics: list[CreatableTopicResult] = field([CreatableTopicResult])
