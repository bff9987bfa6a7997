"""UpdateMetadata (API key 6): the controller tells brokers the state of the cluster."""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class UpdateMetadataPartitionState(Struct):
    topic_name: str = field("string", versions="0-4", ignorable=True)
    partition_index: int = field("int32")
    controller_epoch: int = field("int32")
    leader: int = field("int32")
    leader_epoch: int = field("int32")
    isr: list[int] = field(["int32"])
    zk_version: int = field("int32")
    replicas: list[int] = field(["int32"])
    offline_replicas: list[int] = field(["int32"], versions="4+", ignorable=True)


@struct
class UpdateMetadataTopicState(Struct):
    topic_name: str = field("string")
    topic_id: Uuid = field("uuid", versions="7+", ignorable=True)
    partition_states: list[UpdateMetadataPartitionState] = field([UpdateMetadataPartitionState])


@struct
class UpdateMetadataEndpoint(Struct):
    port: int = field("int32")
    host: str = field("string")
    listener: str = field("string", versions="3+", ignorable=True)
    security_protocol: int = field("int16")


@struct
class UpdateMetadataBroker(Struct):
    id: int = field("int32")
    v0_host: str = field("string", versions="0", ignorable=True)
    v0_port: int = field("int32", versions="0", ignorable=True)
    endpoints: list[UpdateMetadataEndpoint] = field(
        [UpdateMetadataEndpoint], versions="1+", ignorable=True
    )
    rack: str | None = field("string", versions="2+", nullable=True, ignorable=True)


@message(key=6, versions="0-8", flexible="6+")
class UpdateMetadataRequest(Message):
    controller_id: int = field("int32")
    is_kraft_controller: bool = field("bool", versions="8+")
    type: int = field("int8", versions="8+", tag=0)
    controller_epoch: int = field("int32")
    broker_epoch: int = field("int64", versions="5+", default=-1, ignorable=True)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field(
        [UpdateMetadataPartitionState], versions="0-4"
    )
    topic_states: list[UpdateMetadataTopicState] = field([UpdateMetadataTopicState], versions="5+")
    live_brokers: list[UpdateMetadataBroker] = field([UpdateMetadataBroker])


@message(key=6, versions="0-8", flexible="6+")
class UpdateMetadataResponse(Message):
    error_code: int = field("int16")
