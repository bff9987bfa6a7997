"""Commits and committed offsets through a coordinator that answers from a script."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE
from tests.unit.consumer.group.scripted_group import MEMBER, ScriptedGroup, play

from barnabas.client.errors import CommitFailedError, KafkaTimeoutError
from barnabas.errors import (
    FencedInstanceIdError,
    OffsetMetadataTooLargeError,
    TopicAuthorizationFailedError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
AUTO = {"enable.auto.commit": True, "auto.commit.interval.ms": 500}


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset)


def committed(group: ScriptedGroup) -> list[dict[int, int]]:
    """Return the offsets of each OffsetCommit, by partition of t."""
    return [
        {
            each.partition_index: each.committed_offset
            for topic in request.topics
            for each in topic.partitions
        }
        for request in group.sent(OffsetCommitRequest)
    ]


def test_a_commit_is_in_the_name_of_the_member() -> None:
    """With its generation, so that others cannot commit for it."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        await member.commit({T0: OffsetAndMetadata(5, "here", 2)})
        request = group.sent(OffsetCommitRequest)[0]
        assert (request.generation_id_or_member_epoch, request.member_id) == (1, MEMBER)
        assert committed(group) == [{0: 5}]
        await member.commit({})
        assert len(group.sent(OffsetCommitRequest)) == 1

    play(scenario)


def test_partitions_by_hand_are_committed_for_by_nobody() -> None:
    """A group without members takes such commits."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.subscription.unsubscribe()
        group.subscription.assign([T0])
        member.subscription_changed()
        assert await member.poll(100)
        await member.commit({T0: at(5)})
        request = group.sent(OffsetCommitRequest)[0]
        assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
        assert group.sent(JoinGroupRequest) == []

    play(scenario)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_commit_follows_the_coordinator(code: ErrorCode) -> None:
    """It is repeated where the coordinator is by now."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [group.refuse_commit(code), CLOSE]
        await member.commit({T0: at(5)})
        assert committed(group) == [{0: 5}] * 3

    play(scenario)


