"""A term of office: brokers that come and go, topics, reassignments, elections, fail-over."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.unit.controller.asking import T0, grant, runs, wish
from tests.unit.controller.office import Office

from barnabas.controller.guarded_tree import ControllerMoved
from barnabas.controller.isr_changes import Wish
from barnabas.controller.phases import PartitionPhase
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrRequest
from barnabas.wire.messages.update_metadata import UpdateMetadataRequest


@runs
async def test_a_new_topic_gets_leaders_and_everyone_hears() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2), (1, 2, 0))
    assert office.brokers[0].leads() == {T0}
    assert office.brokers[1].leads() == {TopicPartition("t", 1)}
    assert all(len(broker.made) == 2 for broker in office.brokers.values())
    node = await office.node("t")
    assert (node.leader, node.leader_epoch, node.isr, node.controller_epoch) == (0, 0, (0, 1, 2), 1)
    await office.check()


@runs
async def test_more_partitions() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.extend("t", (1, 0), (0, 1))
    assert office.brokers[1].leads() == {TopicPartition("t", 1)}
    assert len(office.brokers[0].roles) == 3
    await office.check()


@runs
async def test_a_dead_leader_is_replaced_from_the_in_sync_replicas() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    await grant(office, T0, 0, 2)
    await office.die(0)
    node = await office.node("t")
    assert (node.leader, node.isr) == (2, (2,)), "1 was not in sync"
    assert node.leader_epoch == 1
    await office.check()
    await office.come(0)
    assert (await office.node("t")).leader == 2
    await office.check()


@runs
async def test_the_last_in_sync_replica_is_never_dropped() -> None:
    """All die; only the last one in sync may lead again, whoever comes back first."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 2))
    await office.die(1)
    await office.die(2)
    node = await office.node("t")
    assert (node.leader, node.isr) == (-1, (2,))
    await office.come(1)
    assert (await office.node("t")).leader == -1
    assert office.knowledge.phase(T0) is PartitionPhase.OFFLINE
    await office.come(2)
    assert ((await office.node("t")).leader, (await office.node("t")).isr) == (2, (2,))
    await office.check()


@runs
async def test_unclean_elections_only_where_allowed() -> None:
    office = await Office().open(0, 1, 2)
    office.unclean.add("u")
    for topic in ("t", "u"):
        await office.create(topic, (1, 2))
    await office.die(2)
    await office.die(1)
    await office.come(2)
    assert (await office.node("t")).leader == -1
    node = await office.node("u")
    assert (node.leader, node.isr, node.recovering) == (2, (2,), True)
    office.unclean.add("t")
    await office.term.unclean_election_allowed()
    office.deliver()
    assert (await office.node("t")).leader == 2
    await office.check()


@runs
async def test_a_broker_that_bounced_is_dead_and_alive_again() -> None:
    """Its registration is younger: it has restarted, so it leads nothing that it led before."""
    office = await Office().open(0, 1)
    await office.create("t", (1, 0))
    await office.brokers[1].session.close()
    await office.register(1)
    await office.settle()
    assert (await office.node("t")).leader == 0
    assert office.brokers[1].roles[T0].leader == 0
    await office.check()


@runs
async def test_a_new_controller_trusts_no_life_that_began_while_nobody_was_in_office() -> None:
    """A broker that restarted meanwhile may have lost records, so it is not in sync any more."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 2, 0), (2, 1, 0))
    await office.brokers[2].session.close()
    await office.register(2)
    await office.take_office()
    followed, led = await office.node("t", 0), await office.node("t", 1)
    assert (followed.leader, followed.leader_epoch, followed.isr) == (1, 1, (1, 0))
    assert (led.leader, led.leader_epoch, led.isr) == (1, 1, (1, 0))
    await office.check()


@runs
async def test_a_restart_that_a_controller_had_not_seen_when_it_wrote_its_last_word() -> None:
    """The partition's node is younger than the registration, but does not take account of it."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 2, 0))
    await office.brokers[2].session.close()
    await office.register(2)
    answers = await office.term.alter_partitions(1, -1, [wish(office, T0, 1, 2)])
    assert isinstance(answers, dict)
    assert answers[T0].error is ErrorCode.NONE
    await office.take_office()
    node = await office.node("t")
    assert (node.leader, node.isr) == (1, (1,))
    await office.check()
    await office.take_office()
    assert await office.node("t") == node, "a restart is dealt with once"


