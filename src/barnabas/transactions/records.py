"""The records of `__transaction_state`, as bytes.

    key     int16 version 0, transactional id
    value   int16 version, producer id and epoch, timeout, state, partitions by topic (null when
            Empty), last update, start; no value is a tombstone

Version 0 is written wherever it suffices, so that any Kafka can read it. Version 1 (the same with
compact lengths and tags) is written only for what version 0 lacks: a change of producer id, and an
end that raised the epoch (KIP-890). Both are read.
"""

from __future__ import annotations

from typing import Final

from barnabas.model.errors import CorruptRecordError
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord
from barnabas.transactions.state import State
from barnabas.transactions.transaction import NO_PRODUCER_ID, NO_TIME, Transaction
from barnabas.wire.primitives import Buffer
from barnabas.wire.schema import Message, Struct, field, message, struct
from barnabas.wire.versioned import decode_versioned, encode_versioned

KEY_VERSION: Final = 0


@message(versions="0")
class TransactionLogKey(Message):
    transactional_id: str = field("string")


@struct
class PartitionsOfTopic(Struct):
    topic: str = field("string")
    partition_ids: list[int] = field(["int32"])


@message(versions="0-1", flexible="1+")
class TransactionLogValue(Message):
    producer_id: int = field("int64")
    previous_producer_id: int = field("int64", versions="1+", default=NO_PRODUCER_ID, tag=0)
    next_producer_id: int = field("int64", versions="1+", default=NO_PRODUCER_ID, tag=1)
    producer_epoch: int = field("int16")
    transaction_timeout_ms: int = field("int32")
    transaction_status: int = field("int8")
    transaction_partitions: list[PartitionsOfTopic] | None = field(
        [PartitionsOfTopic], nullable=True
    )
    transaction_last_update_timestamp_ms: int = field("int64")
    transaction_start_timestamp_ms: int = field("int64", default=NO_TIME)
    client_transaction_version: int = field("int16", versions="1+", tag=2)


def partitions_by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, in order."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def encode_record(transactional_id: str, transaction: Transaction) -> StateRecord:
    """Return the record that stores a transaction, or the tombstone of a dead one."""
    key = encode_versioned(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)
    if transaction.state is State.DEAD:
        return StateRecord(key, None)
    assert transaction.state is not State.PREPARE_EPOCH_FENCE
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None
        if transaction.state is State.EMPTY
        else [
            PartitionsOfTopic(topic=topic, partition_ids=ids)
            for topic, ids in partitions_by_topic(transaction.partitions).items()
        ],
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.transaction_version,
    )
    fits_in_version_0 = (
        transaction.previous_producer_id == NO_PRODUCER_ID
        and transaction.next_producer_id == NO_PRODUCER_ID
        and transaction.transaction_version == 0
    )
    return StateRecord(key, encode_versioned(value, 0 if fits_in_version_0 else 1))


def decode_key(key: Buffer) -> str | None:
    """Return the transactional id of a key; None for an unknown kind of record."""
    if int.from_bytes(key[:2], "big", signed=True) > KEY_VERSION:
        return None
    decoded, _ = decode_versioned(TransactionLogKey, key)
    return decoded.transactional_id


def decode_value(value: Buffer) -> Transaction:
    """Return the transaction that a value stores."""
    decoded, _ = decode_versioned(TransactionLogValue, value)
    try:
        state = State(decoded.transaction_status)
    except ValueError:
        raise CorruptRecordError(
            f"unknown transaction state {decoded.transaction_status}"
        ) from None
    return Transaction(
        producer_id=decoded.producer_id,
        producer_epoch=decoded.producer_epoch,
        timeout_ms=decoded.transaction_timeout_ms,
        last_update_ms=decoded.transaction_last_update_timestamp_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in decoded.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=decoded.transaction_start_timestamp_ms,
        previous_producer_id=decoded.previous_producer_id,
        next_producer_id=decoded.next_producer_id,
        transaction_version=decoded.client_transaction_version,
    )
