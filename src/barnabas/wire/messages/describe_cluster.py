"""DescribeCluster (API key 60): cluster id, controller and brokers."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = field("bool")
    endpoint_type: int = field("int8", versions="1+", default=1)
    include_fenced_brokers: bool = field("bool", versions="2+")


@struct
class DescribeClusterBroker(Struct):
    broker_id: int = field("int32")
    host: str = field("string")
    port: int = field("int32")
    rack: str | None = field("string", nullable=True, default=None)
    is_fenced: bool = field("bool", versions="2+")


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    error_message: str | None = field("string", nullable=True, default=None)
    endpoint_type: int = field("int8", versions="1+", default=1)
    cluster_id: str = field("string")
    controller_id: int = field("int32", default=-1)
    brokers: list[DescribeClusterBroker] = field([DescribeClusterBroker])
    cluster_authorized_operations: int = field("int32", default=-2147483648)
