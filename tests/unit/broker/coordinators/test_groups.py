"""Groups on a broker: bad input is refused with the protocol's error, and groups survive it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.coordinated import (
    COORDINATED,
    commit,
    commit_request,
    fetch_offsets,
    find,
    join,
    join_request,
)
from tests.unit.broker.serving import Serving, Wire, create_topic

from barnabas.metadata.cluster_view import TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

OPTIONS = {
    **COORDINATED,
    "offset.metadata.max.bytes": "10",
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("groups"), OPTIONS) as running:
        with running.connect() as wire:
            create_topic(wire, "t", 2)
            create_topic(wire, "u")
            find(wire, "any")
        yield running


@pytest.fixture
def group(new_name: Any) -> str:
    """A group id of the test's own."""
    return f"group-of-{new_name()}"


def beat(wire: Wire, group: str, member_id: str, generation: int) -> int:
    request = HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation)
    code: int = wire.ask(request, 3).error_code
    return code


def test_strangers_and_old_generations_are_refused(wire: Wire, group: str) -> None:
    member_id, generation = join(wire, group)
    unknown, illegal = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION
    assert beat(wire, group, "stranger", generation) == unknown
    assert beat(wire, group, member_id, generation - 1) == illegal
    assert beat(wire, "no-such-group", member_id, generation) == unknown
    offsets = {("t", 0): 1}
    for who, when, expected in (
        ("stranger", generation, unknown),
        (member_id, generation - 1, illegal),
        (member_id, generation + 1, illegal),
        ("", -1, unknown),
    ):
        more = {"member_id": who, "generation_id_or_member_epoch": when}
        assert commit(wire, group, offsets, **more) == [expected]
    assert commit(
        wire, group, offsets, member_id=member_id, generation_id_or_member_epoch=generation
    ) == [0]
    leaving = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="stranger")])
    assert wire.ask(leaving, 4).members[0].error_code == unknown
    assert beat(wire, group, member_id, generation) == 0


def test_an_assignment_of_strangers_does_no_harm(wire: Wire, group: str) -> None:
    """The leader names members that do not exist; the group's own ones get what is theirs."""
    joined = wire.ask(join_request(group), 3)
    assignments = [
        SyncGroupRequestAssignment(member_id=who, assignment=what)
        for who, what in (("stranger", b"not yours"), (joined.member_id, b"yours"))
    ]
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=assignments,
    )
    synced = wire.ask(request, 3)
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"yours")
    described = wire.ask(DescribeGroupsRequest(groups=[group]), 5).groups[0]
    assert [each.member_id for each in described.members] == [joined.member_id]
    wrong = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="connect",
        protocol_name="range",
    )
    assert wire.ask(wrong, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_joins_that_cannot_be(wire: Wire, group: str) -> None:
    def code(**more: Any) -> int:
        answer: int = wire.ask(join_request(group, **more), 3).error_code
        return answer

    assert code(session_timeout_ms=1) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert code(session_timeout_ms=2**31 - 1) == ErrorCode.INVALID_SESSION_TIMEOUT
    assert code(protocols=[]) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(protocol_type="") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert code(member_id="never-was") == ErrorCode.UNKNOWN_MEMBER_ID
    assert wire.ask(join_request(""), 3).error_code == ErrorCode.INVALID_GROUP_ID
    join(wire, group)
    assert code(protocol_type="connect") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    required = wire.ask(join_request(group), 5)
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert required.member_id.startswith("test-")


def test_commits_that_cannot_be(wire: Wire, group: str) -> None:
    too_large = commit_request(group, {("t", 0): 1, ("t", 1): 2})
    too_large.topics[0].partitions[0].committed_metadata = "x" * 11
    answer = wire.ask(too_large, 7)
    codes = [each.partitions[0].error_code for each in answer.topics]
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, group, {("nowhere", 0): 1, ("t", 7): 1, ("t", 0): 3}) == [
        missing,
        missing,
        0,
    ]
    assert fetch_offsets(wire, group, [("t", 0), ("t", 1), ("nowhere", 0)]) == [3, 2, -1]


def test_negative_offsets_are_stored_as_they_are(wire: Wire, group: str) -> None:
    """The broker does not judge offsets: readers with a reset policy do."""
    assert commit(wire, group, {("t", 0): -1}) == [0]
    assert fetch_offsets(wire, group, [("t", 0)]) == [-1]


