"""Partitions that move: what comes, what goes, what a cancellation and another's write leave."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.controller.asking import T0, grant, runs, wish
from tests.unit.controller.office import Office

from barnabas.coordination.contract import Set
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrRequest
from barnabas.wire.messages.stop_replica import StopReplicaRequest

T1 = TopicPartition("t", 1)


async def move(office: Office, key: TopicPartition, target: Sequence[int] | None) -> None:
    await office.term.reassignment.begin(key, target)
    office.deliver()
    await office.settle()


async def ask_by_node(office: Office, *wanted: tuple[str, int, tuple[int, ...]]) -> None:
    await office.tree.create(nodes.LEGACY_REASSIGNMENT, nodes.encode_partitions(wanted))
    await office.settle()


async def asked_by_node(office: Office) -> list[tuple[str, int, tuple[int, ...]]] | None:
    if not await office.exists(nodes.LEGACY_REASSIGNMENT):
        return None
    data, _ = await office.tree.get(nodes.LEGACY_REASSIGNMENT)
    return nodes.decode_partitions("", data)


@runs
async def test_more_replicas() -> None:
    """The new ones are told that they are new; the old ones go on in a new epoch."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0,))
    office.letters.clear()
    await move(office, T0, (0, 1, 2))
    told = {
        (letter.broker_id, state.is_new)
        for letter in office.letters
        if isinstance(letter.request, LeaderAndIsrRequest)
        for topic in letter.request.topic_states
        for state in topic.partition_states
    }
    assert told == {(0, False), (1, True), (2, True)}
    assert (await office.node("t")).leader_epoch == 1
    await grant(office, T0, 0, 1, 2)
    moved = await office.assignment("t")
    assert (moved.replicas[0], moved.adding, moved.removing) == ((0, 1, 2), {}, {})
    assert (await office.node("t")).leader == 0
    await office.check()


@runs
async def test_fewer_replicas_need_not_be_waited_for() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    await move(office, T0, (1,))
    assert (await office.assignment("t")).replicas[0] == (1,)
    node = await office.node("t")
    assert (node.leader, node.isr) == (1, (1,))
    assert office.brokers[0].deleted == office.brokers[2].deleted == [T0]
    await office.check()


@runs
async def test_another_order_is_another_preferred_leader() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await move(office, T0, (1, 0))
    assert (await office.assignment("t")).replicas[0] == (1, 0)
    assert not office.knowledge.moving
    assert office.term.balance.to_rebalance(10) == [T0]
    await office.check()


@runs
async def test_the_same_target_again_changes_nothing() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await move(office, T0, (0, 1))
    assert (await office.node("t")).leader_epoch == 0
    await move(office, T0, (0, 2))
    before = await office.node("t"), await office.assignment("t")
    await move(office, T0, (0, 2))
    assert (await office.node("t"), await office.assignment("t")) == before


@runs
async def test_a_partition_that_was_added_meanwhile_stays() -> None:
    """Any broker may write a topic's node: what the controller has not looked at is not lost."""
    office = await Office().open(0, 1)
    await office.create("t", (0,))
    path = nodes.topic_path("t")
    data, stat = await office.tree.get(path)
    node = nodes.TopicAssignment.decode(path, data)
    grown = nodes.TopicAssignment(node.topic_id, {**node.replicas, 1: (1, 0)})
    await office.tree.multi([Set(path, grown.encode(), stat.version)])
    await move(office, T0, (1,))
    assert (await office.assignment("t")).replicas == {0: (1, 0), 1: (1, 0)}
    assert office.brokers[1].leads() == {T1}
    await grant(office, T0, 0, 1)
    assert (await office.assignment("t")).replicas == {0: (1,), 1: (1, 0)}
    await office.check()


@runs
async def test_a_moves_target_dies_and_comes_back() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await move(office, T0, (1, 2))
    await office.die(2)
    assert (await office.assignment("t")).adding == {0: (2,)}
    await office.come(2)
    assert office.brokers[2].roles[T0].leader == 0
    await grant(office, T0, 0, 1, 2)
    assert (await office.assignment("t")).replicas[0] == (1, 2)
    assert (await office.node("t")).leader == 1
    await office.check()


