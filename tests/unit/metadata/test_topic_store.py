"""Topics as nodes: what is written, what is refused, and that a clash leaves nothing behind."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence

import pytest
from tests.unit.controller.trees import prepared

from barnabas.coordination.contract import Create, Operation, Result, Set
from barnabas.coordination.memory import MemoryCoordination
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView, ClusterView, TopicView
from barnabas.metadata.topic_store import NewTopic, TopicStore
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import ZERO_UUID


class Desk:
    """A store over a tree in memory, for a cluster of some brokers."""

    def __init__(self, tree: MemoryCoordination, racks: Sequence[str | None]) -> None:
        self.tree = tree
        self.cluster = ClusterView()
        for number, rack in enumerate(racks):
            self.cluster.brokers[number] = BrokerView(number, {}, rack)
        ids = itertools.count(1)
        self.store = TopicStore(
            tree,
            self.cluster,
            lambda size: next(ids).to_bytes(size, "big") if size > 2 else bytes(size),
        )

    @classmethod
    async def open(cls, racks: Sequence[str | None] = (None, None, None)) -> Desk:
        return cls(await prepared(), racks)

    async def assignment(self, topic: str) -> nodes.TopicAssignment:
        path = nodes.topic_path(topic)
        return nodes.TopicAssignment.decode(path, (await self.tree.get(path))[0])

    def refusal(self, topic: NewTopic, *others: str) -> ErrorCode | None:
        try:
            self.store.check(topic, others)
        except RequestError as refusal:
            return refusal.code
        return None


def test_a_topic_is_its_configs_and_its_assignment() -> None:
    async def story() -> None:
        desk = await Desk.open()
        ids = await desk.store.create([NewTopic("t", 2, 3, configs={"retention.ms": "5"})])
        node = await desk.assignment("t")
        assert node.replicas == {0: (0, 1, 2), 1: (1, 2, 0)}
        assert node.topic_id == ids["t"] != ZERO_UUID
        data, _ = await desk.tree.get("/config/topics/t")
        assert data == b'{"version":1,"config":{"retention.ms":"5"}}'
        assert await desk.tree.exists(nodes.partitions_path("t")) is None, "the controller's"

    asyncio.run(story())


def test_a_given_id_and_assignment_are_kept() -> None:
    async def story() -> None:
        desk = await Desk.open()
        given = bytes(15) + b"\x07"
        ids = await desk.store.create(
            [NewTopic("t", 1, -1, {0: [2, 1]}, topic_id=given), NewTopic("u", 1, 1)]
        )
        assert ids["t"] == given != ids["u"]
        assert (await desk.assignment("t")).replicas == {0: (2, 1)}

    asyncio.run(story())


def test_replicas_are_spread_over_racks() -> None:
    async def story() -> None:
        desk = await Desk.open(("a", "a", "b"))
        await desk.store.create([NewTopic("t", 6, 2)])
        for replicas in (await desk.assignment("t")).replicas.values():
            assert {desk.cluster.brokers[broker].rack for broker in replicas} == {"a", "b"}

    asyncio.run(story())


def test_a_partition_with_older_records_begins_without_a_leader() -> None:
    """Its first election then goes on from the epoch before."""

    async def story() -> None:
        desk = await Desk.open()
        await desk.store.create([NewTopic("t", 2, 1, leader_epochs={1: 7})])
        path = nodes.state_path("t", 1)
        state = nodes.PartitionState.decode(path, (await desk.tree.get(path))[0])
        assert (state.leader, state.leader_epoch, state.isr) == (-1, 6, (1,))
        assert await desk.tree.exists(nodes.state_path("t", 0)) is None

    asyncio.run(story())


def test_configs_that_a_deletion_left_are_replaced() -> None:
    async def story() -> None:
        desk = await Desk.open()
        await desk.tree.create("/config/topics/t", b'{"version":1,"config":{"old":"1"}}')
        await desk.store.create([NewTopic("t", 1, 1)])
        assert (await desk.tree.get("/config/topics/t"))[0] == b'{"version":1,"config":{}}'

    asyncio.run(story())


def test_creation_is_all_or_none() -> None:
    async def story() -> None:
        desk = await Desk.open()
        await desk.tree.create(nodes.topic_path("b"))
        with pytest.raises(RequestError, match="'b'") as refusal:
            await desk.store.create([NewTopic("a", 1, 1), NewTopic("b", 1, 1)])
        assert refusal.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert await desk.tree.exists(nodes.topic_path("a")) is None
        assert await desk.tree.exists("/config/topics/a") is None

    asyncio.run(story())


def test_many_large_topics_take_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ZooKeeper server ends the connection where a request is larger than a mebibyte."""

    async def story() -> None:
        desk = await Desk.open()
        sizes: list[int] = []
        multi = desk.tree.multi

        async def measured(operations: Sequence[Operation]) -> list[Result]:
            written = [each for each in operations if isinstance(each, Create | Set)]
            sizes.append(sum(len(each.path) + len(each.data) for each in written))
            return await multi(operations)

        monkeypatch.setattr(desk.tree, "multi", measured)
        topics = [NewTopic(f"t{number}", 10_000, 3) for number in range(12)]
        await desk.store.create(topics)
        assert len(sizes) > 1
        assert max(sizes) < 1_000_000
        for topic in topics:
            assert len((await desk.assignment(topic.name)).replicas) == 10_000
        sizes.clear()
        await desk.store.create([NewTopic(f"small-{number}", 1, 1) for number in range(100)])
        assert len(sizes) == 1

    asyncio.run(story())