def test_topics_are_named_by_their_ids(
    serving: Serving, wire: Wire, group: str, new_name: Any
) -> None:
    """A topic of a broker that knows no ids has none; what names no topic is not taken for it."""
    topic_id = create_topic(wire, name := new_name())
    cluster = serving.broker.cluster
    old = TopicView(new_name(), ZERO_UUID, cluster.topic(name).partitions)  # type: ignore[union-attr]
    serving.inside(lambda: cluster.put_topic(old))
    ids = [topic_id, ZERO_UUID, b"u" * 16]
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=4)
    request = OffsetCommitRequest(
        group_id=group,
        topics=[OffsetCommitRequestTopic(topic_id=each, partitions=[partition]) for each in ids],
    )
    answer = wire.ask(request, 10)
    assert [topic.topic_id for topic in answer.topics] == ids
    assert [topic.partitions[0].error_code for topic in answer.topics] == [0, unknown, unknown]
    assert fetch_offsets(wire, group, [(name, 0), (old.name, 0)]) == [4, -1]
    for topics in (
        [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in ids],
        None,
    ):
        asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
        (found,) = wire.ask(OffsetFetchRequest(groups=[asked]), 10).groups
        codes = [topic.partitions[0].error_code for topic in found.topics]
        assert codes == ([0] if topics is None else [0, unknown, unknown])
        assert found.topics[0].partitions[0].committed_offset == 4
    serving.inside(lambda: cluster.remove_topic(old.name))


def test_several_groups_at_once_answer_in_order(wire: Wire, group: str) -> None:
    names = [f"{group}-{number}" for number in range(6)]
    for number, each in enumerate(names):
        assert commit(wire, each, {("t", 0): number}) == [0]
    asked = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in names]
    answer = wire.ask(OffsetFetchRequest(groups=asked), 8)
    found = {each.group_id: each.topics[0].partitions[0].committed_offset for each in answer.groups}
    assert list(found.items()) == [(each, number) for number, each in enumerate(names)]
    gone = wire.ask(DeleteGroupsRequest(groups_names=[*names, names[0], "never-was"]), 2)
    assert [(each.group_id, each.error_code) for each in gone.results] == [
        *((each, 0) for each in names),
        ("never-was", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert wire.ask(DeleteGroupsRequest(), 2).results == []


def test_offsets_of_a_deleted_topic_are_forgotten(wire: Wire, group: str, topic: str) -> None:
    assert commit(wire, group, {(topic, 0): 5, ("t", 0): 6}) == [0, 0]
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=60_000)
    assert wire.ask(request, 6).responses[0].error_code == 0
    everything = wire.ask(OffsetFetchRequest(group_id=group, topics=None), 7)
    assert [each.name for each in everything.topics] == ["t"]
    create_topic(wire, topic)
    assert fetch_offsets(wire, group, [(topic, 0), ("t", 0)]) == [-1, 6]


def test_offsets_in_use_are_not_deleted(wire: Wire, group: str) -> None:
    member_id, generation = join(wire, group)
    who = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    assert commit(wire, group, {("t", 0): 5}, **who) == [0]
    partition = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name="t", partitions=[partition])
    request = OffsetDeleteRequest(group_id=group, topics=[topic])
    refused = wire.ask(request, 0).topics[0].partitions[0]
    assert refused.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    (result,) = wire.ask(DeleteGroupsRequest(groups_names=[group]), 2).results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    wire.ask(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)]), 4)
    assert wire.ask(request, 0).topics[0].partitions[0].error_code == 0
    assert fetch_offsets(wire, group, [("t", 0)]) == [-1]