def test_only_what_failed_is_committed_again() -> None:
    """A partition that was taken is done."""

    def partly(request: Any, version: int) -> OffsetCommitResponse:
        parts = [
            OffsetCommitResponsePartition(partition_index=0, error_code=0),
            OffsetCommitResponsePartition(partition_index=1, error_code=14),
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [partly]
        await member.commit({T0: at(5), T1: at(6)})
        assert committed(group) == [{0: 5, 1: 6}, {1: 6}]

    play(scenario)


def test_a_commit_that_is_refused_until_its_time_is_up_says_why() -> None:
    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        refused = group.refuse_commit(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        group.answers[OffsetCommitRequest] = [refused] * 100
        with pytest.raises(
            KafkaTimeoutError, match=r"t-0: 5: no result .* UNKNOWN_TOPIC_OR_PARTITION"
        ):
            await member.commit({T0: at(5)}, 700)

    play(scenario)


def test_a_commit_that_finds_no_coordinator_ends_in_time() -> None:
    """The error says what was waited for."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [
            group.refuse_commit(ErrorCode.NOT_COORDINATOR) for _ in range(100)
        ]
        before = asyncio.get_running_loop().time()
        with pytest.raises(KafkaTimeoutError, match="t-0: 5"):
            await member.commit({T0: at(5)}, timeout_ms=700)
        assert 0.6 < asyncio.get_running_loop().time() - before < 0.8

    play(scenario)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_commit_after_the_group_went_on_says_what_to_change(code: ErrorCode) -> None:
    """And the next poll tells what was lost, and joins again."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [group.refuse_commit(code)]
        with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms=3000") as failure:
            await member.commit({T0: at(5)})
        assert "max.poll.records" in str(failure.value)
        with pytest.raises(CommitFailedError):
            await member.commit({T0: at(5)})
        assert len(group.sent(OffsetCommitRequest)) == 1
        assert await member.poll(5000)
        assert group.listener.calls[1:] == [("lost", {T0, T1}), ("assigned", {T0, T1})]
        await member.commit({T0: at(5)})

    play(scenario)


def test_a_commit_during_a_rebalance_asks_to_poll() -> None:
    """Nothing is lost: the member joins again as itself."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [group.refuse_commit(ErrorCode.REBALANCE_IN_PROGRESS)]
        with pytest.raises(CommitFailedError, match=r"poll\(\)"):
            await member.commit({T0: at(5)})
        await member.poll(5000)
        assert group.listener.calls[1:] == [("revoked", {T0, T1}), ("assigned", {T0, T1})]

    play(scenario)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, OffsetMetadataTooLargeError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailedError),
    ],
)
def test_what_is_wrong_with_a_commit_is_told(code: ErrorCode, kind: type[Exception]) -> None:
    """By the class of its code; the member stays in the group."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [group.refuse_commit(code)]
        with pytest.raises(kind, match="t"):
            await member.commit({T0: at(5)})
        assert not member.needs_poll

    play(scenario)


def test_a_fenced_commit_ends_the_member() -> None:
    """Another consumer has its instance id."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [group.refuse_commit(ErrorCode.FENCED_INSTANCE_ID)]
        with pytest.raises(FencedInstanceIdError):
            await member.commit({T0: at(5)})
        with pytest.raises(FencedInstanceIdError):
            await member.poll(100)

    play(scenario, {"group.instance.id": "one"})


def test_commits_keep_their_order_whoever_waits_for_them() -> None:
    """Also when the first has to be repeated; what waits meanwhile goes together."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [
            group.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        ]
        ended: list[tuple[int, object]] = []

        def note(offsets: Any, failure: object) -> None:
            ended.append((offsets[T0].offset, failure))

        member.commit_soon({T0: at(1)}, note)
        await asyncio.sleep(0.02)
        member.commit_soon({T0: at(2)}, note)
        member.commit_soon({T0: at(3), T1: at(1)}, note)
        await member.commit({T0: at(4)})
        assert committed(group) == [{0: 1}, {0: 1}, {0: 4, 1: 1}]
        assert ended == []
        assert member.needs_poll
        await member.poll(0)
        assert ended == [(1, None), (2, None), (3, None)]

    play(scenario)


def test_a_commit_that_is_wrong_does_not_spoil_others_that_went_with_it() -> None:
    """Each is told of its own failure."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        too_large = group.refuse_commit(ErrorCode.OFFSET_METADATA_TOO_LARGE)
        group.answers[OffsetCommitRequest] = [group.commit, too_large, group.commit, too_large]
        failures: list[object] = []
        member.commit_soon({T0: at(1)})
        await asyncio.sleep(0)
        member.commit_soon({T0: at(2)}, lambda _, failure: failures.append(failure))
        member.commit_soon({T1: at(3)}, lambda _, failure: failures.append(failure))
        await asyncio.sleep(1)
        await member.poll(0)
        assert failures[0] is None
        assert isinstance(failures[1], OffsetMetadataTooLargeError)

    play(scenario)


def test_a_commit_on_parting_is_in_the_name_of_the_member_that_goes() -> None:
    """It reaches the group before the member leaves, also when it has to be repeated."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.answers[OffsetCommitRequest] = [
            group.refuse_commit(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        ]
        member.commit_soon({T1: at(3)})
        member.commit_parting({T0: at(5)})
        group.subscription.unsubscribe()
        member.subscription_changed()
        await asyncio.sleep(1)
        kinds = [OffsetCommitRequest, LeaveGroupRequest]
        assert group.broker is not None
        heard = [each.message for each in group.broker.requests if type(each.message) in kinds]
        assert [type(each) for each in heard][-2:] == kinds
        last = heard[-2]
        assert (last.generation_id_or_member_epoch, last.member_id) == (1, MEMBER)  # type: ignore[attr-defined]
        assert committed(group)[-1] == {0: 5}

    play(scenario)


def test_what_is_no_offset_is_refused() -> None:
    """Before anything is sent."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        with pytest.raises(TypeError, match="OffsetAndMetadata"):
            await member.commit({T0: 5})
        with pytest.raises(ValueError, match="-1 for t-0"):
            await member.commit({T0: at(-1)})
        assert group.sent(OffsetCommitRequest) == []

    play(scenario)


def now() -> float:
    return asyncio.get_running_loop().time() * 1000


def test_what_was_consumed_is_committed_every_interval() -> None:
    """In polls, without waiting; nothing before there is something."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        for position in range(1, 16):
            await asyncio.sleep(0.11)
            group.subscription.seek(T0, position)
            member.maybe_auto_commit(now())
        await asyncio.sleep(0.1)
        assert committed(group) == [{0: 5}, {0: 10}, {0: 15}]

    play(scenario, AUTO)


def test_what_was_consumed_is_committed_before_it_goes() -> None:
    """To a rebalance and to the end, so that the next owner goes on behind it."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.subscription.seek(T0, 7)
        group.answers[HeartbeatRequest] = [
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        ]
        await asyncio.sleep(0.2)
        assert committed(group) == []
        await member.poll(5000)
        assert committed(group) == [{0: 7}]
        assert group.sent(OffsetCommitRequest)[0].generation_id_or_member_epoch == 1
        group.subscription.seek(T1, 9)
        await member.close()
        assert committed(group) == [{0: 7}, {1: 9}]

    play(scenario, AUTO)


def test_a_close_without_commit_commits_nothing() -> None:
    """The user asked for it."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.subscription.seek(T0, 7)
        await member.close(commit=False)
        assert committed(group) == []

    play(scenario, AUTO)


def test_lost_partitions_are_not_committed() -> None:
    """Somebody else may have gone on with them."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        group.subscription.seek(T0, 7)
        group.answers[HeartbeatRequest] = [
            HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        ]
        await asyncio.sleep(0.2)
        await member.poll(5000)
        assert committed(group) == []
        assert group.listener.calls[1] == ("lost", {T0, T1})

    play(scenario, AUTO)


def test_the_default_callback_hears_of_commits_that_nobody_waits_for() -> None:
    """kafka-python's option."""
    heard: list[tuple[Any, object]] = []

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        await member.poll(5000)
        member.commit_soon({T0: at(1)})
        group.subscription.seek(T0, 7)
        await asyncio.sleep(0.6)
        member.maybe_auto_commit(now())
        await asyncio.sleep(0.1)
        await member.poll(0)
        assert [(offsets[T0].offset, failure) for offsets, failure in heard] == [
            (1, None),
            (7, None),
        ]

    play(scenario, {**AUTO, "default.offset.commit.callback": lambda *told: heard.append(told)})


def answer_fetch(code: int = 0, partition_code: int = 0, offset: int = 5) -> Any:
    """Return an answer to OffsetFetch for t-0, whatever the version."""

    def answer(request: Any, version: int) -> OffsetFetchResponse:
        if version < 8:
            old = OffsetFetchResponsePartition(
                partition_index=0, committed_offset=offset, metadata="", error_code=partition_code
            )
            topic = OffsetFetchResponseTopic(name="t", partitions=[old])
            return OffsetFetchResponse(topics=[topic], error_code=code)
        new = OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=offset, metadata="", error_code=partition_code
        )
        topics = [OffsetFetchResponseTopics(name="t", partitions=[new])]
        group = OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=code)
        return OffsetFetchResponse(groups=[group])

    return answer


@pytest.mark.parametrize("last", [1, 5, 7, 8, 9])
def test_committed_offsets_are_read_in_all_versions(last: int) -> None:
    """After the coordinator was found, loaded, and no transaction is open any more."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[OffsetFetchRequest] = [
            *([answer_fetch(code=14), answer_fetch(code=16)] if last > 1 else []),
            answer_fetch(partition_code=88),
            answer_fetch(),
        ]
        assert await member.committed([T0, T1]) == {T0: at(5)}
        assert group.asked(OffsetFetchRequest)[0].version == last
        assert len(group.sent(FindCoordinatorRequest)) == (2 if last > 1 else 1)
        assert group.answers[OffsetFetchRequest] == []

    play(scenario, {"isolation.level": "read_committed"}, {OffsetFetchRequest: (0, last)})


def test_a_partition_without_a_committed_offset_is_left_out() -> None:
    """And nothing is asked for nothing."""

    async def scenario(group: ScriptedGroup, member: Any) -> None:
        group.answers[OffsetFetchRequest] = [answer_fetch(offset=-1)]
        assert await member.committed([T0]) == {}
        assert await member.committed([]) == {}
        assert len(group.sent(OffsetFetchRequest)) == 1

    play(scenario)