def test_more_partitions_than_a_node_can_name_are_refused() -> None:
    async def story() -> None:
        desk = await Desk.open()
        with pytest.raises(
            RequestError, match=r"topic 'big': the assignment of 70000 partitions .*1000000"
        ) as met:
            await desk.store.create([NewTopic("big", 70_000, 3)])
        assert met.value.code is ErrorCode.INVALID_PARTITIONS
        assert await desk.tree.exists(nodes.topic_path("big")) is None
        await desk.store.create([NewTopic("t", 1, 3)])
        with pytest.raises(RequestError, match="'t': the assignment of 70000 partitions") as met:
            await desk.store.extend("t", 70_000, {}, dry_run=True)
        assert met.value.code is ErrorCode.INVALID_PARTITIONS

    asyncio.run(story())


def test_without_brokers_nothing_is_created() -> None:
    async def story() -> None:
        desk = await Desk.open(())
        with pytest.raises(RequestError) as refusal:
            await desk.store.create([NewTopic("t", 1, 1)])
        assert refusal.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    asyncio.run(story())


@pytest.mark.parametrize(
    ("topic", "others", "code"),
    [
        (NewTopic("t", 1, 3), (), None),
        (NewTopic("t", 1, -1, {0: [2, 1]}), (), None),
        (NewTopic("a.b", 1, 1), (), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("a_b", 1, 1), (), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x_y", 1, 1), ("x.y",), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("no/slash", 1, 1), (), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("t", 1, 4), (), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 0), (), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 0, 1), (), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", 1, -1, {0: [9]}), (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", 1, -1, {1: [1]}), (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_checks(topic: NewTopic, others: tuple[str, ...], code: ErrorCode | None) -> None:
    async def story() -> None:
        desk = await Desk.open()
        desk.cluster.put_topic(TopicView("a.b", bytes(15) + b"\x01", ()))
        assert desk.refusal(topic, *others) is code

    asyncio.run(story())


def test_extension() -> None:
    """New partitions go on where the old ones ended; a dry run writes nothing."""

    async def story() -> None:
        desk = await Desk.open()
        ids = await desk.store.create([NewTopic("t", 1, 2)])
        await desk.store.extend("t", 3, {}, dry_run=True)
        assert sorted((await desk.assignment("t")).replicas) == [0]
        await desk.store.extend("t", 3, {}, dry_run=False)
        grown = await desk.assignment("t")
        assert grown.replicas == {0: (0, 1), 1: (1, 2), 2: (2, 0)}
        assert grown.topic_id == ids["t"]
        await desk.store.extend("t", 4, {3: [2, 1]}, dry_run=False)
        assert (await desk.assignment("t")).replicas[3] == (2, 1)

    asyncio.run(story())


def test_new_partitions_have_no_fewer_replicas_than_the_old_ones() -> None:
    """While a broker is away they wait, instead of being less safe than the topic promises."""

    async def story() -> None:
        desk = await Desk.open()
        await desk.store.create([NewTopic("t", 1, 3)])
        del desk.cluster.brokers[2]
        with pytest.raises(RequestError, match="3: must be at most 2, the live brokers") as refusal:
            await desk.store.extend("t", 2, {}, dry_run=False)
        assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert len((await desk.assignment("t")).replicas) == 1

    asyncio.run(story())


@pytest.mark.parametrize("numbers", [(), (1,), (0, 2)])
def test_a_node_that_somebody_changed_gets_no_more_partitions(numbers: tuple[int, ...]) -> None:
    async def story() -> None:
        desk = await Desk.open()
        ids = await desk.store.create([NewTopic("t", 1, 1)])
        changed = nodes.TopicAssignment(ids["t"], dict.fromkeys(numbers, (0,)))
        await desk.tree.set(nodes.topic_path("t"), changed.encode(), -1)
        with pytest.raises(RequestError, match="are not consecutive from 0") as refusal:
            await desk.store.extend("t", 4, {}, dry_run=False)
        assert refusal.value.code is ErrorCode.INVALID_PARTITIONS
        assert await desk.assignment("t") == changed

    asyncio.run(story())


@pytest.mark.parametrize(
    ("topic", "count", "assignment", "code"),
    [
        ("t", 2, {}, ErrorCode.INVALID_PARTITIONS),
        ("t", 1, {}, ErrorCode.INVALID_PARTITIONS),
        ("t", 100_001, {}, ErrorCode.INVALID_PARTITIONS),
        ("t", 4, {2: [1]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, {2: [9]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, {5: [1]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, {2: [1, 2]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("nowhere", 3, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("../ids", 3, {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("moving", 2, {}, ErrorCode.REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_impossible_extensions(
    topic: str, count: int, assignment: Mapping[int, Sequence[int]], code: ErrorCode
) -> None:
    async def story() -> None:
        desk = await Desk.open()
        await desk.store.create([NewTopic("t", 2, 1)])
        moving = nodes.TopicAssignment(bytes(15) + b"\x09", {0: [0, 1]}, {0: [1]}, {0: [0]})
        await desk.tree.create(nodes.topic_path("moving"), moving.encode())
        with pytest.raises(RequestError) as refusal:
            await desk.store.extend(topic, count, assignment, dry_run=False)
        assert refusal.value.code is code
        assert len((await desk.assignment("t")).replicas) == 2

    asyncio.run(story())


def test_a_topic_that_changed_meanwhile_is_not_overwritten() -> None:
    async def story() -> None:
        desk = await Desk.open()
        await desk.store.create([NewTopic("t", 1, 1)])
        read = desk.tree.get

        async def get_then_change(path: str, *rest: object) -> object:
            found = await read(path)
            await desk.tree.set(path, found[0])
            return found

        desk.tree.get = get_then_change  # type: ignore[assignment, method-assign]
        with pytest.raises(RequestError, match="changed concurrently"):
            await desk.store.extend("t", 2, {}, dry_run=False)

    asyncio.run(story())


def test_a_deletion_is_asked_for_once() -> None:
    async def story() -> None:
        desk = await Desk.open()
        for _ in range(2):
            await desk.store.request_deletion("t")
        assert await desk.tree.children(nodes.DELETE_TOPICS) == ["t"]

    asyncio.run(story())
