"""A member of a classic group and a coordinator that answers from a script, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE
from tests.unit.consumer.group.scripted_group import MEMBER, ScriptedGroup, play

from barnabas.assignment.embedded import decode_subscription, encode_assignment
from barnabas.consumer.group.callbacks import RebalanceListenerError
from barnabas.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    UnsupportedVersionError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.group_metadata import MemberState
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}


def refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code, protocol_name="", leader="", member_id=member_id, members=[]
    )


def follows(*partitions: TopicPartition) -> tuple[Any, SyncGroupResponse]:
    """Return answers by which the member follows another and gets some partitions."""

    def join(request: JoinGroupRequest, version: int) -> JoinGroupResponse:
        return JoinGroupResponse(
            generation_id=7,
            protocol_type="consumer",
            protocol_name=request.protocols[0].name,
            leader="somebody",
            member_id=request.member_id or MEMBER,
            members=[],
        )

    return join, SyncGroupResponse(assignment=encode_assignment(partitions))


def follow(group: ScriptedGroup, *partitions: TopicPartition) -> None:
    join, sync = follows(*partitions)
    group.answers[JoinGroupRequest].append(join)
    group.answers[SyncGroupRequest].append(sync)


async def until(member: Any, condition: Any) -> None:
    """Poll until something holds; virtual time passes."""
    for _ in range(1000):
        if condition():
            return
        await member.poll(50)
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


def test_a_member_leads_joins_and_is_told_what_it_got() -> None:
    """JoinGroup, SyncGroup with the assignment for all, and one callback in the poll."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        assert member.needs_poll
        assert await member.poll(5000)
        assert group.listener.calls == [("assigned", {T0, T1})]
        assert set(group.subscription.assigned) == {T0, T1}
        assert (member.state, member.generation, member.member_id) == (
            MemberState.STABLE,
            1,
            MEMBER,
        )
        assert member.group_metadata()[:4] == ("g", 1, MEMBER, None)
        assert not member.needs_poll
        health = member.health()
        assert (health["coordinator"], health["is_leader"], health["assigned"]) == (1, True, 2)

    play(scenario)


def test_the_group_gives_a_new_member_its_id_first() -> None:
    """KIP-394: the second JoinGroup carries the id of the first answer."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[JoinGroupRequest] = [refused(ErrorCode.MEMBER_ID_REQUIRED, "given")]
        assert await member.poll(5000)
        assert [each.member_id for each in group.sent(JoinGroupRequest)] == ["", "given"]
        assert member.member_id == "given"

    play(scenario)


@pytest.mark.parametrize("last", [0, 1, 3, 4, 6])
def test_the_coordinator_is_found_in_all_versions(last: int) -> None:
    """Before version 4 by one key, then by a list."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        assert await member.poll(5000)
        asked = group.asked(FindCoordinatorRequest)[0]
        assert asked.version == last
        keys = [asked.message.key] if last < 4 else asked.message.coordinator_keys  # type: ignore[attr-defined]
        assert keys == ["g"]

    play(scenario, versions={FindCoordinatorRequest: (0, last)})


def test_a_broker_of_the_0_10_era_is_enough() -> None:
    """The first versions of all requests of a group."""
    versions = dict.fromkeys(
        (
            FindCoordinatorRequest,
            JoinGroupRequest,
            SyncGroupRequest,
            HeartbeatRequest,
            LeaveGroupRequest,
        ),
        (0, 0),
    )

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        assert await member.poll(5000)
        assert set(group.subscription.assigned) == {T0, T1}
        await asyncio.sleep(0.35)
        assert len(group.sent(HeartbeatRequest)) == 3
        group.subscription.unsubscribe()
        member.subscription_changed()
        await asyncio.sleep(0.1)
        assert [each.member_id for each in group.sent(LeaveGroupRequest)] == [MEMBER]

    play(scenario, versions=versions)


