"""Topics that go: held back while a replica cannot be deleted, and taken up again."""

from __future__ import annotations

from tests.unit.controller.asking import T0, grant, runs, wish
from tests.unit.controller.office import Office

from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrRequest
from barnabas.wire.messages.stop_replica import StopReplicaRequest
from barnabas.wire.messages.update_metadata import UpdateMetadataRequest


def roles_told(office: Office) -> set[tuple[int, str]]:
    return {
        (letter.broker_id, topic.topic_name)
        for letter in office.letters
        if isinstance(letter.request, LeaderAndIsrRequest)
        for topic in letter.request.topic_states
    }


async def is_there(office: Office, topic: str) -> bool:
    return await office.exists(nodes.topic_path(topic))


@runs
async def test_clients_find_it_no_longer_before_it_is_stopped() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    office.letters.clear()
    await office.delete("t")
    kinds = [(x.broker_id, type(x.request)) for x in office.letters]
    for broker in (0, 1):
        hidden = kinds.index((broker, UpdateMetadataRequest))
        assert hidden < kinds.index((broker, StopReplicaRequest))
    states = [
        (state.leader_epoch, state.delete_partition)
        for x in office.letters
        if isinstance(x.request, StopReplicaRequest)
        for topic in x.request.topic_states
        for state in topic.partition_states
    ]
    assert states == [(-2, True)] * 2
    assert not await is_there(office, "t")


@runs
async def test_a_topic_whose_creation_is_not_heard_of_yet() -> None:
    """Its deletion must not be taken for that of a topic that does not exist."""
    office = await Office().open(0)
    await office.create_unseen("t", (0,))
    await office.tree.create(f"{nodes.DELETE_TOPICS}/t")
    await office.term.deletions_changed()
    office.deliver()
    await office.settle()
    assert not await is_there(office, "t")
    assert await office.tree.children(nodes.DELETE_TOPICS) == []
    assert T0 not in office.brokers[0].metadata


@runs
async def test_an_unknown_topic_only_loses_its_request() -> None:
    office = await Office().open(0)
    await office.delete("none")
    assert await office.tree.children(nodes.DELETE_TOPICS) == []


@runs
async def test_a_move_that_ends_lets_the_deletion_go_on() -> None:
    """Until then the topic lives on, also under a successor: new replicas have to catch up."""
    office = await Office().open(0, 1, 2)
    await office.create("t", (0,), (0,))
    await office.term.reassignment.begin(T0, (1, 2))
    office.deliver()
    await office.delete("t")
    await office.take_office(1)
    assert await is_there(office, "t")
    assert all(broker.metadata[T0].leader == 0 for broker in office.brokers.values())
    await grant(office, T0, 0, 1)
    assert await is_there(office, "t")
    assert office.brokers[2].metadata[T0].isr == [0, 1]
    await grant(office, T0, 0, 1, 2)
    assert not await is_there(office, "t")
    assert {key for broker in office.brokers.values() for key in broker.deleted} == {
        T0,
        TopicPartition("t", 1),
    }
    assert not any(broker.roles for broker in office.brokers.values())
    await office.check()


@runs
async def test_a_move_that_is_cancelled_lets_the_deletion_go_on() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await grant(office, T0, 0)
    await office.term.reassignment.begin(T0, (0, 2))
    office.deliver()
    await office.delete("t")
    assert await is_there(office, "t")
    await office.term.reassignment.begin(T0, None)
    office.deliver()
    await office.settle()
    assert not await is_there(office, "t")
    assert all(broker.deleted for broker in office.brokers.values())


@runs
async def test_a_leader_of_a_topic_that_goes_changes_nothing_more() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.die(1)
    await office.delete("t")
    answers = await office.term.alter_partitions(0, -1, [wish(office, T0, 0)])
    assert isinstance(answers, dict)
    assert answers[T0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@runs
async def test_a_failed_disk_elsewhere_makes_nothing_again() -> None:
    """A broker that has deleted its replica is asked about its others, not about that one."""
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.create("other", (0, 1))
    office.brokers[1].refuses_deletion = True
    await office.delete("t")
    assert office.brokers[0].deleted == [T0]
    assert await is_there(office, "t")
    office.letters.clear()
    event = nodes.encode_log_dir_event(0)
    await office.tree.create(f"{nodes.LOG_DIR_EVENTS}/log_dir_event_", event, sequence=True)
    await office.settle()
    assert roles_told(office) == {(0, "other")}
    await office.check()


@runs
async def test_one_replica_that_stays_holds_back_its_topic_alone() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1))
    await office.create("u", (0, 2))
    office.brokers[1].refuses_deletion = True
    await office.delete("t")
    await office.delete("u")
    assert await is_there(office, "t")
    assert not await is_there(office, "u")


@runs
async def test_a_successor_deletes_what_is_left() -> None:
    """It does not know which replicas are gone, and has all of them deleted once more."""
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    office.brokers[1].refuses_deletion = True
    await office.delete("t")
    office.brokers[1].refuses_deletion = False
    await office.take_office(1)
    assert not await is_there(office, "t")
    assert office.brokers[0].deleted == [T0, T0]
    assert office.brokers[1].deleted == [T0]
    await office.check()


@runs
async def test_a_topic_that_goes_gets_neither_partitions_nor_leaders() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.die(1)
    await office.delete("t")
    await office.extend("t", (0,))
    assert TopicPartition("t", 1) not in office.knowledge.leaderships
    assert await office.term.balance.elect_preferred([T0]) == {
        T0: ErrorCode.INVALID_TOPIC_EXCEPTION
    }
    assert await office.term.balance.elect_unclean([T0]) == {T0: ErrorCode.INVALID_TOPIC_EXCEPTION}


@runs
async def test_a_topic_that_goes_holds_back_no_shutdown() -> None:
    office = await Office().open(0, 1, 2)
    await office.create("t", (0, 1, 2))
    await grant(office, T0, 0)
    await office.die(2)
    await office.delete("t")
    assert await office.term.controlled_shutdown(0, -1) == []


@runs
async def test_where_topics_are_not_deleted_a_node_only_loses_its_request() -> None:
    office = Office()
    office.deletes_topics = False
    await office.open(0, 1)
    await office.create("t", (0, 1))
    office.letters.clear()
    await office.delete("t")
    await office.delete("none")
    assert await office.tree.children(nodes.DELETE_TOPICS) == []
    assert await is_there(office, "t")
    assert not office.letters, "nobody was told of anything"
    assert office.brokers[0].leads() == {T0}
    await office.check()
    # More partitions, and another move of its leader, as of any topic.
    await office.extend("t", (1, 0))
    assert office.brokers[1].leads() == {TopicPartition("t", 1)}


@runs
async def test_a_successor_that_does_not_delete_topics_keeps_what_is_left() -> None:
    office = await Office().open(0, 1)
    await office.create("t", (0, 1))
    await office.die(1)
    await office.delete("t")
    assert await office.tree.children(nodes.DELETE_TOPICS) == ["t"], "it waits for broker 1"
    office.deletes_topics = False
    await office.take_office()
    assert await office.tree.children(nodes.DELETE_TOPICS) == []
    back = await office.come(1)
    assert await is_there(office, "t")
    assert not back.deleted
    assert not office.brokers[0].deleted
    assert back.metadata[T0].leader == 0
    await office.check()
