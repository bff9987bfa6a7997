"""AllocateProducerIds (API key 67): a broker asks the controller for a block of producer ids."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest(Message):
    broker_id: int = field("int32")
    broker_epoch: int = field("int64", default=-1)


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    producer_id_start: int = field("int64")
    producer_id_len: int = field("int32")
