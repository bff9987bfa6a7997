"""Steps of a transaction as values: what each keeps, what each changes."""

import dataclasses

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.transactions.state import State
from barnabas.transactions.transaction import LAST_EPOCH, Producer, Transaction

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
ONGOING = Transaction(9, 4, 60_000, 100, State.ONGOING, frozenset({A}), start_ms=50)


def test_a_transaction_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ONGOING.producer_epoch = 5  # type: ignore[misc]


def test_the_first_partitions_begin_a_transaction_and_further_ones_join_it() -> None:
    begun = Transaction(9, 4, 60_000, 100).with_partitions(frozenset({A}), 200)
    joined = begun.with_partitions(frozenset({B}), 300)
    assert (begun.state, begun.start_ms, begun.partitions) == (State.ONGOING, 200, {A})
    assert (joined.start_ms, joined.last_update_ms, joined.partitions) == (200, 300, {A, B})


def test_an_end_keeps_the_epoch_and_completes_without_its_partitions() -> None:
    decided = ONGOING.ended(committed=True, now_ms=200)
    assert decided == dataclasses.replace(ONGOING, state=State.PREPARE_COMMIT, last_update_ms=200)
    complete = decided.completed(300)
    assert (complete.state, complete.producer, complete.partitions, complete.start_ms) == (
        State.COMPLETE_COMMIT,
        Producer(9, 4),
        frozenset(),
        50,
    )


def test_a_fence_raises_the_epoch_once_even_from_the_last_one_of_a_producer() -> None:
    assert ONGOING.fenced(last_epoch=-1, now_ms=200).producer == Producer(9, 5)
    last = dataclasses.replace(ONGOING, producer_epoch=LAST_EPOCH)
    assert last.fenced(last_epoch=-1, now_ms=200).producer == Producer(9, 32_767)


def test_an_end_with_a_new_epoch_marks_under_it_and_grants_it() -> None:
    decided = ONGOING.ended_with_new_epoch(committed=False, next_producer_id=-1, now_ms=200)
    assert decided.producer == decided.granted == Producer(9, 5)
    assert decided.completed(300).producer == Producer(9, 5)


def test_the_last_epoch_is_ended_under_the_reserved_one_and_grants_a_new_id() -> None:
    last = dataclasses.replace(ONGOING, producer_epoch=LAST_EPOCH)
    decided = last.ended_with_new_epoch(committed=True, next_producer_id=77, now_ms=200)
    assert (decided.producer, decided.granted) == (Producer(9, 32_767), Producer(77, 0))
    complete = decided.completed(300)
    assert complete.producer == complete.granted == Producer(77, 0)
    assert (complete.previous_producer_id, complete.next_producer_id) == (9, -1)


def test_without_partitions_an_end_is_complete_at_once() -> None:
    empty = Transaction(9, 4, 60_000, 100)
    ended = empty.ended_with_new_epoch(committed=False, next_producer_id=-1, now_ms=200)
    assert (ended.state, ended.producer) == (State.COMPLETE_ABORT, Producer(9, 5))
