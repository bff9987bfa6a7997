"""AddOffsetsToTxn (API key 25): enlist a group's offsets in a transaction."""

from __future__ import annotations

from barnabas.wire.schema import Message, field, message


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    group_id: str = field("string")


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
