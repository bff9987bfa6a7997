"""Groups are asked about at their coordinators, each on its own, also when these move."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.admin.scripted import converse, in_turn

from barnabas.admin.coordinators import Kind, ask_coordinators
from barnabas.admin.group_offsets import delete_group_offsets, list_group_offsets
from barnabas.admin.groups import (
    MemberToRemove,
    delete_groups,
    describe_groups,
    list_groups,
    remove_members,
)
from barnabas.admin.producers import FencedProducer, fence_producers
from barnabas.client.errors import UnsupportedApiError
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import (
    GroupAuthorizationFailedError,
    GroupSubscribedToTopicError,
    NonEmptyGroupError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from barnabas.wire.messages import consumer_group_describe as consumer
from barnabas.wire.messages import delete_groups as deletion
from barnabas.wire.messages import describe_groups as classic
from barnabas.wire.messages import find_coordinator as finding
from barnabas.wire.messages import init_producer_id as init
from barnabas.wire.messages import leave_group as leaving
from barnabas.wire.messages import offset_delete, offset_fetch
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def deleted(**codes: int) -> deletion.DeleteGroupsResponse:
    return deletion.DeleteGroupsResponse(
        results=[
            deletion.DeletableGroupResult(group_id=name, error_code=code)
            for name, code in codes.items()
        ]
    )


def test_a_coordinator_that_moved_is_looked_up_again_for_its_groups_alone() -> None:
    answers = in_turn(deleted(a=0, b=16, c=68), deleted(b=14), deleted(b=0))
    outcomes, broker = converse(
        {deletion.DeleteGroupsRequest: answers},
        lambda client: delete_groups(client, ["a", "b", "c"]),
    )
    assert (outcomes["a"], outcomes["b"]) == (None, None)
    assert isinstance(outcomes["c"], NonEmptyGroupError)
    asked: list[Any] = [each.message for each in broker.asked(deletion.DeleteGroupsRequest)]
    assert [each.groups_names for each in asked] == [["a", "b", "c"], ["b"], ["b"]]
    looked: list[Any] = [each.message for each in broker.asked(finding.FindCoordinatorRequest)]
    assert [each.coordinator_keys for each in looked] == [["a", "b", "c"], ["b"], ["b"]]


def test_old_brokers_are_asked_for_one_coordinator_at_a_time() -> None:
    outcomes, broker = converse(
        {deletion.DeleteGroupsRequest: in_turn(deleted(a=0, b=0))},
        lambda client: delete_groups(client, ["a", "b"]),
        {finding.FindCoordinatorRequest: (0, 3)},
    )
    assert outcomes == {"a": None, "b": None}
    looked: list[Any] = [each.message for each in broker.asked(finding.FindCoordinatorRequest)]
    assert [each.key for each in looked] == ["a", "b"]


def test_a_group_that_may_not_be_looked_up_does_not_hinder_the_others() -> None:
    found = finding.FindCoordinatorResponse(
        coordinators=[
            finding.Coordinator(key="mine", node_id=1),
            finding.Coordinator(key="secret", error_code=30),
        ]
    )

    async def ask(node_id: int, connection: Any, keys: list[str]) -> dict[str, Any]:
        return dict.fromkeys(keys, node_id)

    outcomes, _ = converse(
        {finding.FindCoordinatorRequest: in_turn(found)},
        lambda client: ask_coordinators(client, ["mine", "secret"], Kind.GROUP, ask),
    )
    assert outcomes["mine"] == 1
    assert isinstance(outcomes["secret"], GroupAuthorizationFailedError)


def test_groups_of_both_protocols_are_described_together() -> None:
    old = classic.DescribeGroupsResponse(
        groups=[
            classic.DescribedGroup(group_id="old", group_state="Stable", protocol_type="connect"),
            classic.DescribedGroup(group_id="new", group_state="Dead"),
        ]
    )
    topics = [consumer.TopicPartitions(topic_name="t", partitions=[0, 2])]
    member = consumer.Member(
        member_id="m",
        member_epoch=4,
        rack_id="r",
        subscribed_topic_names=["t"],
        assignment=consumer.Assignment(topic_partitions=topics),
    )
    new = consumer.ConsumerGroupDescribeResponse(
        groups=[consumer.DescribedGroup(group_id="new", group_epoch=5, members=[member])]
    )
    outcomes, broker = converse(
        {
            classic.DescribeGroupsRequest: in_turn(old),
            consumer.ConsumerGroupDescribeRequest: in_turn(new),
        },
        lambda client: describe_groups(client, ["old", "new"], authorized_operations=True),
    )
    assert (outcomes["old"].type, outcomes["old"].epoch) == ("classic", None)
    assert (outcomes["new"].type, outcomes["new"].epoch) == ("consumer", 5)
    [described] = outcomes["new"].members
    assert described.partitions == (TopicPartition("t", 0), TopicPartition("t", 2))
    assert (described.epoch, described.rack, described.subscribed_topics) == (4, "r", ("t",))
    [asked] = broker.asked(consumer.ConsumerGroupDescribeRequest)
    assert isinstance(asked.message, consumer.ConsumerGroupDescribeRequest)
    assert asked.message.group_ids == ["new"]


def test_filters_that_a_broker_does_not_know_are_not_dropped() -> None:
    script = {ListGroupsRequest: in_turn(ListGroupsResponse())}
    old = {ListGroupsRequest: (0, 4)}
    assert converse(script, lambda client: list_groups(client, ["Stable"]), old)[0] == []
    with pytest.raises(UnsupportedVersionError, match="this client needs 5"):
        converse(script, lambda client: list_groups(client, types=["consumer"]), old)


def test_offsets_of_each_partition_and_group() -> None:
    def answer(request: Any, version: int) -> offset_fetch.OffsetFetchResponse:
        if request.group_id == "secret":
            return offset_fetch.OffsetFetchResponse(error_code=30)
        partitions = [
            offset_fetch.OffsetFetchResponsePartition(partition_index=0, committed_offset=7),
            offset_fetch.OffsetFetchResponsePartition(partition_index=1, error_code=29),
        ]
        topic = offset_fetch.OffsetFetchResponseTopic(name="t", partitions=partitions)
        return offset_fetch.OffsetFetchResponse(topics=[topic])

    outcomes, broker = converse(
        {offset_fetch.OffsetFetchRequest: answer},
        lambda client: list_group_offsets(client, {"g": None, "secret": []}, require_stable=True),
    )
    assert outcomes["g"][TopicPartition("t", 0)].offset == 7
    assert outcomes["g"][TopicPartition("t", 1)].errno == 29
    assert isinstance(outcomes["secret"], GroupAuthorizationFailedError)
    asked: list[Any] = broker.asked(offset_fetch.OffsetFetchRequest)
    assert all(each.message.require_stable for each in asked)


def test_offsets_are_deleted_one_by_one() -> None:
    results = [
        offset_delete.OffsetDeleteResponsePartition(partition_index=0),
        offset_delete.OffsetDeleteResponsePartition(partition_index=1, error_code=86),
    ]
    topic = offset_delete.OffsetDeleteResponseTopic(name="t", partitions=results)
    answer = offset_delete.OffsetDeleteResponse(topics=[topic])
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    outcomes, _ = converse(
        {offset_delete.OffsetDeleteRequest: in_turn(answer)},
        lambda client: delete_group_offsets(client, "g", partitions),
    )
    assert outcomes[partitions[0]] is None
    assert isinstance(outcomes[partitions[1]], GroupSubscribedToTopicError)


def test_members_are_removed_by_either_id() -> None:
    members = [MemberToRemove("m", reason="why"), MemberToRemove(group_instance_id="i")]
    answer = leaving.LeaveGroupResponse(
        members=[
            leaving.MemberResponse(member_id="m", group_instance_id=None, error_code=25),
            leaving.MemberResponse(member_id="", group_instance_id="i"),
        ]
    )
    script = {leaving.LeaveGroupRequest: in_turn(answer)}
    outcomes, broker = converse(script, lambda client: remove_members(client, "g", members))
    assert isinstance(outcomes[members[0]], UnknownMemberIdError)
    assert outcomes[members[1]] is None
    [asked] = broker.asked(leaving.LeaveGroupRequest)
    assert asked.message.members[0].reason == "why"  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedApiError):
        converse(
            script,
            lambda client: remove_members(client, "g", members),
            {leaving.LeaveGroupRequest: (0, 2)},
        )
    with pytest.raises(InvalidValueError, match="member_id"):
        MemberToRemove()


def test_producers_are_fenced_through_their_coordinators() -> None:
    answers = in_turn(
        init.InitProducerIdResponse(error_code=51),
        init.InitProducerIdResponse(producer_id=4, producer_epoch=9),
    )
    outcomes, broker = converse(
        {init.InitProducerIdRequest: answers}, lambda client: fence_producers(client, ["t"])
    )
    assert outcomes == {"t": FencedProducer(4, 9)}
    assert len(broker.asked(init.InitProducerIdRequest)) == 2
