"""BrokerStanding (API key 30001): what one broker knows of another that is in doubt of its session.

Not one of Kafka's: only brokers of this kind serve it, and they list it to their own kind alone.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class LedPartition(Struct):
    partition_index: int = field("int32")
    leader_epoch: int = field("int32", default=-1)


@struct
class LedTopic(Struct):
    name: str = field("string")
    partitions: list[LedPartition] = field([LedPartition])


@message(key=30001, versions="0", flexible="0+")
class BrokerStandingRequest(Message):
    broker_id: int = field("int32")
    topics: list[LedTopic] = field([LedTopic])


@message(key=30001, versions="0", flexible="0+")
class BrokerStandingResponse(Message):
    error_code: int = field("int16")
    controller_epoch: int = field("int32", default=-1)
    in_contact: bool = field("bool")
    is_member: bool = field("bool")
    topics: list[LedTopic] = field([LedTopic])