@pytest.mark.parametrize(
    ("code", "kind", "told"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError, "READ"),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, InconsistentGroupProtocolError, "range"),
        (
            ErrorCode.INVALID_SESSION_TIMEOUT,
            InvalidSessionTimeoutError,
            "session.timeout.ms=1000",
        ),
    ],
)
def test_what_no_retry_mends_is_raised_and_the_next_poll_tries_again(
    code: ErrorCode, kind: type[Exception], told: str
) -> None:
    """With a text that says what to change."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[JoinGroupRequest] = [refused(code)]
        with pytest.raises(kind, match=told):
            await member.poll(5000)
        assert await member.poll(5000)

    play(scenario)


@pytest.mark.parametrize(
    ("code", "finds", "member_ids"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, ["", ""]),
        (ErrorCode.NOT_COORDINATOR, 2, ["", ""]),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 2, ["", ""]),
        (ErrorCode.UNKNOWN_MEMBER_ID, 1, ["", ""]),
        (ErrorCode.REBALANCE_IN_PROGRESS, 1, ["", ""]),
    ],
)
def test_a_join_that_was_refused_for_now_is_repeated(
    code: ErrorCode, finds: int, member_ids: list[str]
) -> None:
    """At the same broker, or where the coordinator is by now."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[JoinGroupRequest] = [refused(code)]
        assert await member.poll(5000)
        assert len(group.sent(FindCoordinatorRequest)) == finds
        assert [each.member_id for each in group.sent(JoinGroupRequest)] == member_ids

    play(scenario)


@pytest.mark.parametrize(
    ("code", "rejoins_as"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, MEMBER),
        (ErrorCode.ILLEGAL_GENERATION, MEMBER),
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (ErrorCode.NOT_COORDINATOR, MEMBER),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, MEMBER),
    ],
)
def test_a_sync_that_was_refused_means_to_join_again(code: ErrorCode, rejoins_as: str) -> None:
    """As the same member, unless the group does not know it."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[SyncGroupRequest] = [SyncGroupResponse(error_code=code, assignment=b"")]
        assert await member.poll(5000)
        assert [each.member_id for each in group.sent(JoinGroupRequest)] == ["", rejoins_as]
        assert group.listener.calls == [("assigned", {T0, T1})]

    play(scenario)


def test_a_lost_connection_does_not_lose_the_place() -> None:
    """The member joins again under its id."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[SyncGroupRequest] = [CLOSE]
        assert await member.poll(5000)
        assert [each.member_id for each in group.sent(JoinGroupRequest)] == ["", MEMBER]

    play(scenario)


def test_a_join_goes_on_while_the_user_is_elsewhere() -> None:
    """A poll's time runs out, the next takes the assignment over; the heart beats already."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[JoinGroupRequest] = [refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 4
        assert not await member.poll(20)
        assert member.state == MemberState.REBALANCING
        await asyncio.sleep(1.5)
        assert group.listener.calls == []
        assert group.sent(HeartbeatRequest)
        woken = group.woken
        assert woken
        assert await member.poll(0)
        assert group.listener.calls == [("assigned", {T0, T1})]

    play(scenario)


def test_heartbeats_go_without_polls() -> None:
    """One per interval, in the joined generation."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        await asyncio.sleep(1.05)
        beats = group.sent(HeartbeatRequest)
        assert 9 <= len(beats) <= 11
        assert {(each.member_id, each.generation_id) for each in beats} == {(MEMBER, 1)}

    play(scenario)


def test_the_heart_beats_also_when_a_poll_comes_at_the_moment_of_joining() -> None:
    """The assignment is taken over before anybody was told that the join is done."""
    polls: list[asyncio.Task[bool]] = []

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        def poll(partitions: object, generation: int) -> None:
            polls.append(asyncio.get_running_loop().create_task(member.poll(0)))

        member._strategies["range"]._assignor.on_assignment = poll
        assert not await member.poll(0)
        await asyncio.sleep(1)
        assert [await task for task in polls] == [True]
        assert member.state == MemberState.STABLE
        assert len(group.sent(HeartbeatRequest)) > 5

    play(scenario)


