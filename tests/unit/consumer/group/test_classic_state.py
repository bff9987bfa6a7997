"""A member of a classic group, told what happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.consumer.group.classic_state import ClassicState, Phase
from barnabas.consumer.group.error_actions import ErrorAction
from barnabas.model.error_codes import ErrorCode
from barnabas.model.group_metadata import MemberState
from barnabas.model.ids import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def joined(*partitions: TopicPartition, is_cooperative: bool = False) -> ClassicState:
    state = ClassicState(is_cooperative)
    state.begin_join(["a", "b"])
    state.take_id("m-1")
    state.joined("m-1", 4)
    state.synced(partitions)
    return state


def test_a_join_goes_from_out_to_stable() -> None:
    """The steps, and what users are told at each."""
    state = ClassicState(is_cooperative=False)
    assert (state.phase, state.state) == (Phase.OUT, MemberState.UNJOINED)
    assert state.reason is not None
    state.begin_join(["a"])
    assert (state.reason, state.state) == (None, MemberState.REBALANCING)
    assert not state.is_in
    state.joined("m-1", 4)
    assert state.may_commit
    state.synced([A0])
    assert state.is_in
    assert state.state == MemberState.REBALANCING
    state.taken_over()
    assert state.state == MemberState.STABLE
    state.request_rejoin("another came")
    state.request_rejoin("and another")
    assert (state.reason, state.state) == ("another came", MemberState.REBALANCING)


def test_eager_members_give_up_all_before_they_join() -> None:
    """Cooperative ones only what they no longer subscribe to."""
    assert joined(A0, B0).revocation({A0, B0}, ["a", "b"]).partitions == {A0, B0}
    kept = joined(A0, B0, is_cooperative=True)
    assert kept.revocation({A0, B0}, ["a", "b"]).partitions == set()
    assert kept.revocation({A0, B0}, ["a"]).partitions == {B0}


@pytest.mark.parametrize("is_cooperative", [True, False])
def test_what_is_lost_is_lost_as_a_whole(is_cooperative: bool) -> None:
    """Whatever the protocol, and until the user was told."""
    state = joined(A0, B0, is_cooperative=is_cooperative)
    state.apply(ErrorAction.FORGET, ErrorCode.UNKNOWN_MEMBER_ID, "Heartbeat")
    revocation = state.revocation({A0, B0}, ["a", "b"])
    assert revocation.is_lost
    assert revocation.partitions == {A0, B0}
    state.reported_lost()
    assert not state.revocation(set(), ["a", "b"]).is_lost


def test_an_old_generation_keeps_its_id_and_a_stranger_does_not() -> None:
    """RESET and FORGET."""
    reset, forgotten = joined(A0), joined(A0)
    reset.apply(ErrorAction.RESET, ErrorCode.ILLEGAL_GENERATION, "Heartbeat")
    forgotten.apply(ErrorAction.FORGET, ErrorCode.UNKNOWN_MEMBER_ID, "Heartbeat")
    assert (reset.member_id, forgotten.member_id) == ("m-1", "")
    for state in (reset, forgotten):
        assert state.phase is Phase.OUT
        assert state.is_lost
        assert not state.may_commit
    assert "ILLEGAL_GENERATION" in str(reset.reason)


def test_answers_to_requests_of_another_generation_are_about_somebody_else() -> None:
    """A late answer must not throw a member out that has joined again."""
    state = joined(A0)
    assert state.concerns(4)
    assert not state.concerns(3)
    state.begin_join(["a"])
    assert not state.concerns(4)


def test_leaving_forgets_the_id_but_loses_nothing() -> None:
    """What was owned was given back before."""
    state = joined(A0)
    state.leave()
    assert (state.member_id, state.generation, state.is_lost) == ("", -1, False)


def test_sticky_assignors_hear_of_the_assignment_after_it_was_lost() -> None:
    """They decide by its generation whether it still counts."""
    state = joined(A0)
    state.lose("silence", forget=True)
    assert (list(state.assigned), state.assigned_in) == ([A0], 4)


SOME = st.sets(st.sampled_from([A0, A1, B0, TopicPartition("b", 1)]))


@given(SOME, SOME)
def test_an_arrival_makes_exactly_the_assignment_true(
    owned: set[TopicPartition], assigned: set[TopicPartition]
) -> None:
    """What is revoked was owned, what is added was not, and the rest stays."""
    change = joined(*sorted(assigned), is_cooperative=True).change(owned)
    assert change.revoked <= owned
    assert not change.added & owned
    assert (owned - change.revoked) | change.added == assigned
