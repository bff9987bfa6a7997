"""Steps that are being written: seen by nobody, done by their commit, gone by their undo."""

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord
from barnabas.transactions.records import encode_record
from barnabas.transactions.state import State
from barnabas.transactions.transaction import Transaction
from barnabas.transactions.transactional_ids import RETRY_BACKOFF_MS, TransactionalIds, together

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
EMPTY = Transaction(9, 4, 60_000, 100)
ONGOING = EMPTY.with_partitions(frozenset({B, A}), 200)
DECIDED = ONGOING.ended(committed=True, now_ms=300)


@pytest.fixture
def ledger() -> TransactionalIds:
    return TransactionalIds(coordinator_epoch=7)


def test_a_step_holds_from_its_commit_on(ledger: TransactionalIds) -> None:
    outcome = ledger.write("tx", EMPTY)
    entry = ledger.entries["tx"]
    assert (entry.current, entry.pending) == (None, EMPTY)
    assert outcome.records == [encode_record("tx", EMPTY)]
    assert ledger.settled() == []
    assert outcome.commit is not None
    outcome.commit()
    assert (entry.current, entry.pending) == (EMPTY, None)
    assert ledger.settled() == [("tx", EMPTY)]


def test_a_first_step_that_failed_leaves_no_trace(ledger: TransactionalIds) -> None:
    outcome = ledger.write("tx", EMPTY)
    assert outcome.undo is not None
    assert outcome.undo(ErrorCode.NOT_ENOUGH_REPLICAS) == []
    assert ledger.entries == {}


def test_a_later_step_that_failed_leaves_what_was(ledger: TransactionalIds) -> None:
    ledger.replay(encode_record("tx", EMPTY))
    outcome = ledger.write("tx", ONGOING)
    assert outcome.undo is not None
    outcome.undo(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert ledger.settled() == [("tx", EMPTY)]


def test_two_steps_at_once_are_a_bug(ledger: TransactionalIds) -> None:
    ledger.write("tx", EMPTY)
    with pytest.raises(AssertionError, match="'tx' already has a pending write"):
        ledger.write("tx", EMPTY)


def test_a_decision_asks_for_a_marker_on_every_partition(ledger: TransactionalIds) -> None:
    ledger.replay(encode_record("tx", ONGOING))
    outcome = ledger.write("tx", DECIDED)
    [marker] = outcome.markers
    assert (marker.producer_id, marker.producer_epoch, marker.committed) == (9, 4, True)
    assert (marker.coordinator_epoch, marker.partitions) == (7, (A, B))
    assert not ledger.entries["tx"].awaits_markers
    assert outcome.commit is not None
    outcome.commit()
    assert ledger.entries["tx"].awaits_markers


def test_the_last_record_of_an_id_stands(ledger: TransactionalIds) -> None:
    for transaction in (EMPTY, ONGOING, DECIDED):
        ledger.replay(encode_record("tx", transaction))
    ledger.replay(encode_record("gone", EMPTY))
    ledger.replay(encode_record("gone", EMPTY.to(State.DEAD, 500)))
    ledger.replay(encode_record("never", EMPTY.to(State.DEAD, 500)))
    ledger.replay(StateRecord(b"\x00\x63unknown", b""))
    assert ledger.settled() == [("tx", DECIDED)]


def test_a_completion_that_fails_is_tried_again(ledger: TransactionalIds) -> None:
    ledger.replay(encode_record("tx", DECIDED))
    entry = ledger.entries["tx"]
    outcome = ledger.finish(entry, 400)
    assert outcome.timers == [("tx", 400 + RETRY_BACKOFF_MS)]
    assert entry.pending == DECIDED.completed(400)
    waiting = ledger.finish(entry, 500)
    assert (waiting.records, waiting.timers) == ([], [("tx", 500 + RETRY_BACKOFF_MS)])
    assert outcome.undo is not None
    outcome.undo(ErrorCode.NOT_ENOUGH_REPLICAS)
    again = ledger.finish(entry, 600)
    assert again.records == [encode_record("tx", DECIDED.completed(600))]
    assert again.commit is not None
    again.commit()
    rest = ledger.finish(entry, 700)
    assert (rest.records, rest.timers, rest.markers) == ([], [], [])


def test_steps_together_are_committed_or_undone_together(ledger: TransactionalIds) -> None:
    for transactional_id in ("one", "two"):
        ledger.replay(encode_record(transactional_id, EMPTY))
    dead = EMPTY.to(State.DEAD, 500)
    outcome = together([ledger.write("one", dead), ledger.write("two", dead)])
    assert [record.value for record in outcome.records] == [None, None]
    assert outcome.undo is not None
    assert outcome.undo(ErrorCode.NOT_ENOUGH_REPLICAS) == []
    assert len(ledger.settled()) == 2
    outcome = together([ledger.write("one", dead), ledger.write("two", dead)])
    assert outcome.commit is not None
    outcome.commit()
    assert ledger.entries == {}