def test_a_follower_s_assignor_is_told_what_the_leader_s_added() -> None:
    """The user data of the assignment that SyncGroup brings, with the partitions."""
    told: list[tuple[Any, int, bytes | None]] = []

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        def follow(request: JoinGroupRequest, version: int) -> JoinGroupResponse:
            return JoinGroupResponse(
                generation_id=5,
                protocol_type="consumer",
                protocol_name="range",
                leader="somebody-else",
                member_id=MEMBER,
            )

        group.answers[JoinGroupRequest] = [follow]
        group.answers[SyncGroupRequest] = [
            SyncGroupResponse(assignment=encode_assignment([T1], b"from the leader"))
        ]
        member._strategies["range"]._assignor.on_assignment = (
            lambda partitions, generation, user_data: told.append(
                (partitions, generation, user_data)
            )
        )
        assert await member.poll(5000)
        assert told == [([T1], 5, b"from the leader")]

    play(scenario)


@pytest.mark.parametrize(
    ("code", "rejoins_as", "went"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, MEMBER, "revoked"),
        (ErrorCode.ILLEGAL_GENERATION, MEMBER, "lost"),
        (ErrorCode.UNKNOWN_MEMBER_ID, "", "lost"),
    ],
)
def test_a_heartbeat_tells_that_the_group_goes_on(
    code: ErrorCode, rejoins_as: str, went: str
) -> None:
    """Partitions are revoked in a rebalance, and lost when it went on without the member."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[HeartbeatRequest] = [HeartbeatResponse(error_code=code)]
        await asyncio.sleep(0.2)
        assert member.needs_poll
        assert group.listener.calls == [("assigned", {T0, T1})]
        assert await member.poll(5000)
        assert group.listener.calls[1:] == [(went, {T0, T1}), ("assigned", {T0, T1})]
        assert [each.member_id for each in group.sent(JoinGroupRequest)] == ["", rejoins_as]

    play(scenario)


def test_a_heartbeat_that_fails_is_repeated_until_the_coordinator_is_back() -> None:
    """Nothing is lost by it."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[HeartbeatRequest] = [
            CLOSE,
            HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR),
            HeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ]
        await asyncio.sleep(2)
        assert not member.needs_poll
        assert len(group.sent(FindCoordinatorRequest)) == 3
        assert member.health()["heartbeats_failed"] == 0

    play(scenario)


def test_a_user_that_does_not_poll_makes_room_for_others() -> None:
    """The member leaves and says why; the next poll tells what was lost and joins again."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        member.user_polled(0)
        await member.poll(5000)
        await asyncio.sleep(3.5)
        farewell = group.sent(LeaveGroupRequest)[0].members[0]
        assert farewell.member_id == MEMBER
        assert "max.poll.interval.ms=3000" in farewell.reason
        beats = len(group.sent(HeartbeatRequest))
        await asyncio.sleep(1)
        assert len(group.sent(HeartbeatRequest)) == beats
        assert member.state == MemberState.UNJOINED
        member.user_polled(asyncio.get_running_loop().time() * 1000)
        assert await member.poll(5000)
        assert group.listener.calls[1:] == [("lost", {T0, T1}), ("assigned", {T0, T1})]
        assert [each.member_id for each in group.sent(JoinGroupRequest)] == ["", ""]

    play(scenario)


def test_a_member_whose_user_is_away_does_not_come_back_by_itself() -> None:
    """Rebalances that are attended to without a poll would bring it in and out for ever."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        member.user_polled(0)
        await member.poll(5000)
        await asyncio.sleep(3.5)
        assert not member.needs_poll
        assert await member.poll(100)
        assert len(group.sent(JoinGroupRequest)) == 1
        member.user_polled(asyncio.get_running_loop().time() * 1000)
        assert member.needs_poll

    play(scenario)