def test_the_wrong_type_of_group(wire: Wire, group: str) -> None:
    join(wire, group, protocol_type="connect")
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="AAAAAAAAAAAAAAAAAAAAAA",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert wire.ask(request, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    request.group_id = f"{group}-consumer"
    assert wire.ask(request, 1).error_code == 0
    other = join_request(request.group_id, protocol_type="connect")
    assert wire.ask(other, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    listed = wire.ask(ListGroupsRequest(types_filter=["consumer"]), 5).groups
    assert request.group_id in [each.group_id for each in listed]
    assert group not in [each.group_id for each in listed]


def test_a_full_group_takes_nobody_in(tmp_path: Path) -> None:
    with Serving(tmp_path, {**COORDINATED, "group.max.size": "1"}) as serving:
        wire, second = serving.connect(), serving.connect()
        find(wire, "g")
        member_id, generation = join(wire, "g")
        refused = second.ask(join_request("g"), 3)
        assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert beat(wire, "g", member_id, generation) == 0


def test_internal_topics_are_like_kafkas(wire: Wire, serving: Serving) -> None:
    internal = {each.name: each for each in wire.ask(MetadataRequest(topics=None), 12).topics}[
        "__consumer_offsets"
    ]
    assert internal.is_internal
    assert len(internal.partitions) == 4
    overrides = serving.inside(lambda: serving.broker.configs.overrides_of("__consumer_offsets"))
    assert overrides == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_offsets_expire(tmp_path: Path) -> None:
    """What nobody used for offsets.retention.minutes is forgotten, in the log too."""
    options = {**COORDINATED, "offsets.retention.minutes": "1"}
    with Serving(tmp_path, options) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t")
            find(wire, "g")
            assert commit(wire, "g", {("t", 0): 5}) == [0]
            groups, later = serving.broker.groups, serving.broker.now_ms() + 61_000
            serving.inside(groups.expire_offsets)
            assert fetch_offsets(wire, "g", [("t", 0)]) == [5]
            serving.broker._wall_clock = lambda: later / 1000
            serving.inside(groups.expire_offsets)
            assert fetch_offsets(wire, "g", [("t", 0)]) == [-1]
        serving.stop()
        serving.start()
        serving.wait_inside(lambda: not serving.broker.groups.is_loading, "groups are loaded")
        with serving.connect() as wire:
            answer = wire.ask(ListGroupsRequest(), 4)
            assert (answer.error_code, answer.groups) == (0, [])


class Denying:
    """Lets everything pass but one operation on one topic."""

    def __init__(self, operation: Operation, topic: str) -> None:
        self._denied = (operation, ResourceType.TOPIC, topic)

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        return (operation, resource, name) != self._denied


@pytest.fixture
def deny(serving: Serving) -> Iterator[Any]:
    """Deny an operation on topic "t"; "u" stays open."""
    allowing = serving.broker.authorizer

    def deny(operation: Operation) -> None:
        serving.broker.authorizer = Denying(operation, "t")

    yield deny
    serving.broker.authorizer = allowing


def fetched(wire: Wire, group: str, topics: Any, version: int) -> dict[str, list[Any]]:
    """Fetch offsets; return those of each topic, or their error's name."""
    if version >= 8:
        asked = None
        if topics is not None:
            asked = [OffsetFetchRequestTopics(name=t, partition_indexes=[0]) for t in topics]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)])
        answer = wire.ask(request, version).groups[0]
    else:
        old = None
        if topics is not None:
            old = [OffsetFetchRequestTopic(name=t, partition_indexes=[0]) for t in topics]
        answer = wire.ask(OffsetFetchRequest(group_id=group, topics=old), version)
    return {
        topic.name: [
            ErrorCode.of(p.error_code).name if p.error_code else p.committed_offset
            for p in topic.partitions
        ]
        for topic in answer.topics
    }


@pytest.mark.parametrize("version", [1, 2, 7, 8, 9])
def test_offsets_of_topics_that_may_not_be_seen_are_not_shown(
    serving: Serving, group: str, deny: Any, version: int
) -> None:
    with serving.connect() as wire:
        assert commit(wire, group, {("t", 0): 4, ("u", 0): 5}) == [0, 0]
        deny(Operation.DESCRIBE)
        assert fetched(wire, group, ["t", "u"], version) == {
            "t": ["TOPIC_AUTHORIZATION_FAILED"],
            "u": [5],
        }
        if version >= 2:
            assert fetched(wire, group, None, version) == {"u": [5]}


def test_offsets_of_topics_that_may_not_be_read_are_neither_committed_nor_deleted(
    serving: Serving, group: str, deny: Any
) -> None:
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with serving.connect() as wire:
        assert commit(wire, group, {("t", 0): 4, ("u", 0): 5}) == [0, 0]
        deny(Operation.READ)
        for version in (1, 7, 9):
            assert commit(wire, group, {("t", 0): 9, ("u", 0): 6}, version) == [denied, 0]
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group,
            producer_id=1,
            producer_epoch=0,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                    ],
                )
                for name in ("t", "t")
            ],
        )
        answer = wire.ask(request, 3)
        assert [topic.partitions[0].error_code for topic in answer.topics] == [denied, denied]
        delete = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
                for name in ("t", "u", "")
            ],
        )
        answer = wire.ask(delete, 0)
        codes = [topic.partitions[0].error_code for topic in answer.topics]
        assert codes == [denied, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert fetch_offsets(wire, group, [("t", 0), ("u", 0)]) == [4, -1]


def test_a_topic_without_a_name_is_unknown(serving: Serving, group: str) -> None:
    with serving.connect() as wire:
        assert commit(wire, group, {("", 0): 4}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
