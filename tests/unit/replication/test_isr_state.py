"""In-sync replicas between a proposal and its answer."""

from __future__ import annotations

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.replication.isr_state import IsrState, Proposal

KEY = TopicPartition("t", 0)


def settled(*isr: int, epoch: int = 5) -> IsrState:
    made = IsrState()
    made.decided(isr, epoch)
    return made


def proposed(state: IsrState, *isr: int) -> Proposal:
    return state.propose(KEY, 3, isr, (-1,) * len(isr))


def test_who_joins_counts_at_once_and_who_leaves_counts_on() -> None:
    state = settled(0, 1)
    proposed(state, 0, 2)
    assert (state.committed, state.maximal, state.settled) == ((0, 1), {0, 1, 2}, False)


def test_a_confirmed_proposal() -> None:
    state = settled(0, 1)
    proposal = proposed(state, 0, 1, 2)
    assert proposal.partition_epoch == 5
    state.decided((0, 1, 2), 6, proposal)
    assert (state.committed, state.maximal, state.partition_epoch) == ((0, 1, 2), {0, 1, 2}, 6)
    assert state.settled


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
    ],
)
def test_where_the_controller_knows_more_its_word_is_waited_for(code: ErrorCode) -> None:
    """It may have taken the proposal, so those who were to join still count."""
    state = settled(0)
    proposal = proposed(state, 0, 1)
    assert state.refused(proposal, code) is None
    assert (state.maximal, state.settled) == ({0, 1}, False)
    state.decided((0,), 7)
    assert (state.maximal, state.settled) == ({0}, True)


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_who_may_not_join_does_not_count(code: ErrorCode) -> None:
    state = settled(0)
    proposal = proposed(state, 0, 1)
    assert state.refused(proposal, code) is None
    assert (state.maximal, state.settled) == ({0}, True)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_what_passes_is_asked_again(code: ErrorCode) -> None:
    state = settled(0)
    proposal = proposed(state, 0, 1)
    assert state.refused(proposal, code) == proposal
    assert not state.settled


def test_an_answer_that_comes_too_late() -> None:
    """To a proposal of before the controller's last word, or older than that."""
    state = settled(0)
    old = proposed(state, 0, 1)
    state.decided((0, 2), 8)
    state.decided((0, 1), 6, old)
    assert (state.committed, state.partition_epoch) == ((0, 2), 8)
    assert state.refused(old, ErrorCode.NOT_CONTROLLER) is None
    new = proposed(state, 0)
    state.decided((0,), 7, new)
    assert (state.committed, state.settled) == ((0, 2), False)
    state.decided((0,), 9, new)
    assert (state.committed, state.settled) == ((0,), True)
