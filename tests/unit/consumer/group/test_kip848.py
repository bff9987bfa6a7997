"""A member of a KIP-848 group and a coordinator that answers from a script, in virtual time."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE
from tests.unit.consumer.group.scripted_group import ScriptedGroup, play, topic_id

from barnabas.client.errors import CommitFailedError
from barnabas.consumer.group.kip848 import broker_regex
from barnabas.consumer.group.kip848_state import topic_partitions
from barnabas.errors import (
    GroupAuthorizationFailedError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.group_metadata import MemberState
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NEW = {"group.protocol": "consumer", "group.remote.assignor": "uniform"}


def gives(epoch: int, *partitions: TopicPartition) -> Any:
    """Return an answer that names a target."""

    def answer(request: Any, version: int) -> ConsumerGroupHeartbeatResponse:
        places = [(topic_id(each.topic), each.partition) for each in partitions]
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=100,
            assignment=Assignment(topic_partitions=topic_partitions(places)),
        )

    return answer


def refuses(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


def beats(group: ScriptedGroup) -> list[Any]:
    return group.sent(ConsumerGroupHeartbeatRequest)


async def join(group: ScriptedGroup, member: Any, *partitions: TopicPartition) -> None:
    group.answers[ConsumerGroupHeartbeatRequest].append(gives(3, *partitions))
    assert await member.poll(5000)
    await asyncio.sleep(0.05)  # the heartbeat that acknowledges


def test_one_heartbeat_joins_and_the_next_acknowledges() -> None:
    """The callback runs in the poll, between the two."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0, T1)
        assert group.listener.calls == [("assigned", {T0, T1})]
        first, second = beats(group)
        assert (first.member_epoch, first.subscribed_topic_names) == (0, ["t"])
        assert first.server_assignor == "uniform"
        assert second.member_epoch == 3
        assert second.topic_partitions == topic_partitions([(topic_id("t"), 0), (topic_id("t"), 1)])
        assert second.subscribed_topic_names is None
        assert (member.state, member.generation) == (MemberState.STABLE, 3)
        await asyncio.sleep(1.05)
        assert 10 <= len(beats(group)) <= 14
        assert beats(group)[-1].topic_partitions is None
        assert member.health()["protocol"] == "consumer"

    play(scenario, NEW)


def test_a_new_target_is_made_true_in_the_poll() -> None:
    """First what goes, then what comes; only then is it acknowledged."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        group.answers[ConsumerGroupHeartbeatRequest] = [gives(4, T1)]
        await asyncio.sleep(0.25)
        assert member.needs_poll
        assert group.listener.calls == [("assigned", {T0})]
        assert beats(group)[-1].topic_partitions is None
        assert await member.poll(0)
        assert group.listener.calls[1:] == [("revoked", {T0}), ("assigned", {T1})]
        await asyncio.sleep(0.05)
        assert beats(group)[-1].topic_partitions == topic_partitions([(topic_id("t"), 1)])

    play(scenario, NEW)


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_and_joins_again(code: ErrorCode) -> None:
    """With the same id, from epoch 0, owning nothing."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        group.answers[ConsumerGroupHeartbeatRequest] = [refuses(code), gives(9, T1)]
        await asyncio.sleep(0.25)
        with pytest.raises(CommitFailedError):
            await member.commit({T0: OffsetAndMetadata(1)})
        assert await member.poll(5000)
        assert group.listener.calls[1:] == [("lost", {T0}), ("assigned", {T1})]
        joins = [each for each in beats(group) if each.member_epoch == 0]
        assert [each.topic_partitions for each in joins] == [[], []]
        assert joins[0].member_id == joins[1].member_id == member.member_id

    play(scenario, NEW)


def test_a_lost_answer_makes_the_member_tell_everything_again() -> None:
    """The broker answers with everything too."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        count = len(beats(group))
        group.answers[ConsumerGroupHeartbeatRequest] = [CLOSE, gives(4, T0, T1)]
        await asyncio.sleep(0.6)
        again = beats(group)[count + 1]
        assert again.subscribed_topic_names == ["t"]
        assert again.topic_partitions == topic_partitions([(topic_id("t"), 0)])
        await member.poll(0)
        assert group.listener.calls[1:] == [("assigned", {T1})]

    play(scenario, NEW)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        (ErrorCode.UNRELEASED_INSTANCE_ID, UnreleasedInstanceIdError),
    ],
)
def test_refusals_are_told_with_the_broker_s_own_words(
    code: ErrorCode, kind: type[Exception]
) -> None:
    """And the next poll tries again."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[ConsumerGroupHeartbeatRequest] = [refuses(code, "not today"), gives(3, T0)]
        with pytest.raises(kind, match="not today"):
            await member.poll(5000)
        assert await member.poll(5000)

    play(scenario, {**NEW, "group.instance.id": "one"})


