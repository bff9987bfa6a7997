"""ListTransactions (API key 66): transactional ids that a broker coordinates."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest(Message):
    state_filters: list[str] = field(["string"])
    producer_id_filters: list[int] = field(["int64"])
    duration_filter: int = field("int64", versions="1+", default=-1)
    transactional_id_pattern: str | None = field(
        "string", versions="2+", nullable=True, default=None
    )


@struct
class TransactionState(Struct):
    transactional_id: str = field("string")
    producer_id: int = field("int64")
    transaction_state: str = field("string")


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16")
    unknown_state_filters: list[str] = field(["string"])
    transaction_states: list[TransactionState] = field([TransactionState])
