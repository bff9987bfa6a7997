"""Requests of members in every version: what each carries, and what old brokers are spared."""

from __future__ import annotations

import pytest

from barnabas.consumer.group.requests import (
    Identity,
    JoinedMember,
    commit_errors,
    commit_request,
    fetch_request,
    fetched,
    heartbeat_request,
    join_request,
    leave_error,
    leave_request,
    sync_request,
)
from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnsupportedVersionError
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
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
from barnabas.wire.messages.sync_group import SyncGroupRequest

SETTINGS = GroupSettings("g", max_poll_interval_ms=7000)
STATIC = GroupSettings("g", instance_id="one")
ME = JoinedMember("m-1", 4)
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.mark.parametrize("version", range(10))
def test_joins_in_every_version(version: int) -> None:
    """The broker reads what the member means, as far as the version can say it."""
    sent = join_request(SETTINGS, "m-1", [("range", b"x")], "r" * 300, version)
    got, _ = decode(JoinGroupRequest, encode(sent, version), version)
    assert (got.group_id, got.member_id, got.protocol_type) == ("g", "m-1", "consumer")
    assert got.rebalance_timeout_ms == (7000 if version >= 1 else -1)
    assert [(each.name, each.metadata) for each in got.protocols] == [("range", b"x")]
    assert got.reason == ("r" * 255 if version >= 8 else None)


@pytest.mark.parametrize("version", range(10))
def test_static_members_need_a_broker_that_knows_them(version: int) -> None:
    """Without its instance id a member would not be what the user asked for."""
    if version < 5:
        with pytest.raises(UnsupportedVersionError, match=r"group\.instance\.id=one"):
            join_request(STATIC, "", [], None, version)
        return
    sent = join_request(STATIC, "", [], None, version)
    assert decode(JoinGroupRequest, encode(sent, version), version)[0].group_instance_id == "one"


@pytest.mark.parametrize("version", range(6))
def test_syncs_and_leaves_in_every_version(version: int) -> None:
    """Old versions leave out instance ids and reasons."""
    sync = sync_request(STATIC, ME, "range", {"m-2": b"a"}, version)
    got, _ = decode(SyncGroupRequest, encode(sync, version), version)
    assert (got.generation_id, got.member_id) == (4, "m-1")
    assert got.group_instance_id == ("one" if version >= 3 else None)
    assert [(each.member_id, each.assignment) for each in got.assignments] == [("m-2", b"a")]
    leave, _ = decode(
        LeaveGroupRequest, encode(leave_request(SETTINGS, "m-1", "why", version), version), version
    )
    ids = [leave.member_id] if version < 3 else [each.member_id for each in leave.members]
    assert ids == ["m-1"]
    assert version < 5 or leave.members[0].reason == "why"


@pytest.mark.parametrize("version", range(5))
def test_heartbeats_in_every_version(version: int) -> None:
    """With the generation, and the instance id where it fits."""
    got, _ = decode(
        HeartbeatRequest, encode(heartbeat_request(STATIC, ME, version), version), version
    )
    assert (got.generation_id, got.member_id) == (4, "m-1")
    assert got.group_instance_id == ("one" if version >= 3 else None)


def test_a_member_s_own_error_counts_when_it_leaves() -> None:
    """Version 3 and later answer for each member."""
    failed = MemberResponse(member_id="m-1", group_instance_id=None, error_code=25)
    assert leave_error(LeaveGroupResponse(members=[failed])) == 25
    assert leave_error(LeaveGroupResponse(error_code=16)) == 16
    assert leave_error(LeaveGroupResponse()) == 0


@pytest.mark.parametrize("version", range(1, 10))
def test_commits_in_every_version(version: int) -> None:
    """Offsets, texts and epochs by topic."""
    offsets = {
        T1: OffsetAndMetadata(5, "x", 2),
        U0: OffsetAndMetadata(0),
        T0: OffsetAndMetadata(7),
    }
    sent = commit_request(Identity("g", 4, "m-1", "one"), offsets, version)
    got, _ = decode(OffsetCommitRequest, encode(sent, version), version)
    assert (got.generation_id_or_member_epoch, got.member_id) == (4, "m-1")
    assert got.group_instance_id == ("one" if version >= 7 else None)
    asked = {
        TopicPartition(topic.name, each.partition_index): (
            each.committed_offset,
            each.committed_metadata,
            each.committed_leader_epoch,
        )
        for topic in got.topics
        for each in topic.partitions
    }
    epoch = 2 if version >= 6 else -1
    assert asked == {T0: (7, "", -1), T1: (5, "x", epoch), U0: (0, "", -1)}


def test_commit_errors_are_told_by_partition() -> None:
    """Those without an error are not in the answer."""
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name="t",
                partitions=[
                    OffsetCommitResponsePartition(partition_index=0, error_code=0),
                    OffsetCommitResponsePartition(partition_index=1, error_code=22),
                ],
            )
        ]
    )
    assert commit_errors(response) == {T1: ErrorCode.ILLEGAL_GENERATION}


@pytest.mark.parametrize("version", range(1, 10))
def test_committed_offsets_in_every_version(version: int) -> None:
    """Asked for by name, one group at a time."""
    me = Identity("g", 4, "m-1", by_epoch=True)
    sent = fetch_request(me, [T1, T0, U0], True, version)
    got, _ = decode(OffsetFetchRequest, encode(sent, version), version)
    topics = got.topics if version < 8 else got.groups[0].topics
    assert topics is not None
    assert [(each.name, each.partition_indexes) for each in topics] == [("t", [0, 1]), ("u", [0])]
    assert got.require_stable == (version >= 7)
    if version >= 9:
        assert (got.groups[0].member_id, got.groups[0].member_epoch) == ("m-1", 4)


def test_members_of_classic_groups_show_no_epoch_when_they_read() -> None:
    """The broker would look for a member of KIP-848."""
    group = fetch_request(Identity("g", 4, "m-1"), [T0], False, 9).groups[0]
    assert (group.member_id, group.member_epoch) == (None, -1)


def test_answers_of_both_shapes_are_read() -> None:
    """One group at the top before version 8, groups after; -1 means nothing committed."""
    old = OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name="t",
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=0, committed_offset=5, metadata="x", error_code=0
                    ),
                    OffsetFetchResponsePartition(
                        partition_index=1, committed_offset=-1, metadata="", error_code=0
                    ),
                ],
            )
        ],
        error_code=0,
    )
    new = OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id="g",
                error_code=16,
                topics=[
                    OffsetFetchResponseTopics(
                        name="t",
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=0,
                                committed_offset=5,
                                committed_leader_epoch=3,
                                metadata=None,
                                error_code=0,
                            ),
                            OffsetFetchResponsePartitions(
                                partition_index=1,
                                committed_offset=-1,
                                metadata=None,
                                error_code=88,
                            ),
                        ],
                    )
                ],
            )
        ]
    )
    assert fetched(old, 7) == (ErrorCode.NONE, {}, {T0: OffsetAndMetadata(5, "x", -1)})
    assert fetched(new, 8) == (
        ErrorCode.NOT_COORDINATOR,
        {T1: ErrorCode.UNSTABLE_OFFSET_COMMIT},
        {T0: OffsetAndMetadata(5, "", 3)},
    )
