"""InitProducerId (API key 22): give a producer its id and epoch."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=22, versions="0-6", flexible="2+", stable="0-5")
class InitProducerIdRequest(Message):
    transactional_id: str | None = field("string", nullable=True)
    transaction_timeout_ms: int = field("int32")
    producer_id: int = field("int64", versions="3+", default=-1)
    producer_epoch: int = field("int16", versions="3+", default=-1)
    enable_2pc: bool = field("bool", versions="6+")
    keep_prepared_txn: bool = field("bool", versions="6+")


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse(Message):
    throttle_time_ms: int = field("int32", ignorable=True)
    error_code: int = field("int16")
    producer_id: int = field("int64", default=-1)
    producer_epoch: int = field("int16")
    ongoing_txn_producer_id: int = field("int64", versions="6+", default=-1)
    ongoing_txn_producer_epoch: int = field("int16", versions="6+", default=-1)
