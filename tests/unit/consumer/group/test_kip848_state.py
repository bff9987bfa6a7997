"""A member of a KIP-848 group, told what happens; a small broker answers it in property tests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.consumer.group.error_actions import ErrorAction
from barnabas.consumer.group.kip848_state import (
    Kip848State,
    Subscribed,
    leave_epoch,
    topic_partitions,
)
from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.group_metadata import MemberState
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

SETTINGS = GroupSettings("g", rack_id="r", remote_assignor="range", max_poll_interval_ms=9000)
A, B = b"a" * 16, b"b" * 16
NAMES = {A: "a", B: "b"}


def answer(epoch: int, *partitions: tuple[bytes, int]) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id="m",
        member_epoch=epoch,
        heartbeat_interval_ms=100,
        assignment=Assignment(topic_partitions=topic_partitions(partitions)),
    )


def quiet(epoch: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(member_epoch=epoch, heartbeat_interval_ms=100)


def joined(*partitions: tuple[bytes, int]) -> Kip848State:
    state = Kip848State("m")
    state.join(Subscribed(("a", "b")))
    state.request(SETTINGS, 1)
    state.answered(answer(3, *partitions))
    state.took_over(state.change(NAMES))
    return state


def test_the_first_heartbeat_tells_everything() -> None:
    """And the next ones only what changed."""
    state = Kip848State("m")
    state.join(Subscribed(("b", "a")))
    first = state.request(SETTINGS, 1)
    assert (first.member_id, first.member_epoch, first.rack_id) == ("m", 0, "r")
    assert first.subscribed_topic_names == ["a", "b"]
    assert (first.server_assignor, first.rebalance_timeout_ms) == ("range", 9000)
    assert first.topic_partitions == []
    state.answered(answer(1))
    second = state.request(SETTINGS, 1)
    assert second.member_epoch == 1
    assert second.subscribed_topic_names is None
    assert second.topic_partitions is None
    assert (second.rack_id, second.rebalance_timeout_ms) == (None, -1)


def test_what_was_taken_over_is_acknowledged_once() -> None:
    """The broker waits for it before it gives partitions to others."""
    state = joined((A, 0), (B, 1))
    assert state.has_changes
    request = state.request(SETTINGS, 1)
    assert request.topic_partitions == [
        TopicPartitions(topic_id=A, partitions=[0]),
        TopicPartitions(topic_id=B, partitions=[1]),
    ]
    state.answered(quiet(3))
    assert not state.has_changes
    assert state.request(SETTINGS, 1).topic_partitions is None
    assert state.state == MemberState.STABLE


def test_after_a_lost_answer_everything_is_told_again() -> None:
    """Nobody knows what the broker heard."""
    state = joined((A, 0))
    state.request(SETTINGS, 1)
    state.resend_all()
    again = state.request(SETTINGS, 1)
    assert again.member_epoch == 3
    assert again.subscribed_topic_names == ["a", "b"]
    assert again.topic_partitions == [TopicPartitions(topic_id=A, partitions=[0])]


def test_a_change_while_a_heartbeat_is_under_way_is_told_by_the_next() -> None:
    """The answer is to what was said, not to what is true by now."""
    state = joined((A, 0))
    state.request(SETTINGS, 1)
    state.subscribed = Subscribed(("c",))
    state.answered(quiet(3))
    assert state.has_changes
    assert state.request(SETTINGS, 1).subscribed_topic_names == ["c"]


def test_an_expression_is_told_and_taken_back() -> None:
    """An empty one takes it back; brokers of version 0 never hear of it."""
    state = Kip848State("m")
    state.join(Subscribed(regex="a.*"))
    assert state.request(SETTINGS, 1).subscribed_topic_regex == "a.*"
    state.answered(answer(1))
    state.subscribed = Subscribed(("a",))
    request = state.request(SETTINGS, 1)
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["a"], "")
    assert state.request(SETTINGS, 0).subscribed_topic_regex is None


def test_brokers_of_version_0_name_the_member() -> None:
    """Its own id counts from version 1 on."""
    state = Kip848State("mine")
    state.join(Subscribed(("a",)))
    assert state.request(SETTINGS, 0).member_id == ""
    assert state.request(SETTINGS, 1).member_id == "mine"
    state.answered(answer(1))
    assert state.request(SETTINGS, 0).member_id == "m"


def test_topics_without_a_name_wait() -> None:
    """The rest of the target need not."""
    state = Kip848State("m")
    state.join(Subscribed(("a", "b")))
    state.request(SETTINGS, 1)
    state.answered(answer(1, (A, 0), (B, 0)))
    change = state.change({A: "a"})
    assert list(change.added) == [TopicPartition("a", 0)]
    assert change.unknown
    state.took_over(change)
    later = state.change(NAMES)
    assert (list(later.added), later.unknown) == ([TopicPartition("b", 0)], False)


def test_a_topic_that_was_made_again_is_another_one() -> None:
    """Its partitions go and come, though their names stay."""
    state = joined((A, 0))
    state.answered(answer(4, (B, 0)))
    change = state.change({B: "a"})
    place = TopicPartition("a", 0)
    assert change.revoked == {place: (A, 0)}
    assert change.added == {place: (B, 0)}
    state.took_over(change)
    assert state.owned == {place: (B, 0)}


def test_a_fenced_member_loses_all_and_joins_from_nothing() -> None:
    """With the id that it had."""
    state = joined((A, 0))
    state.apply(ErrorAction.RESET, ErrorCode.FENCED_MEMBER_EPOCH, "ConsumerGroupHeartbeat")
    assert state.is_lost
    assert state.is_out
    assert not state.may_commit
    state.gave_back_all()
    state.join(Subscribed(("a",)))
    request = state.request(SETTINGS, 1)
    assert (request.member_id, request.member_epoch, request.topic_partitions) == ("m", 0, [])


def test_static_members_leave_for_a_while() -> None:
    """Others for good."""
    assert leave_epoch(GroupSettings("g")) == -1
    assert leave_epoch(GroupSettings("g", instance_id="i")) == -2


PLACES = st.frozensets(st.tuples(st.sampled_from([A, B]), st.integers(0, 3)), max_size=6)
STEPS = st.lists(
    st.tuples(PLACES, st.booleans(), st.booleans(), st.sets(st.sampled_from([A, B]))), max_size=12
)


@given(STEPS)
def test_the_broker_knows_what_the_member_has_whatever_is_lost(
    steps: list[tuple[frozenset[tuple[bytes, int]], bool, bool, set[bytes]]],
) -> None:
    """After each answered heartbeat the broker's table is what the member had when it was sent."""
    state = Kip848State("m")
    state.join(Subscribed(("a", "b")))
    known: frozenset[tuple[bytes, int]] = frozenset()
    for epoch, (target, request_lost, answer_lost, named) in enumerate(steps, 1):
        request = state.request(SETTINGS, 1)
        had = frozenset(state.owned.values())
        if request_lost:
            state.resend_all()
            continue
        if request.topic_partitions is not None:
            known = frozenset(
                (topic.topic_id, number)
                for topic in request.topic_partitions
                for number in topic.partitions
            )
        assert known == had
        if answer_lost:
            state.resend_all()
            continue
        state.answered(answer(epoch, *target))
        change = state.change({each: NAMES[each] for each in named})
        state.took_over(change)
        assert frozenset(state.owned.values()) <= target
        assert change.unknown == any(topic_id not in named for topic_id, _ in target)
