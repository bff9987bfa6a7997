"""Metadata and assignments that classic consumers exchange through a group: opaque to the broker.

On the wire each is preceded by its version as an int16 (see `barnabas.wire.versioned`).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class TopicPartition(Struct):
    topic: str = field("string")
    partitions: list[int] = field(["int32"])


@message(versions="0-3")
class ConsumerProtocolSubscription(Message):
    topics: list[str] = field(["string"])
    user_data: bytes | None = field("bytes", nullable=True, default=None)
    owned_partitions: list[TopicPartition] = field([TopicPartition], versions="1+", ignorable=True)
    generation_id: int = field("int32", versions="2+", default=-1, ignorable=True)
    rack_id: str | None = field(
        "string", versions="3+", nullable=True, default=None, ignorable=True
    )


@message(versions="0-3")
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition] = field([TopicPartition])
    user_data: bytes | None = field("bytes", nullable=True, default=None)
