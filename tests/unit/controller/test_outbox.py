"""Letters of one decision: whom they go to, in which order, and what stands in them."""

from __future__ import annotations

import pytest

from barnabas.controller.knowledge import Knowledge, Topic
from barnabas.controller.leadership import Assignment, Leadership
from barnabas.controller.outbox import ROLES_PER_REQUEST, Letter, Outbox
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrRequest
from barnabas.wire.messages.stop_replica import StopReplicaRequest
from barnabas.wire.messages.update_metadata import UpdateMetadataRequest

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = bytes(15) + b"\x05"


def known(*brokers: int) -> Knowledge:
    knowledge = Knowledge()
    for broker in brokers:
        knowledge.brokers[broker] = BrokerView(
            broker, {"IN": (f"host{broker}", 9092)}, f"rack{broker}", 100 + broker, {"IN": 1}
        )
    knowledge.topics["t"] = Topic(TOPIC_ID)
    for number, key in enumerate((T0, T1)):
        knowledge.assign(key, Assignment((1, 2, 3), (3,), (1,)) if number else Assignment((1, 2)))
        knowledge.leaderships[key] = Leadership(1, 4, (1, 2), 9, recovering=number == 1)
    return knowledge


def outbox(knowledge: Knowledge) -> Outbox:
    return Outbox(knowledge, 1, 6, "IN")


def kinds(letters: list[Letter]) -> list[tuple[int, str]]:
    return [(letter.broker_id, type(letter.request).__name__) for letter in letters]


def test_roles_first_then_metadata_then_ends() -> None:
    box = outbox(known(1, 2, 3))
    box.stop(3, T0, delete=True)
    box.lead([1, 2], T0)
    assert kinds(box.take()) == [
        (1, "LeaderAndIsrRequest"),
        (2, "LeaderAndIsrRequest"),
        (1, "UpdateMetadataRequest"),
        (2, "UpdateMetadataRequest"),
        (3, "UpdateMetadataRequest"),
        (3, "StopReplicaRequest"),
    ]
    assert box.take() == []


def test_what_follows_a_seal_is_told_after_it() -> None:
    box = outbox(known(1, 2))
    box.stop(2, T0, delete=False)
    box.seal()
    box.update_metadata([1])
    assert kinds(box.take()) == [(2, "StopReplicaRequest"), (1, "UpdateMetadataRequest")]


def test_the_dead_are_told_nothing() -> None:
    box = outbox(known(1))
    box.lead([1, 2], T0)
    box.stop(2, T0, delete=True)
    assert {letter.broker_id for letter in box.take()} == {1}


def test_every_letter_names_the_controller_and_the_life_of_its_broker() -> None:
    box = outbox(known(1, 2))
    box.lead([1, 2], T0)
    box.stop(2, T1, delete=False)
    for broker, request in box.take():
        assert (request.controller_id, request.controller_epoch) == (1, 6)
        assert request.broker_epoch == 100 + broker


def test_a_role() -> None:
    """Once new, new in this letter; coming and going replicas, recovery, and where leaders are."""
    box = outbox(known(1, 2))
    box.lead([2], T1, new=True)
    box.lead([2], T1)
    box.lead([2], T0)
    request = box.take()[0].request
    assert isinstance(request, LeaderAndIsrRequest)
    [topic] = request.topic_states
    assert (topic.topic_name, topic.topic_id) == ("t", TOPIC_ID)
    moving, resting = topic.partition_states
    assert (moving.partition_index, moving.is_new, resting.is_new) == (1, True, False)
    assert (moving.leader, moving.leader_epoch, moving.partition_epoch) == (1, 4, 9)
    assert (moving.isr, moving.replicas) == ([1, 2], [1, 2, 3])
    assert (moving.adding_replicas, moving.removing_replicas) == ([3], [1])
    assert (moving.leader_recovery_state, resting.leader_recovery_state) == (1, 0)
    [leader] = request.live_leaders
    assert (leader.broker_id, leader.host_name, leader.port) == (1, "host1", 9092)


def test_metadata_tells_who_is_offline() -> None:
    knowledge = known(1, 2)
    knowledge.disk_failed(2, [T1])
    box = outbox(knowledge)
    box.update_metadata([1], [T0, T1])
    request = box.take()[0].request
    assert isinstance(request, UpdateMetadataRequest)
    assert [broker.id for broker in request.live_brokers] == [1, 2]
    [endpoint] = request.live_brokers[1].endpoints
    assert (endpoint.host, endpoint.port, endpoint.listener) == ("host2", 9092, "IN")
    assert request.live_brokers[1].rack == "rack2"
    states = request.topic_states[0].partition_states
    assert [state.offline_replicas for state in states] == [[], [2, 3]]
    assert [state.zk_version for state in states] == [9, 9]