@runs
async def test_a_broker_that_was_always_alone_leaves_no_word_of_its_lives() -> None:
    """Its tree is Kafka's, node for node; with a second one there is a life to account for."""
    office = await Office().open(0)
    await office.create("t", (0,))
    assert not await office.exists(nodes.LIVES)
    await office.come(1)
    data, _ = await office.tree.get(nodes.LIVES)
    assert nodes.decode_lives(data).keys() == {0, 1}
    await office.die(1)
    data, _ = await office.tree.get(nodes.LIVES)
    assert nodes.decode_lives(data).keys() == {0}


@runs
async def test_lives_that_nobody_can_read() -> None:
    """The node is written anew, and younger registrations are told by the partitions' nodes."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 2, 0))
    await office.tree.set(nodes.LIVES, b'{"epochs":[]}')
    await office.brokers[2].session.close()
    await office.register(2)
    await office.take_office()
    assert (await office.node("t")).isr == (1, 0)
    data, _ = await office.tree.get(nodes.LIVES)
    views = office.knowledge.brokers.values()
    assert nodes.decode_lives(data) == {view.broker_id: view.epoch for view in views}


@runs
async def test_a_new_controller_takes_those_out_of_sync_who_are_gone() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (1, 2, 0))
    await office.brokers.pop(2).session.close()
    await office.take_office()
    node = await office.node("t")
    assert (node.leader, node.leader_epoch, node.isr) == (1, 1, (1, 0))
    await office.check()


@runs
async def test_when_all_have_restarted_they_stay_in_sync_in_a_new_epoch() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (1, 0))
    for broker in (0, 1):
        await office.brokers[broker].session.close()
        await office.register(broker)
    await office.take_office()
    node = await office.node("t")
    assert (node.leader, node.leader_epoch, node.isr) == (1, 1, (1, 0))
    await office.check()


@runs
async def test_a_deletion_that_was_cut_short_makes_nothing_again() -> None:
    """The states of partitions went first: a successor must not take the rest for a new topic."""
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    epochs = {number: list(broker.epochs[T0]) for number, broker in office.brokers.items()}
    await office.tree.create(f"{nodes.DELETE_TOPICS}/t")
    await office.tree.delete(nodes.state_path("t", 0))
    office.letters.clear()
    await office.take_office()
    assert not await office.exists(nodes.topic_path("t"))
    roles = [x.request for x in office.letters if isinstance(x.request, LeaderAndIsrRequest)]
    assert not any(request.topic_states for request in roles), "nobody was told to lead or follow"
    assert epochs == {0: [0], 1: [0]}


@runs
async def test_a_topic_is_deleted_when_all_its_brokers_live() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1), (1, 0))
    await office.die(1)
    await office.delete("t")
    assert await office.exists(nodes.topic_path("t"))
    assert not office.brokers[0].deleted
    back = await office.come(1)
    assert (
        sorted(back.deleted)
        == sorted(office.brokers[0].deleted)
        == [
            T0,
            TopicPartition("t", 1),
        ]
    )
    for path in ("/admin/delete_topics/t", nodes.topic_path("t"), nodes.config_path("topics", "t")):
        assert not await office.exists(path)
    assert "t" not in office.knowledge.topics
    assert T0 not in back.metadata
    await office.create("t", (0,))
    assert office.brokers[0].leads() == {T0}
    await office.check()


@runs
async def test_a_deletion_that_a_broker_refuses_is_tried_again() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    office.brokers[1].refuses_deletion = True
    await office.delete("t")
    assert await office.exists(nodes.topic_path("t"))
    await office.die(1)
    back = await office.come(1)
    assert back.deleted == [T0]
    assert not await office.exists(nodes.topic_path("t"))


@runs
async def test_a_broker_that_dies_in_a_deletion() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    office.brokers[1].refuses_deletion = True
    await office.delete("t")
    await office.die(1)
    await office.come(1)
    assert not await office.exists(nodes.topic_path("t"))
    assert not await office.exists("/admin/delete_topics/t")


@runs
async def test_a_partition_moves() -> None:
    office = await Office().open(0, 1, 2, 3)
    await office.create("t", (0, 1))
    await office.term.reassignment.begin(T0, (2, 3))
    office.deliver()
    await office.settle()
    moving = await office.assignment("t")
    assert (moving.replicas[0], moving.adding[0], moving.removing[0]) == (
        (2, 3, 0, 1),
        (2, 3),
        (0, 1),
    )
    assert {T0} == office.brokers[2].made == office.brokers[3].made
    await office.check()
    await grant(office, T0, 0, 1, 2)
    assert (await office.assignment("t")).adding
    await grant(office, T0, 0, 1, 2, 3)
    moved = await office.assignment("t")
    assert (moved.replicas[0], moved.adding, moved.removing) == ((2, 3), {}, {})
    node = await office.node("t")
    assert (node.leader, sorted(node.isr)) == (2, [2, 3])
    assert office.brokers[0].deleted == office.brokers[1].deleted == [T0]
    await office.check()


@runs
async def test_a_move_is_cancelled_or_replaced() -> None:
    office = await Office().open(0, 1, 2, 3)
    await office.create("t", (0, 1))
    begin = office.term.reassignment.begin
    await begin(T0, (0, 2))
    office.deliver()
    await begin(T0, (0, 3))
    office.deliver()
    await office.settle()
    assert office.brokers[2].deleted == [T0]
    assert (await office.assignment("t")).adding == {0: (3,)}
    await begin(T0, None)
    office.deliver()
    await office.settle()
    assert office.brokers[3].deleted == [T0]
    back = await office.assignment("t")
    assert (back.replicas[0], back.adding, back.removing) == ((0, 1), {}, {})
    with pytest.raises(RequestError) as refusal:
        await begin(T0, None)
    assert refusal.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    await office.check()


@pytest.mark.parametrize("target", [(), (0, 0), (-1,), (0, 9)])
def test_impossible_targets(target: tuple[int, ...]) -> None:
    async def attempt() -> None:
        office = await Office().open(0, 1)
        await office.create("t", (0, 1))
        with pytest.raises(RequestError) as refusal:
            await office.term.reassignment.begin(T0, target)
        assert refusal.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        await office.check()

    asyncio.run(attempt())


@runs
async def test_a_move_goes_on_after_a_fail_over() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await office.term.reassignment.begin(T0, (0, 2))
    await office.take_office(1)  # before anybody was told
    assert office.brokers[2].made == {T0}
    await grant(office, T0, 0, 1, 2)
    assert (await office.assignment("t")).replicas[0] == (0, 2)
    assert office.brokers[1].deleted == [T0]
    await office.check()


@runs
async def test_a_moving_topic_is_not_deleted() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await office.term.reassignment.begin(T0, (0, 2))
    office.deliver()
    await office.delete("t")
    assert await office.exists(nodes.topic_path("t"))


@runs
async def test_moves_of_the_oldest_tools() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0,))
    asked = nodes.encode_partitions([("t", 0, (1,)), ("t", 7, (0,)), ("none", 0, (1,))])
    await office.tree.create(nodes.LEGACY_REASSIGNMENT, asked)
    await office.settle()
    data, _ = await office.tree.get(nodes.LEGACY_REASSIGNMENT)
    assert nodes.decode_partitions("", data) == [("t", 0, (1,))], "the others cannot be"
    await grant(office, T0, 0, 1)
    assert not await office.exists(nodes.LEGACY_REASSIGNMENT)
    assert office.brokers[1].leads() == {T0}
    await office.check()


@runs
async def test_preferred_leaders() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.die(0)
    await office.come(0)
    elect = office.term.balance.elect_preferred
    assert await elect([T0]) == {T0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    await grant(office, T0, 1, 0)
    assert office.term.balance.to_rebalance(10) == [T0]
    assert await elect([T0]) == {T0: ErrorCode.NONE}
    office.deliver()
    await office.settle()
    assert office.brokers[0].leads() == {T0}
    assert await elect([T0]) == {T0: ErrorCode.ELECTION_NOT_NEEDED}
    nowhere = TopicPartition("none", 0)
    assert await elect([nowhere]) == {nowhere: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert office.term.balance.to_rebalance(10) == []
    await office.check()


@runs
async def test_a_preferred_election_of_the_oldest_tools() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.die(0)
    await office.come(0)
    await grant(office, T0, 1, 0)
    asked = nodes.compact({"version": 1, "partitions": [{"topic": "t", "partition": 0}]})
    await office.tree.create(nodes.LEGACY_PREFERRED_ELECTION, asked)
    await office.settle()
    assert office.brokers[0].leads() == {T0}
    assert not await office.exists(nodes.LEGACY_PREFERRED_ELECTION)


@runs
async def test_an_orderly_shutdown() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2), (1, 0, 2))
    await office.create("alone", (0,))
    epoch = office.knowledge.brokers[0].epoch
    with pytest.raises(RequestError) as refusal:
        await office.term.controlled_shutdown(0, epoch - 1)
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert await office.term.controlled_shutdown(0, epoch) == []
    office.deliver()
    await office.settle()
    assert (await office.node("t")).leader == 1
    assert 0 not in (await office.node("t", 1)).isr
    assert (await office.node("alone")).leader == 0, "there is nobody else"
    await office.die(0)
    assert (await office.node("alone")).leader == -1
    await office.check()


@runs
async def test_the_last_one_in_sync_cannot_leave_in_order() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    assert await office.term.controlled_shutdown(0, -1) == [T0]


@runs
async def test_in_sync_replicas_change_only_as_the_rules_say() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))

    async def answer(asked: Wish, by: int = 0) -> ErrorCode:
        answers = await office.term.alter_partitions(by, -1, [asked])
        assert isinstance(answers, dict)
        return answers[asked.key].error

    assert await answer(wish(office, T0, 0, leader_epoch=9)) is ErrorCode.NOT_CONTROLLER
    assert await answer(wish(office, T0, 0, partition_epoch=9)) is ErrorCode.NOT_CONTROLLER
    assert await answer(wish(office, T0, 0, leader_epoch=-1)) is ErrorCode.FENCED_LEADER_EPOCH
    assert await answer(wish(office, T0, 1), by=1) is ErrorCode.FENCED_LEADER_EPOCH
    assert await answer(wish(office, T0, 1)) is ErrorCode.INVALID_REQUEST
    assert await answer(wish(office, T0, 0, 2)) is ErrorCode.INVALID_REQUEST
    assert await answer(wish(office, T0, 0, recovering=True)) is ErrorCode.INVALID_REQUEST
    strange = wish(office, T0, 0)._replace(key=TopicPartition("none", 0))
    assert await answer(strange) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    lost = wish(office, T0, 0)
    assert await answer(lost) is ErrorCode.NONE
    assert await answer(lost) is ErrorCode.NONE, "asked again because the answer was lost"
    stale = wish(office, T0, 0, 1, partition_epoch=0)
    assert await answer(stale) is ErrorCode.INVALID_UPDATE_VERSION
    old_life = wish(office, T0, 0, 1, broker_epochs=(-1, 1))
    assert await answer(old_life) is ErrorCode.INELIGIBLE_REPLICA
    await office.die(1)
    assert await answer(wish(office, T0, 0, 1)) is ErrorCode.INELIGIBLE_REPLICA
    code = await office.term.alter_partitions(0, 0, [wish(office, T0, 0)])
    assert code is ErrorCode.STALE_BROKER_EPOCH


@runs
async def test_replicas_on_a_failed_disk_lead_nothing() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1), (0, 1))
    office.brokers[0].failed_disk.add(T0)
    event = nodes.encode_log_dir_event(0)
    await office.tree.create(f"{nodes.LOG_DIR_EVENTS}/log_dir_event_", event, sequence=True)
    await office.settle()
    node = await office.node("t")
    assert (node.leader, node.isr) == (1, (1,))
    assert (await office.node("t", 1)).leader == 0
    assert office.brokers[1].metadata[T0].offline_replicas == [0]
    assert await office.tree.children(nodes.LOG_DIR_EVENTS) == []


@runs
async def test_an_older_controller_cannot_write() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    old = office.term
    await office.take_office(1)
    with pytest.raises(ControllerMoved):
        await old.alter_partitions(0, -1, [wish(office, T0, 0)])
    with pytest.raises(ControllerMoved):
        await old.controlled_shutdown(0, -1)
    await office.check()


@runs
async def test_a_successor_finds_everything() -> None:
    """Also what happened while nobody was in office."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2), (1, 2, 0))
    await office.create("gone", (0, 1))
    await office.tree.create(f"{nodes.DELETE_TOPICS}/gone")
    await office.brokers.pop(1).session.close()
    await office.create_unseen("new", (2, 0))
    await office.take_office(2)
    assert (await office.node("t", 1)).leader == 2
    assert office.brokers[2].leads() == {TopicPartition("t", 1), TopicPartition("new", 0)}
    assert await office.exists(nodes.topic_path("gone")), "one of its brokers is away"
    await office.come(1)
    assert not await office.exists(nodes.topic_path("gone"))
    await office.check()


