"""ControlledShutdown (API key 7): a broker asks the controller to move its leaderships away."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=7, versions="0-3", flexible="3+")
class ControlledShutdownRequest(Message):
    broker_id: int = field("int32")
    broker_epoch: int = field("int64", versions="2+", default=-1, ignorable=True)


@struct
class RemainingPartition(Struct):
    topic_name: str = field("string")
    partition_index: int = field("int32")


@message(key=7, versions="0-3", flexible="3+")
class ControlledShutdownResponse(Message):
    error_code: int = field("int16")
    remaining_partitions: list[RemainingPartition] = field([RemainingPartition])
