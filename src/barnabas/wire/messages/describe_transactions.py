"""DescribeTransactions (API key 65): state of transactional ids."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = field(["string"])


@struct
class TopicData(Struct):
    topic: str = field("string")
    partitions: list[int] = field(["int32"])


@struct
class TransactionState(Struct):
    error_code: int = field("int16")
    transactional_id: str = field("string")
    transaction_state: str = field("string")
    transaction_timeout_ms: int = field("int32")
    transaction_start_time_ms: int = field("int64")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    topics: list[TopicData] = field([TopicData])


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = field("int32")
    transaction_states: list[TransactionState] = field([TransactionState])