def test_a_user_that_polls_stays() -> None:
    """However long."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        member.user_polled(0)
        await member.poll(5000)
        for _ in range(10):
            await asyncio.sleep(1)
            member.user_polled(asyncio.get_running_loop().time() * 1000)
        assert group.sent(LeaveGroupRequest) == []

    play(scenario)


def test_static_members_never_say_farewell() -> None:
    """Neither when they are closed nor when their user is away: they come back to their place."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        member.user_polled(0)
        await member.poll(5000)
        assert group.sent(JoinGroupRequest)[0].group_instance_id == "one"
        await asyncio.sleep(4)
        assert member.state == MemberState.UNJOINED
        member.user_polled(asyncio.get_running_loop().time() * 1000)
        await member.poll(5000)
        await member.close()
        assert group.sent(LeaveGroupRequest) == []
        assert group.listener.calls[-1] == ("revoked", {T0, T1})

    play(scenario, {"group.instance.id": "one"})


def test_a_static_member_needs_a_broker_that_knows_such() -> None:
    """The text names the option."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        with pytest.raises(UnsupportedVersionError, match=r"group\.instance\.id=one"):
            await member.poll(5000)

    play(scenario, {"group.instance.id": "one"}, {JoinGroupRequest: (0, 4)})


def test_a_fenced_member_is_told_so_at_every_poll() -> None:
    """Another consumer has its place; to join again would fence that one."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[HeartbeatRequest] = [
            HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)
        ]
        await asyncio.sleep(0.3)
        for _ in range(3):
            with pytest.raises(FencedInstanceIdError, match=r"group\.instance\.id=one"):
                await member.poll(1000)
        assert len(group.sent(JoinGroupRequest)) == 1

    play(scenario, {"group.instance.id": "one"})


