"""Transactions: which states follow which, which partitions take part, which errors are fatal."""

from __future__ import annotations

import pytest

from barnabas.client.errors import IllegalStateError, KafkaTimeoutError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.producer.transaction import FATAL, State, Transaction

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def ready() -> Transaction:
    transaction = Transaction("tx", lambda: None)
    transaction.become(State.INITIALIZING)
    transaction.become(State.READY)
    return transaction


def begun() -> Transaction:
    transaction = ready()
    transaction.begin()
    return transaction


def test_a_transaction_from_begin_to_end() -> None:
    states: list[State] = []
    transaction = Transaction("tx", lambda: states.append(transaction.state))
    transaction.become(State.INITIALIZING)
    transaction.become(State.READY)
    assert not transaction.accepts
    transaction.begin()
    assert transaction.accepts
    assert not transaction.may_send(T0)
    assert not transaction.may_send(T1)
    assert list(transaction.wanted) == [T0, T1]
    transaction.enlist([T0])
    assert transaction.may_send(T0)
    assert list(transaction.wanted) == [T1]
    assert transaction.begun
    transaction.become(State.COMMITTING)
    assert transaction.may_send(T0)
    assert not transaction.accepts
    transaction.ended()
    assert states == [
        State.INITIALIZING,
        State.READY,
        State.IN_TRANSACTION,
        State.COMMITTING,
        State.READY,
    ]
    transaction.begin()
    assert not transaction.may_send(T0)
    assert not transaction.begun


@pytest.mark.parametrize(
    ("state", "wish"),
    [
        (State.UNINITIALIZED, State.IN_TRANSACTION),
        (State.READY, State.COMMITTING),
        (State.READY, State.ABORTING),
        (State.IN_TRANSACTION, State.INITIALIZING),
        (State.ABORTABLE_ERROR, State.COMMITTING),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(state: State, wish: State) -> None:
    transaction = Transaction("tx", lambda: None)
    transaction.state = state
    with pytest.raises(IllegalStateError, match=f"the producer 'tx' is {state.value[:20]}"):
        transaction.become(wish)
    assert transaction.state is state


def test_a_failed_record_leaves_nothing_but_abort() -> None:
    transaction = begun()
    failure = KafkaTimeoutError("late")
    transaction.failed(None, failure, True)  # type: ignore[arg-type]
    assert transaction.state is State.ABORTABLE_ERROR
    assert transaction.epoch_spent
    assert not transaction.may_send(T0)
    with pytest.raises(KafkaTimeoutError, match="late"):
        transaction.check_usable("commit")
    transaction.become(State.ABORTING)
    transaction.ended()
    assert transaction.error is None
    transaction.begin()


@pytest.mark.parametrize("code", sorted(FATAL))
def test_some_errors_end_the_producer(code: ErrorCode) -> None:
    transaction = begun()
    failure = request_error(code)
    transaction.fail(failure)
    assert transaction.state is State.FATAL_ERROR
    for wish in (State.ABORTING, State.READY):
        with pytest.raises(type(failure)):
            transaction.become(wish)
    with pytest.raises(type(failure)):
        transaction.check_usable("send")


def test_errors_outside_of_a_transaction_do_not_begin_an_aborted_one() -> None:
    transaction = ready()
    transaction.fail(KafkaTimeoutError("late"))
    assert transaction.state is State.READY
    with pytest.raises(
        IllegalStateError, match="send offsets: the producer 'tx' is not in a transaction"
    ):
        transaction.check_usable("send offsets")