@runs
async def test_tampered_nodes_do_no_damage() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.tree.create("/brokers/topics/broken", b"not json")
    await office.tree.create("/brokers/ids/7", b"{}", ephemeral=True)
    await office.tree.create(nodes.LEGACY_REASSIGNMENT, b"[]")
    await office.settle()
    await office.create("fine", (1,))
    assert office.brokers[1].leads() == {TopicPartition("fine", 0)}
    assert "broken" not in office.knowledge.topics
    await office.check()


@pytest.mark.parametrize("seed", range(30))
def test_random_histories(seed: int) -> None:
    """Whatever comes in whatever order, what must hold at rest holds."""

    async def history() -> None:
        random = Random(seed)
        office = await Office().open(0, 1, 2, 3)
        made = 0
        for _ in range(60):
            what = random.randrange(10)
            alive = sorted(office.brokers)
            keys = [k for k in office.knowledge.leaderships if k.topic in office.knowledge.topics]
            if what <= 1 and len(alive) > 1:
                await office.die(random.choice(alive))
            elif what <= 3 and len(alive) < 4:
                await office.come(random.choice(sorted({0, 1, 2, 3} - set(alive))))
            elif what == 4:
                made += 1
                await office.create(
                    f"t{made}",
                    *(
                        tuple(random.sample(range(4), random.randrange(1, 4)))
                        for _ in range(random.randrange(1, 3))
                    ),
                )
            elif what == 5 and keys:
                topic = random.choice(keys).topic
                if topic not in office.knowledge.deleting:
                    await office.delete(topic)
            elif what == 6:
                await office.take_office(random.choice(alive))
            elif keys:
                await _change(office, random, random.choice(keys))
            await office.check()
        for broker in {0, 1, 2, 3} - set(office.brokers):
            await office.come(broker)
        await office.check()
        moving = {key.topic for key in office.knowledge.moving}
        assert office.knowledge.deleting <= moving

    asyncio.run(history())


