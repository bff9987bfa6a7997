"""Preferred leaders: when they are elected of themselves, on request, and by the oldest tools."""

from __future__ import annotations

import pytest
from tests.unit.controller.asking import T0, grant, runs
from tests.unit.controller.office import Office

from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition


async def led_elsewhere(of: int, moved: int) -> Office:
    """Of some partitions that prefer broker 0, a number is led by broker 1, all in sync."""
    office = await Office().open(0, 1)
    await office.create("t", *[(0, 1)] * of)
    await office.die(0)
    await office.come(0)
    for number in range(of):
        key = TopicPartition("t", number)
        await grant(office, key, 1, 0)
        if number >= moved:
            await office.term.balance.elect_preferred([key])
            office.deliver()
    await office.settle()
    return office


@pytest.mark.parametrize(
    ("of", "moved", "percentage_max", "chosen"),
    [(10, 1, 10, 0), (10, 2, 10, 2), (10, 1, 9, 1), (3, 3, 99, 3), (3, 3, 100, 0), (4, 0, 0, 0)],
)
def test_only_above_the_bound(of: int, moved: int, percentage_max: int, chosen: int) -> None:
    @runs
    async def story() -> None:
        office = await led_elsewhere(of, moved)
        assert office.term.balance.to_rebalance(percentage_max) == [
            TopicPartition("t", number) for number in range(chosen)
        ]

    story()


@runs
async def test_only_those_that_can_lead_and_do_not_move() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1), (0, 1), (0, 1))
    await office.die(0)
    await office.come(0)
    await grant(office, T0, 1, 0)
    await grant(office, TopicPartition("t", 1), 1, 0)
    await office.term.reassignment.begin(TopicPartition("t", 1), (0, 2))
    office.deliver()
    assert office.term.balance.to_rebalance(10) == [T0]
    await office.term.controlled_shutdown(0, -1)
    assert office.term.balance.to_rebalance(10) == [], "it is about to go"


@runs
async def test_dead_brokers_and_topics_that_go_are_not_counted() -> None:
    office = await led_elsewhere(2, 2)
    await office.die(0)
    assert office.term.balance.to_rebalance(10) == []
    await office.delete("t")
    await office.come(0)
    assert office.term.balance.to_rebalance(10) == []


@runs
async def test_a_preferred_leader_begins_a_new_epoch_with_the_same_in_sync_replicas() -> None:
    office = await led_elsewhere(1, 1)
    before = office.knowledge.leaderships[T0]
    assert await office.term.balance.elect_preferred([T0]) == {T0: ErrorCode.NONE}
    after = office.knowledge.leaderships[T0]
    assert (after.leader, after.isr) == (0, before.isr)
    assert after.leader_epoch == before.leader_epoch + 1
    office.deliver()
    await office.check()


@runs
async def test_unclean_elections_on_request() -> None:
    """Only for partitions that nobody leads, and also where the topic does not allow it."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 2))
    elect = office.term.balance.elect_unclean
    assert await elect([T0]) == {T0: ErrorCode.ELECTION_NOT_NEEDED}
    await office.die(2)
    await office.die(1)
    assert await elect([T0]) == {T0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    await office.come(2)
    assert await elect([T0]) == {T0: ErrorCode.NONE}
    office.deliver()
    node = await office.node("t")
    assert (node.leader, node.isr, node.recovering) == (2, (2,), True)
    nowhere = TopicPartition("none", 0)
    assert await elect([nowhere]) == {nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@runs
async def test_a_nodes_request_is_answered_by_its_removal() -> None:
    """Whatever it says: partitions that cannot be elected, twice the same one, or nothing."""
    office = await led_elsewhere(1, 1)
    listed = [{"topic": t, "partition": n} for t, n in (("none", 0), ("t", 0), ("t", 0))]
    asked = nodes.compact({"version": 1, "partitions": listed})
    for data in (asked, b"no json", asked):
        await office.tree.create(nodes.LEGACY_PREFERRED_ELECTION, data)
        await office.settle()
        assert not await office.exists(nodes.LEGACY_PREFERRED_ELECTION)
    assert office.brokers[0].leads() == {T0}
    await office.check()


@runs
async def test_a_nodes_request_is_taken_up_by_a_successor() -> None:
    office = await led_elsewhere(1, 1)
    asked = nodes.compact({"version": 1, "partitions": [{"topic": "t", "partition": 0}]})
    await office.tree.create(nodes.LEGACY_PREFERRED_ELECTION, asked)
    await office.take_office(1)
    assert office.brokers[0].leads() == {T0}
    assert not await office.exists(nodes.LEGACY_PREFERRED_ELECTION)
    await office.check()