@runs
async def test_a_replica_that_goes_is_away_when_the_move_ends() -> None:
    """It is told nothing when it is back, since it is no replica any more."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await move(office, T0, (0, 2))
    await office.die(1)
    await grant(office, T0, 0, 2)
    assert (await office.assignment("t")).replicas[0] == (0, 2)
    back = await office.come(1)
    assert T0 not in back.roles
    await office.check()


@runs
async def test_replicas_that_go_are_stopped_after_the_new_leader_was_told() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0,))
    await move(office, T0, (1,))
    office.letters.clear()
    await grant(office, T0, 0, 1)
    kinds = [(x.broker_id, type(x.request)) for x in office.letters]
    assert kinds.index((1, LeaderAndIsrRequest)) < kinds.index((0, StopReplicaRequest))
    assert office.brokers[0].deleted == [T0]
    assert office.brokers[1].leads() == {T0}


@runs
async def test_who_leads_may_be_one_that_a_cancellation_drops() -> None:
    office = await Office().open(0, 1, 2, 3)
    await office.create("t", (0, 1))
    await move(office, T0, (2, 3))
    await grant(office, T0, 0, 1, 2)
    await office.term.balance.elect_preferred([T0])
    office.deliver()
    await office.settle()
    assert office.brokers[2].leads() == {T0}
    await grant(office, T0, 2, 1)
    await move(office, T0, None)
    node = await office.node("t")
    assert (node.leader, node.isr) == (1, (1,))
    assert office.brokers[2].deleted == [T0]
    await office.check()


@runs
async def test_the_only_ones_with_all_records_are_not_dropped() -> None:
    """A cancellation must not delete what nobody else has."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0,))
    await move(office, T0, (1, 2))
    await grant(office, T0, 0, 1)
    await office.die(0)
    assert (await office.node("t")).isr == (1,)
    with pytest.raises(RequestError, match=r"only \[1\] are in sync") as refusal:
        await office.term.reassignment.begin(T0, None)
    assert refusal.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert (await office.assignment("t")).adding == {0: (1, 2)}
    assert office.brokers[1].leads() == {T0}
    await office.check()


@runs
async def test_another_number_of_replicas_only_where_it_is_allowed() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    begin = office.term.reassignment.begin
    with pytest.raises(RequestError) as refusal:
        await begin(T0, (2,), same_factor=True)
    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    await begin(T0, (2, 0), same_factor=True)
    with pytest.raises(RequestError):
        await begin(T0, (2, 0, 1), same_factor=True)
    await begin(T0, (2, 1), same_factor=True)


@runs
async def test_topics_that_cannot_move() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.die(1)
    await office.delete("t")
    for key in (T0, T1, TopicPartition("none", 0)):
        with pytest.raises(RequestError) as refusal:
            await office.term.reassignment.begin(key, (0,))
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@runs
async def test_the_protocol_overrules_what_a_node_asked_for() -> None:
    """Otherwise the next controller would take up what was cancelled."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1), (0,))
    await grant(office, T0, 0)  # the origin is not in sync, so that a cancellation does not end it
    await ask_by_node(office, ("t", 0, (0, 2)), ("t", 1, (1,)))
    assert office.knowledge.moving == [T0, T1]
    await move(office, T0, None)
    assert await asked_by_node(office) == [("t", 1, (1,))]
    await move(office, T1, (2,))
    assert await asked_by_node(office) is None
    await office.take_office(1)
    assert (await office.assignment("t")).adding == {1: (2,)}
    assert (await office.assignment("t")).replicas[0] == (0, 1)
    await office.check()


@runs
async def test_another_order_that_a_node_asked_for() -> None:
    """Nothing has to be copied, so the request is done, although not all are in sync."""
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    await ask_by_node(office, ("t", 0, (1, 0)))
    assert (await office.assignment("t")).replicas[0] == (1, 0)
    assert await asked_by_node(office) is None
    await office.check()


@runs
async def test_a_nodes_request_is_taken_up_by_a_successor() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await ask_by_node(office, ("t", 0, (1, 2)))
    await office.take_office(1)
    assert await asked_by_node(office) == [("t", 0, (1, 2))]
    await grant(office, T0, 0, 1, 2)
    assert await asked_by_node(office) is None
    assert (await office.assignment("t")).replicas[0] == (1, 2)
    await office.check()


@runs
async def test_a_damaged_node_holds_up_no_other_move() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0,))
    await office.tree.create(nodes.LEGACY_REASSIGNMENT, b"[]")
    await office.settle()
    await move(office, T0, (1,))
    await grant(office, T0, 0, 1)
    assert (await office.assignment("t")).replicas[0] == (1,)
    await office.check()


@runs
async def test_a_move_ends_only_when_all_of_its_target_are_in_sync() -> None:
    """Also those of the target that were replicas before."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    await move(office, T0, (1, 2))
    await grant(office, T0, 0, 2)
    assert office.knowledge.moving == [T0]
    answers = await office.term.alter_partitions(0, -1, [wish(office, T0, 0, 1, 2)])
    assert isinstance(answers, dict)
    assert not office.knowledge.moving
    office.deliver()
    await office.settle()
    assert (await office.node("t")).leader == 1
    await office.check()


@runs
async def test_a_nodes_request_stays_while_a_broker_of_its_target_is_away() -> None:
    """A successor finds the move on its way; only one that has not begun is refused for that."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1), (0, 1))
    await ask_by_node(office, ("t", 0, (1, 2)))
    await office.die(2)
    await office.tree.set(
        nodes.LEGACY_REASSIGNMENT, nodes.encode_partitions([("t", 0, (1, 2)), ("t", 1, (1, 2))])
    )
    await office.take_office(1)
    assert await asked_by_node(office) == [("t", 0, (1, 2))]
    await office.come(2)
    await grant(office, T0, 0, 1, 2)
    assert await asked_by_node(office) is None
    assert (await office.assignment("t")).replicas == {0: (1, 2), 1: (0, 1)}
    await office.check()
