"""What a request does to a transaction: decisions only, no memory.

Every function is given the current transaction and the request, and returns a `Verdict`: the
response, and what must be written before it is sent. Pending writes, and error codes that depend on
a request's version, are up to the coordinator.

A request must carry the current producer id and epoch. The exceptions are retries of a request
whose response was lost: they carry the previous epoch, and get the same response again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, TopicPartition
from barnabas.transactions.state import State
from barnabas.transactions.transaction import (
    EPOCH_PER_TRANSACTION,
    LAST_EPOCH,
    NO_PRODUCER_ID,
    Producer,
    Transaction,
)


class Verdict(NamedTuple):
    """The response, sent after `target` is written if there is one."""

    code: ErrorCode
    target: Transaction | None = None
    needs_producer_id: bool = False


NEEDS_PRODUCER_ID: Final = Verdict(ErrorCode.NONE, needs_producer_id=True)


def refuse_other_producer(current: Transaction | None, producer: Producer) -> ErrorCode:
    """Return why a producer may not change this transaction, NONE if it may."""
    if current is None or current.granted.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.granted.epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def initialise(
    current: Transaction | None,
    expected: Producer | None,
    timeout_ms: int,
    fresh_producer_id: int | None,
    now_ms: int,
) -> Verdict:
    """Initialize a producer of a transactional id, fencing the previous one.

    `expected` is the id and epoch that a producer asking for a new epoch believes it has.
    """
    if current is None:
        if fresh_producer_id is None:
            return NEEDS_PRODUCER_ID
        return Verdict(ErrorCode.NONE, Transaction(fresh_producer_id, 0, timeout_ms, now_ms))
    if current.state.is_decided:
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)
    if expected is not None and expected != current.producer:
        if current.state.is_idle and _repeats_initialise(current, expected):
            return Verdict(ErrorCode.NONE)
        return Verdict(ErrorCode.PRODUCER_FENCED)
    last_epoch = current.producer_epoch if expected is not None else NO_EPOCH
    if current.state is State.ONGOING:
        fenced = current.fenced(last_epoch=last_epoch, now_ms=now_ms)
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS, fenced)
    if not current.is_exhausted:
        producer = Producer(current.producer_id, current.producer_epoch + 1)
    elif fresh_producer_id is None:
        return NEEDS_PRODUCER_ID
    else:
        producer = Producer(fresh_producer_id, 0)
    return Verdict(ErrorCode.NONE, current.initialised(producer, last_epoch, timeout_ms, now_ms))


def _repeats_initialise(current: Transaction, expected: Producer) -> bool:
    """Return whether the producer was already given its current epoch but lost the response."""
    if current.last_epoch == NO_EPOCH or expected.epoch != current.last_epoch:
        return False
    if expected.producer_id == current.producer_id:
        return True
    return expected.producer_id == current.previous_producer_id and expected.epoch >= LAST_EPOCH


def add_partitions(
    current: Transaction | None,
    producer: Producer,
    partitions: frozenset[TopicPartition],
    now_ms: int,
) -> Verdict:
    """Add partitions; the first of them begin the transaction."""
    code = refuse_other_producer(current, producer)
    if current is None or code is not ErrorCode.NONE:
        return Verdict(code)
    if current.state.is_decided:
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is State.ONGOING and partitions <= current.partitions:
        return Verdict(ErrorCode.NONE)
    return Verdict(ErrorCode.NONE, current.with_partitions(partitions, now_ms))


def verify(current: Transaction | None, producer: Producer) -> ErrorCode:
    """Return whether a producer may write to the partitions of its transaction now."""
    code = refuse_other_producer(current, producer)
    if current is not None and code is ErrorCode.NONE and current.state.is_decided:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return code


def end(
    current: Transaction | None, producer: Producer, *, committed: bool, now_ms: int
) -> Verdict:
    """Commit or abort; the producer keeps its epoch."""
    code = refuse_other_producer(current, producer)
    if current is None or code is not ErrorCode.NONE:
        return Verdict(code)
    if current.state is State.ONGOING:
        return Verdict(ErrorCode.NONE, current.ended(committed=committed, now_ms=now_ms))
    return Verdict(_answer_ended(current.state, committed=committed))


def end_with_new_epoch(
    current: Transaction | None,
    producer: Producer,
    *,
    committed: bool,
    fresh_producer_id: int | None,
    now_ms: int,
) -> Verdict:
    """Commit or abort, and raise the epoch for the producer's next transaction (KIP-890).

    So the epoch alone distinguishes a retry from the next end: an abort with the current epoch is a
    new one, even of a transaction that never began.
    """
    if current is not None and _repeats_end(current, producer):
        return Verdict(_answer_ended(current.state, committed=committed))
    code = refuse_other_producer(current, producer)
    if current is None or code is not ErrorCode.NONE:
        return Verdict(code)
    if current.state.is_decided:
        # The producer got its new epoch and is ahead of the markers of its last transaction.
        return Verdict(ErrorCode.CONCURRENT_TRANSACTIONS)
    if committed and current.state is not State.ONGOING:
        return Verdict(ErrorCode.INVALID_TXN_STATE)
    if not current.is_exhausted:
        next_producer_id = NO_PRODUCER_ID
    elif fresh_producer_id is None:
        return NEEDS_PRODUCER_ID
    else:
        next_producer_id = fresh_producer_id
    ended = current.ended_with_new_epoch(
        committed=committed, next_producer_id=next_producer_id, now_ms=now_ms
    )
    return Verdict(ErrorCode.NONE, ended)


def _repeats_end(current: Transaction, producer: Producer) -> bool:
    """Return whether this producer's end already raised the epoch but its response was lost."""
    if current.transaction_version != EPOCH_PER_TRANSACTION:
        return False
    if producer == Producer(current.producer_id, current.producer_epoch - 1):
        return True
    return current.producer_epoch == 0 and producer == Producer(
        current.previous_producer_id, LAST_EPOCH
    )


def _answer_ended(state: State, *, committed: bool) -> ErrorCode:
    """Answer an end without an open transaction: it may be a retry of the one that ended it."""
    if state is (State.PREPARE_COMMIT if committed else State.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if state is (State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT):
        return ErrorCode.NONE
    return ErrorCode.INVALID_TXN_STATE


def time_out(current: Transaction, now_ms: int) -> Transaction | None:
    """Return the abort of a transaction that has timed out, None if it has not."""
    if current.state is not State.ONGOING or current.start_ms + current.timeout_ms >= now_ms:
        return None
    return current.fenced(last_epoch=NO_EPOCH, now_ms=now_ms)


def expire(current: Transaction, expiration_ms: int, now_ms: int) -> Transaction | None:
    """Return the removal of an id that has expired, None if it has not."""
    if not current.state.is_idle or current.last_update_ms + expiration_ms > now_ms:
        return None
    return current.to(State.DEAD, now_ms)
