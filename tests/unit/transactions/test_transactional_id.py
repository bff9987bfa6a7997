"""Which markers are missing, and what reports about them mean."""

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions.outcome import MarkerRequest
from barnabas.transactions.state import State
from barnabas.transactions.transaction import Transaction
from barnabas.transactions.transactional_id import Progress, TransactionalId

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def marker(attempt: int, *partitions: TopicPartition) -> MarkerRequest:
    return MarkerRequest("tx", 9, 4, True, 7, 0, partitions, attempt)


@pytest.fixture
def entry() -> TransactionalId:
    entry = TransactionalId("tx")
    entry.current = Transaction(9, 4, 1, 0, State.PREPARE_COMMIT, frozenset({A, B}))
    return entry


def test_a_transaction_is_done_with_its_last_marker(entry: TransactionalId) -> None:
    entry.sent(marker(1, A, B))
    assert entry.reported(marker(1, A, B), {B: ErrorCode.NONE}) is Progress.NOTHING
    assert entry.reported(marker(1, A, B), {A: ErrorCode.NONE}) is Progress.DONE
    assert not entry.awaits_markers


@pytest.mark.parametrize("code", [35, 43])
def test_a_partition_that_cannot_hold_transactions_needs_no_marker(
    entry: TransactionalId, code: int
) -> None:
    entry.sent(marker(1, A))
    assert entry.reported(marker(1, A), {A: ErrorCode(code)}) is Progress.DONE


@pytest.mark.parametrize("code", [3, 5, 6, 7, 13, 19, 20, 56, 2, 10, 18, 21, 31, -1])
def test_whatever_else_went_wrong_is_to_be_sent_again(entry: TransactionalId, code: int) -> None:
    entry.sent(marker(1, A, B))
    errors = {A: ErrorCode(code), B: ErrorCode.NONE}
    assert entry.reported(marker(1, A, B), errors) is Progress.FAILED
    assert entry.unsent() == [A]


@pytest.mark.parametrize("code", [47, 52])
def test_a_newer_coordinator_or_producer_epoch_ends_it_here(
    entry: TransactionalId, code: int
) -> None:
    entry.sent(marker(1, A, B))
    errors = {A: ErrorCode(code), B: ErrorCode.NONE}
    assert entry.reported(marker(1, A, B), errors) is Progress.FENCED
    assert not entry.is_finishing


def test_reports_of_earlier_attempts_do_not_count(entry: TransactionalId) -> None:
    entry.sent(marker(1, A))
    entry.reported(marker(1, A), {A: ErrorCode.REQUEST_TIMED_OUT})
    entry.sent(marker(2, A))
    assert entry.reported(marker(1, A), {A: ErrorCode.NONE}) is Progress.NOTHING
    assert entry.reported(marker(1, A), {A: ErrorCode.INVALID_PRODUCER_EPOCH}) is Progress.NOTHING
    assert entry.awaits_markers
    assert entry.reported(marker(2, A), {A: ErrorCode.NONE}) is Progress.DONE


def test_reports_about_other_partitions_do_not_count(entry: TransactionalId) -> None:
    entry.sent(marker(1, A))
    assert entry.reported(marker(1, A), {B: ErrorCode.NONE}) is Progress.NOTHING


def test_after_loading_all_markers_are_to_be_sent(entry: TransactionalId) -> None:
    entry.await_all()
    assert entry.unsent() == [A, B]