def test_a_topic_that_goes() -> None:
    """Nobody leads it any more, and no epoch of a leader outdates the order to stop."""
    knowledge = known(1)
    knowledge.assign(T1, Assignment((1, 2)))
    knowledge.deleting.add("t")
    box = outbox(knowledge)
    box.update_metadata([1], [T0])
    box.stop(1, T0, delete=True)
    metadata, stop = (letter.request for letter in box.take())
    assert isinstance(metadata, UpdateMetadataRequest)
    assert isinstance(stop, StopReplicaRequest)
    assert metadata.topic_states[0].partition_states[0].leader == -2
    [state] = stop.topic_states[0].partition_states
    assert (state.leader_epoch, state.delete_partition) == (-2, True)


def test_a_topic_that_goes_when_its_move_has_ended_is_found_until_then() -> None:
    knowledge = known(1)
    knowledge.deleting.add("t")
    box = outbox(knowledge)
    box.update_metadata([1], [T0, T1])
    [letter] = box.take()
    assert isinstance(letter.request, UpdateMetadataRequest)
    assert [each.leader for each in letter.request.topic_states[0].partition_states] == [1, 1]


def test_a_stop_carries_the_epoch_and_deletes_if_anyone_asked_to() -> None:
    box = outbox(known(1))
    box.stop(1, T0, delete=True)
    box.stop(1, T0, delete=False)
    box.stop(1, TopicPartition("gone", 3), delete=False)
    [letter] = box.take()
    assert isinstance(letter.request, StopReplicaRequest)
    states = [
        (topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition)
        for topic in letter.request.topic_states
        for state in topic.partition_states
    ]
    assert states == [("t", 0, 4, True), ("gone", 3, -1, False)]


def test_a_topic_deleted_meanwhile_has_no_role() -> None:
    knowledge = known(1)
    box = outbox(knowledge)
    box.lead([1], T0)
    knowledge.forget_topic("t")
    roles, metadata = (letter.request for letter in box.take())
    assert isinstance(roles, LeaderAndIsrRequest)
    assert isinstance(metadata, UpdateMetadataRequest)
    assert (roles.topic_states, metadata.topic_states) == ([], [])


def test_many_roles_come_in_requests_that_can_be_answered_in_time() -> None:
    """And before everyone hears where to find the partitions, in one request each."""
    knowledge = known(1, 2)
    keys = [TopicPartition("t", number) for number in range(2 * ROLES_PER_REQUEST + 1)]
    for key in keys:
        knowledge.assign(key, Assignment((1, 2)))
        knowledge.leaderships[key] = Leadership(1, 4, (1, 2), 9)
    box = outbox(knowledge)
    for key in keys:
        box.lead([2], key)
    letters = box.take()
    assert kinds(letters) == [
        *[(2, "LeaderAndIsrRequest")] * 3,
        (1, "UpdateMetadataRequest"),
        (2, "UpdateMetadataRequest"),
    ]
    told = [
        state.partition_index
        for _, request in letters[:3]
        if isinstance(request, LeaderAndIsrRequest)
        for state in request.topic_states[0].partition_states
    ]
    assert told == [key.partition for key in keys]
    for broker, request in letters[3:]:
        assert isinstance(request, UpdateMetadataRequest)
        assert len(request.topic_states[0].partition_states) == len(keys)
        assert request.broker_epoch == 100 + broker


def test_a_topic_that_is_being_deleted_has_no_more_leaders() -> None:
    knowledge = known(1, 2)
    knowledge.assign(T1, Assignment((1, 2)))
    knowledge.deleting.add("t")
    box = outbox(knowledge)
    with pytest.raises(AssertionError, match="t-0 would be recreated"):
        box.lead([1, 2], T0)


def test_nobody_hears_of_a_partition_without_in_sync_replicas() -> None:
    knowledge = known(1, 2)
    box = outbox(knowledge)
    knowledge.leaderships[T0] = Leadership(-1, 5, (), 10)
    box.lead([1], T0)
    with pytest.raises(AssertionError, match="never empty"):
        box.take()
