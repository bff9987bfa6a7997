"""EndTxn (API key 26): commit or abort a transaction."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest(Message):
    transactional_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    committed: bool = field("bool")


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    producer_id: int = field("int64", versions="5+", default=-1, ignorable=True)
    producer_epoch: int = field("int16", versions="5+", default=-1, ignorable=True)