def test_an_old_broker_is_told_of_by_the_option() -> None:
    """It does not serve the request at all."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        with pytest.raises(UnsupportedVersionError, match=r"group\.protocol=classic"):
            await member.poll(5000)

    play(scenario, NEW, {ConsumerGroupHeartbeatRequest: (7, 7)})


def test_a_user_that_does_not_poll_makes_room_for_others() -> None:
    """The member leaves; the next poll tells what was lost and joins again."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        member.user_polled(0)
        await join(group, member, T0)
        await asyncio.sleep(3.2)
        assert beats(group)[-1].member_epoch == -1
        assert member.state == MemberState.UNJOINED
        member.user_polled(asyncio.get_running_loop().time() * 1000)
        group.answers[ConsumerGroupHeartbeatRequest] = [gives(5, T1)]
        assert await member.poll(5000)
        assert group.listener.calls[1:] == [("lost", {T0}), ("assigned", {T1})]

    play(scenario, NEW)


@pytest.mark.parametrize(("options", "epoch"), [({}, -1), ({"group.instance.id": "one"}, -2)])
def test_a_closed_member_leaves_by_its_epoch(options: dict[str, object], epoch: int) -> None:
    """Static ones for a while only."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        await member.close()
        assert group.listener.calls[-1] == ("revoked", {T0})
        farewell = beats(group)[-1]
        assert (farewell.member_epoch, farewell.member_id) == (epoch, member.member_id)

    play(scenario, {**NEW, **options})


def test_commits_show_the_epoch_and_follow_it() -> None:
    """One that crossed a heartbeat is repeated with the new epoch."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        group.answers[OffsetCommitRequest] = [group.refuse_commit(ErrorCode.STALE_MEMBER_EPOCH)]
        group.answers[ConsumerGroupHeartbeatRequest] = [gives(8, T0)]
        await member.commit({T0: OffsetAndMetadata(1)})
        asked = group.asked(OffsetCommitRequest)
        epochs = [each.message.generation_id_or_member_epoch for each in asked]  # type: ignore[attr-defined]
        assert epochs == [3, 8]
        assert {each.version for each in asked} == {9}

    play(scenario, NEW)


def test_topics_that_are_new_to_the_member_are_looked_up() -> None:
    """The target names them by id."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        group.topics["u"] = 1
        group.subscription.subscribe(["t", "u"], listener=group.listener)
        group.answers[ConsumerGroupHeartbeatRequest] = [gives(4, T0, U0)]
        member.subscription_changed()
        await member.poll(0)
        await asyncio.sleep(0.05)
        assert beats(group)[-1].subscribed_topic_names == ["t", "u"]
        await member.poll(1000)
        assert set(group.subscription.assigned) == {T0, U0}

    play(scenario, NEW)


def test_patterns_are_matched_by_the_broker() -> None:
    """Its expression matches whole names."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        first = beats(group)[0]
        assert (first.subscribed_topic_regex, first.subscribed_topic_names) == ("(?:^t).*", [])

    play(scenario, NEW, subscribe={"pattern": "^t"})


def test_patterns_that_the_broker_cannot_match_are_matched_here() -> None:
    """Because it does not know the syntax, the field, or what is internal."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[ConsumerGroupHeartbeatRequest] = [
            refuses(ErrorCode.INVALID_REGULAR_EXPRESSION),
            gives(3, T0),
        ]
        assert await member.poll(5000)
        assert beats(group)[1].subscribed_topic_names == ["t"]
        assert not beats(group)[1].subscribed_topic_regex

    play(scenario, NEW, subscribe={"pattern": "(?=t)t"})

    async def old_broker(group: ScriptedGroup, member: Any) -> None:
        await join(group, member, T0)
        assert [each.subscribed_topic_names for each in beats(group)[:1]] == [["t"]]

    play(old_broker, NEW, {ConsumerGroupHeartbeatRequest: (0, 0)}, subscribe={"pattern": "t"})
    play(old_broker, NEW, subscribe={"pattern": ".*"})


def test_expressions_for_the_broker_mean_the_same() -> None:
    """Python's `match` wants the start of a name, the broker matches all of it."""
    for text, flags in (("a|b", 0), ("^a.$", 0), ("AB", re.IGNORECASE)):
        pattern = re.compile(text, flags)
        regex = re.compile(broker_regex(pattern))
        for name in ("a", "ab", "b", "xa", "abc", "bx"):
            assert bool(regex.fullmatch(name)) == bool(pattern.match(name)), (text, name)
