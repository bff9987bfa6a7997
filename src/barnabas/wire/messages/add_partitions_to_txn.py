"""AddPartitionsToTxn (API key 24): enlist partitions in a transaction, or verify that they are."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, message, struct


@struct
class AddPartitionsToTxnTopic(Struct):
    name: str = field("string")
    partitions: list[int] = field(["int32"])


@struct
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = field("string")
    producer_id: int = field("int64")
    producer_epoch: int = field("int16")
    verify_only: bool = field("bool")
    topics: list[AddPartitionsToTxnTopic] = field([AddPartitionsToTxnTopic])


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = field(
        [AddPartitionsToTxnTransaction], versions="4+"
    )
    v3_and_below_transactional_id: str = field("string", versions="0-3")
    v3_and_below_producer_id: int = field("int64", versions="0-3")
    v3_and_below_producer_epoch: int = field("int16", versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(
        [AddPartitionsToTxnTopic], versions="0-3"
    )


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = field("int32")
    partition_error_code: int = field("int16")


@struct
class AddPartitionsToTxnTopicResult(Struct):
    name: str = field("string")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(
        [AddPartitionsToTxnPartitionResult]
    )


@struct
class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field("string")
    topic_results: list[AddPartitionsToTxnTopicResult] = field([AddPartitionsToTxnTopicResult])


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = field("int32")
    error_code: int = field("int16", versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(
        [AddPartitionsToTxnResult], versions="4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        [AddPartitionsToTxnTopicResult], versions="0-3"
    )