async def _change(office: Office, random: Random, key: TopicPartition) -> None:
    """Let a leader change its in-sync replicas, or move a partition."""
    held = office.knowledge.leaderships[key]
    if key.topic in office.knowledge.deleting:
        return
    if random.random() < 0.4:
        back = key in office.knowledge.moving and random.random() < 0.2
        target = random.sample(sorted(office.brokers), min(2, len(office.brokers)))
        await office.term.reassignment.begin(key, None if back else target)
    elif held.leader in office.brokers:
        others = [r for r in office.knowledge.replicas(key) if r in office.brokers]
        isr = {held.leader, *random.sample(others, random.randrange(len(others) + 1))}
        await office.term.alter_partitions(held.leader, -1, [wish(office, key, *sorted(isr))])
    office.deliver()
    await office.settle()


@runs
async def test_a_broker_knows_all_topics_before_it_leads_any() -> None:
    """Its coordinators take a topic that they have not heard of for a deleted one."""
    office = await Office().open(0, 1)
    await office.create("t", (0, 1), (1, 0))
    await office.die(1)
    office.letters.clear()
    await office.come(1)
    told = [letter.request for letter in office.letters if letter.broker_id == 1]
    first_role = next(n for n, each in enumerate(told) if isinstance(each, LeaderAndIsrRequest))
    known = {
        (topic.topic_name, state.partition_index)
        for each in told[:first_role]
        if isinstance(each, UpdateMetadataRequest)
        for topic in each.topic_states
        for state in topic.partition_states
    }
    assert known == {("t", 0), ("t", 1)}