def test_a_listener_that_fails_does_not_stop_the_rebalance() -> None:
    """Its exception comes out of the poll when the member is in."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.listener.failing = "assigned"
        with pytest.raises(RebalanceListenerError, match="went wrong") as failure:
            await member.poll(5000)
        assert isinstance(failure.value.__cause__, LookupError)
        assert member.state == MemberState.STABLE
        assert set(group.subscription.assigned) == {T0, T1}
        assert await member.poll(0)

    play(scenario)


def test_a_cooperative_member_reads_on_and_gives_up_what_others_shall_have() -> None:
    """KIP-429: only what goes is revoked; then it joins once more, so that it can be given out."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        follow(group, T0, T1)
        await member.poll(5000)
        group.answers[HeartbeatRequest] = [
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        ]
        await asyncio.sleep(0.2)
        group.answers[JoinGroupRequest] = [refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
        follow(group, T1)
        follow(group, T1, T2)
        assert await member.poll(0)
        assert set(group.subscription.assigned) == {T0, T1}
        assert not member.needs_poll
        await until(member, lambda: T2 in group.subscription.assigned)
        assert group.listener.calls == [
            ("assigned", {T0, T1}),
            ("revoked", {T0}),
            ("assigned", set()),
            ("assigned", {T2}),
        ]
        assert set(group.subscription.assigned) == {T1, T2}
        told = [
            decode_subscription("m", None, each.protocols[0].metadata).owned
            for each in group.sent(JoinGroupRequest)
        ]
        assert told == [[], [T0, T1], [T0, T1], [T1]]

    play(scenario, COOPERATIVE)


def test_a_cooperative_member_that_is_forgotten_while_it_joins_loses_all() -> None:
    """It tells its user before it joins as a new member that owns nothing."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        follow(group, T0)
        await member.poll(5000)
        group.answers[HeartbeatRequest] = [
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        ]
        group.answers[JoinGroupRequest] = [refused(ErrorCode.UNKNOWN_MEMBER_ID)]
        follow(group, T1)
        await until(member, lambda: T1 in group.subscription.assigned)
        assert group.listener.calls == [
            ("assigned", {T0}),
            ("lost", {T0}),
            ("assigned", {T1}),
        ]
        last = group.sent(JoinGroupRequest)[-1]
        assert last.member_id == ""
        assert decode_subscription("m", None, last.protocols[0].metadata).owned == []

    play(scenario, COOPERATIVE)


def test_several_strategies_are_offered_in_order() -> None:
    """The group takes one that all its members know."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        offered = [each.name for each in group.sent(JoinGroupRequest)[0].protocols]
        assert offered == ["sticky", "range", "cooperative-sticky"]

    play(scenario, {"partition.assignment.strategy": ["sticky", "range", "cooperative-sticky"]})


def test_a_sticky_member_tells_what_it_had_and_since_when() -> None:
    """KIP-792: the generation decides between two that claim a partition."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[HeartbeatRequest] = [
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        ]
        await asyncio.sleep(0.2)
        await member.poll(5000)
        first, second = (
            decode_subscription("m", None, each.protocols[0].metadata)
            for each in group.sent(JoinGroupRequest)
        )
        assert (first.generation, second.generation) == (-1, 1)
        assert first.user_data != second.user_data

    play(scenario, {"partition.assignment.strategy": "sticky"})


def test_a_leader_that_sees_more_partitions_calls_the_group_together() -> None:
    """So that somebody reads them."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.topics["t"] = 3
        await member._client.refresh(["t"])
        member.metadata_changed()
        assert member.needs_poll
        assert await member.poll(5000)
        assert set(group.subscription.assigned) == {T0, T1, T2}
        assert "t has 3 partitions, had 2" in group.sent(JoinGroupRequest)[1].reason

    play(scenario)


def test_metadata_that_changes_nothing_leaves_the_group_alone() -> None:
    """Brokers that come and go are no reason to meet."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.topics["other"] = 1
        await member._client.refresh(["t", "other"])
        member.metadata_changed()
        assert await member.poll(5000)
        assert len(group.sent(JoinGroupRequest)) == 1

    play(scenario)


def test_a_pattern_follows_the_topics() -> None:
    """New topics that match are joined for; internal ones are not matched."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        assert member.topics_followed() is None
        await member.poll(5000)
        assert set(group.subscription.assigned) == {T0, T1}
        group.topics |= {"t2": 1, "other": 1}
        await member._client.refresh(None)
        member.metadata_changed()
        await member.poll(5000)
        assert set(group.subscription.assigned) == {T0, T1, TopicPartition("t2", 0)}
        assert group.subscription.topics == ("t", "t2")

    play(scenario, subscribe={"pattern": "^t"})


def test_a_new_subscription_is_joined_for_and_none_is_left_for() -> None:
    """`subscribe` again joins in the next poll; `unsubscribe` leaves in the background."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.topics["u"] = 1
        await member.poll(5000)
        group.subscription.subscribe(["u"], listener=group.listener)
        member.subscription_changed()
        await member.poll(5000)
        assert group.listener.calls[1:] == [
            ("revoked", {T0, T1}),
            ("assigned", {TopicPartition("u", 0)}),
        ]
        group.subscription.unsubscribe()
        member.subscription_changed()
        await asyncio.sleep(0.5)
        assert len(group.sent(LeaveGroupRequest)) == 1
        assert await member.poll(100)
        assert len(group.sent(JoinGroupRequest)) == 2

    play(scenario)


def test_partitions_of_topics_that_are_not_subscribed_to_are_not_taken() -> None:
    """A leader with an old view gave them; the group meets again."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        follow(group, TopicPartition("u", 0))
        assert await member.poll(5000)
        assert group.listener.calls == [("assigned", {T0, T1})]
        assert len(group.sent(JoinGroupRequest)) == 2

    play(scenario)


def test_a_closed_consumer_gives_back_and_leaves() -> None:
    """The listener hears of it before the group does."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        await member.close()
        await member.close()
        assert group.listener.calls[-1] == ("revoked", {T0, T1})
        assert len(group.sent(LeaveGroupRequest)) == 1
        assert group.subscription.assigned == {}
        assert not await member.poll(100)

    play(scenario)
