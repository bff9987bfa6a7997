"""Metadata (API key 3): brokers, topics and partition leaders of the cluster."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class MetadataRequestTopic(Struct):
    topic_id: Uuid = field("uuid", versions="10+", ignorable=True)
    name: str | None = field("string", nullable="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest(Message):
    topics: list[MetadataRequestTopic] | None = field([MetadataRequestTopic], nullable="1+")
    allow_auto_topic_creation: bool = field("bool", versions="4+", default=True)
    include_cluster_authorized_operations: bool = field("bool", versions="8-10")
    include_topic_authorized_operations: bool = field("bool", versions="8+")


@struct
class MetadataResponseBroker(Struct):
    node_id: int = field("int32")
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", versions="1+", nullable=True, default=None, ignorable=True)


@struct
class MetadataResponsePartition(Struct):
    error_code: int = field("int16")
    partition_index: int = field("int32")
    leader_id: int = field("int32")
    leader_epoch: int = field("int32", versions="7+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(["int32"])
    isr_nodes: list[int] = field(["int32"])
    offline_replicas: list[int] = field(["int32"], versions="5+", ignorable=True)


@struct
class MetadataResponseTopic(Struct):
    error_code: int = field("int16")
    name: str | None = field("string", nullable="12+")
    topic_id: Uuid = field("uuid", versions="10+", ignorable=True)
    is_internal: bool = field("bool", versions="1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field([MetadataResponsePartition])
    topic_authorized_operations: int = field("int32", versions="8+", default=-2147483648)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse(Message):
    throttle_time_ms: int = field("int32", versions="3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field([MetadataResponseBroker])
    cluster_id: str | None = field(
        "string", versions="2+", nullable=True, default=None, ignorable=True
    )
    controller_id: int = field("int32", versions="1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field([MetadataResponseTopic])
    cluster_authorized_operations: int = field("int32", versions="8-10", default=-2147483648)
    error_code: int = field("int16", versions="13+", ignorable=True)
