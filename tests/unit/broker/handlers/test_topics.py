"""Topics as clients make, extend, delete and find them: one error code for every mistake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    metadata,
    produce,
    values_of,
)

from barnabas.coordination.contract import Coordination
from barnabas.metadata.tree_schema import DELETE_TOPICS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def create(wire: Wire, version: int = 7, dry_run: bool = False, **fields: Any) -> Any:
    """Try to create one topic and return its result."""
    topic = CreatableTopic(**{"num_partitions": 1, "replication_factor": 1, **fields})
    (result,) = wire.ask(CreateTopicsRequest(topics=[topic], validate_only=dry_run), version).topics
    assert result.name == fields["name"]
    return result


def extend(wire: Wire, dry_run: bool = False, **fields: Any) -> Any:
    """Try to extend one topic and return its result."""
    topic = CreatePartitionsTopic(**{"assignments": None, **fields})
    (result,) = wire.ask(CreatePartitionsRequest(topics=[topic], validate_only=dry_run), 3).results
    return result


def delete(wire: Wire, version: int = 6, **fields: Any) -> Any:
    """Try to delete one topic and return its result."""
    request = (
        DeleteTopicsRequest(topics=[DeleteTopicState(**fields)], timeout_ms=60_000)
        if version >= 6
        else DeleteTopicsRequest(topic_names=[fields["name"]], timeout_ms=60_000)
    )
    (result,) = wire.ask(request, version).responses
    return result


BAD_NAMES = ["", ".", "..", "x" * 250, "späße", "a b", "a/b", "a\0b", "a:b", "💥"]


class TestCreateTopics:
    def test_answers_with_what_was_made(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """v5 and later tell counts and configs, v7 the id."""
        config = CreatableTopicConfig(name="retention.ms", value="1234")
        result = create(wire, name=(name := new_name()), num_partitions=3, configs=[config])
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {c.name: c.value for c in result.configs}["retention.ms"] == "1234"
        (topic,) = metadata(wire, name).topics
        assert topic.topic_id == result.topic_id != ZERO_UUID
        assert len(topic.partitions) == 3

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_bad_names(self, wire: Wire, name: str) -> None:
        """A name that cannot be a directory, a metric or a path is refused."""
        result = create(wire, name=name)
        assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert result.error_message

    def test_longest_name(self, wire: Wire) -> None:
        """249 characters are allowed, and their log directory can be made."""
        assert create(wire, name="x" * 249).error_code == 0
        assert produce(wire, "x" * 249, batch_of(["a"])).error_code == 0

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
            ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
            ({"num_partitions": 2**31 - 1}, ErrorCode.INVALID_PARTITIONS),
            ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
            (
                {"configs": [CreatableTopicConfig(name="no.such", value="1")]},
                ErrorCode.INVALID_CONFIG,
            ),
            (
                {"configs": [CreatableTopicConfig(name="retention.ms", value="soon")]},
                ErrorCode.INVALID_CONFIG,
            ),
            (
                {"configs": [CreatableTopicConfig(name="retention.ms", value=None)]},
                ErrorCode.INVALID_CONFIG,
            ),
        ],
    )
    def test_bad_fields(
        self, wire: Wire, new_name: Callable[[], str], fields: dict[str, Any], code: ErrorCode
    ) -> None:
        """What cannot be met is refused, with a reason, and nothing is made."""
        for dry_run in (True, False):
            result = create(wire, name=(name := new_name()), dry_run=dry_run, **fields)
            assert result.error_code == code
            assert result.error_message
            assert metadata(wire, name).topics[0].error_code == 3

    @pytest.mark.parametrize(
        ("assignment", "code"),
        [
            ({0: [0], 1: [0]}, ErrorCode.NONE),
            ({1: [0]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({0: [0], 2: [0]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({0: []}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({0: [0, 0]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({0: [7]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ],
    )
    def test_assignments(
        self,
        wire: Wire,
        new_name: Callable[[], str],
        assignment: dict[int, list[int]],
        code: ErrorCode,
    ) -> None:
        """An assignment by hand names consecutive partitions, each on live brokers, once."""
        entries = [
            CreatableReplicaAssignment(partition_index=p, broker_ids=b)
            for p, b in assignment.items()
        ]
        result = create(
            wire, name=new_name(), num_partitions=-1, replication_factor=-1, assignments=entries
        )
        assert result.error_code == code
        mixed = create(wire, name=new_name(), assignments=entries)
        assert mixed.error_code == ErrorCode.INVALID_REQUEST

    def test_existing_and_colliding(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """A name is taken once; '.' and '_' make the same metric name."""
        name = new_name() + ".x"
        assert create(wire, name=name).error_code == 0
        assert create(wire, name=name).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        collision = create(wire, name=name.replace(".", "_"))
        assert collision.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_named_twice(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """A topic named twice is not made; its neighbour is."""
        twice, once = new_name(), new_name()
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            for name in (twice, once, twice)
        ]
        results = wire.ask(CreateTopicsRequest(topics=topics), 7).topics
        assert {each.name: each.error_code for each in results} == {twice: 42, once: 0}

    def test_dry_run(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """validate_only tells what would happen, and nothing does."""
        name = new_name()
        assert create(wire, name=name, dry_run=True).error_code == 0
        assert metadata(wire, name).topics[0].error_code == 3

    def test_defaults(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """-1 stands for the broker's own numbers."""
        result = create(wire, name=new_name(), num_partitions=-1, replication_factor=-1)
        assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 1, 1)


class TestCreatePartitions:
    def test_extends(self, wire: Wire, topic: str) -> None:
        """New partitions can be used at once; the old ones keep their records."""
        produce(wire, topic, batch_of(["kept"]))
        assert extend(wire, name=topic, count=3).error_code == 0
        assert len(metadata(wire, topic).topics[0].partitions) == 3
        assert produce(wire, topic, batch_of(["x"]), partition=2).error_code == 0
        assert fetch(wire, topic).high_watermark == 1

    @pytest.mark.parametrize("count", [1, 0, -1, 2**31 - 1])
    def test_bad_counts(self, wire: Wire, topic: str, count: int) -> None:
        """Partitions only become more, and not absurdly many."""
        assert extend(wire, name=topic, count=count).error_code == ErrorCode.INVALID_PARTITIONS

    @pytest.mark.parametrize("brokers", [[[0], [0]], [[7]], [[]], [[0, 0]]])
    def test_bad_assignments(self, wire: Wire, topic: str, brokers: list[list[int]]) -> None:
        """As many assignments as new partitions, each on live brokers, once."""
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in brokers]
        result = extend(wire, name=topic, count=2, assignments=assignments)
        assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    def test_unknown_twice_dry(self, wire: Wire, topic: str) -> None:
        """No such topic; a topic named twice; a dry run."""
        assert extend(wire, name="nowhere", count=2).error_code == 3
        twice = [CreatePartitionsTopic(name=topic, count=2, assignments=None)] * 2
        results = wire.ask(CreatePartitionsRequest(topics=twice), 3).results
        assert {each.error_code for each in results} == {42}
        assert extend(wire, name=topic, count=2, dry_run=True).error_code == 0
        assert len(metadata(wire, topic).topics[0].partitions) == 1


class TestDeleteTopics:
    @pytest.mark.parametrize("version", range(7))
    def test_deletes(self, wire: Wire, new_name: Callable[[], str], version: int) -> None:
        """A deleted topic is gone at once; its name can be used again, and starts empty."""
        topic_id = create_topic(wire, name := new_name())
        produce(wire, name, batch_of(["old"]))
        result = delete(wire, version, name=name)
        assert (result.error_code, result.name) == (0, name)
        if version >= 6:
            assert result.topic_id == topic_id
        assert delete(wire, version, name=name).error_code == 3
        create_topic(wire, name)
        assert fetch(wire, name).high_watermark == 0

    def test_what_may_not_be_seen_is_not_created(
        self, serving: Serving, wire: Wire, new_name: Callable[[], str]
    ) -> None:
        """Who may create every topic, but not see this one, learns nothing and changes nothing."""
        name = new_name()
        allowing = serving.broker.authorizer
        serving.broker.authorizer = MayNotDescribe()
        try:
            (hidden,) = metadata(wire, name, create=True).topics
        finally:
            serving.broker.authorizer = allowing
        assert hidden.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert serving.broker.cluster.topic(name) is None

    def test_by_id(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """From v6 on an id does as well as a name, but not both."""
        topic_id = create_topic(wire, name := new_name())
        assert delete(wire, name=name, topic_id=topic_id).error_code == ErrorCode.INVALID_REQUEST
        result = delete(wire, topic_id=topic_id)
        assert (result.error_code, result.name, result.topic_id) == (0, name, topic_id)
        gone = delete(wire, topic_id=topic_id)
        assert (gone.error_code, gone.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)

    def test_twice(self, wire: Wire, topic: str) -> None:
        """The second mention of a topic is a mistake."""
        request = DeleteTopicsRequest(topic_names=[topic, topic], timeout_ms=60_000)
        codes = [each.error_code for each in wire.ask(request, 5).responses]
        assert sorted(codes) == [0, 42]

    def test_disabled(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """delete.topic.enable=false is told, by a code that the client's version knows."""
        options = {"delete.topic.enable": "false"}
        with (
            Serving(tmp_path_factory.mktemp("kept"), options) as kept,
            kept.connect() as wire,
        ):
            create_topic(wire, "t")
            assert delete(wire, 2, name="t").error_code == ErrorCode.INVALID_REQUEST
            assert delete(wire, 3, name="t").error_code == ErrorCode.TOPIC_DELETION_DISABLED
            assert metadata(wire, "t").topics[0].error_code == 0

    def test_disabled_in_the_tree_too(self, tmp_path: Path) -> None:
        """A node that somebody writes is removed, with a line, and deletes nothing."""
        node = f"{DELETE_TOPICS}/t"
        with (
            Serving(tmp_path, {"delete.topic.enable": "false"}) as kept,
            kept.connect() as wire,
        ):
            create_topic(wire, "t")
            produce(wire, "t", batch_of(["kept"]))
            tree, loop = kept.broker.tree, kept.broker.loop
            asyncio.run_coroutine_threadsafe(tree.create(node), loop).result(60)
            kept.expect_line(f"topic t not deleted, removing {node}: delete.topic.enable=false")
            gone = asyncio.run_coroutine_threadsafe(until_gone(tree, node), loop)
            gone.result(60)
            assert metadata(wire, "t").topics[0].error_code == 0
            assert values_of(fetch(wire, "t")) == [b"kept"]
            produce(wire, "t", batch_of(["and more"]))


async def until_gone(tree: Coordination, path: str) -> None:
    gone = asyncio.Event()
    while await tree.exists(path, lambda _: gone.set()) is not None:
        await gone.wait()
        gone.clear()


class MayNotDescribe:
    """An authorizer that allows all but looking."""

    def allows(
        self, principal: object, host: str, operation: Operation, kind: object, name: str
    ) -> bool:
        return operation is not Operation.DESCRIBE

    def allows_any(self, *_: object) -> bool:
        return True


class TestMetadata:
    @pytest.mark.parametrize("version", range(14))
    def test_all_topics(self, serving: Serving, wire: Wire, topic: str, version: int) -> None:
        """v0 asks for all by an empty list, others by null; then empty means none."""
        everything = MetadataRequest(topics=[] if version == 0 else None)
        response = wire.ask(everything, version)
        (found,) = [each for each in response.topics if each.name == topic]
        (partition,) = found.partitions
        assert (partition.leader_id, partition.isr_nodes, partition.replica_nodes) == (0, [0], [0])
        (broker,) = response.brokers
        assert (broker.node_id, broker.host, broker.port) == (0, *serving.address)
        if version >= 1:
            assert response.controller_id == 0
            assert wire.ask(MetadataRequest(topics=[]), version).topics == []
        if version >= 2:
            assert len(response.cluster_id) == 22
        if version >= 7:
            assert partition.leader_epoch == 0

    @pytest.mark.parametrize(
        ("name", "option"),
        [
            ("__consumer_offsets", "offsets.topic.num.partitions"),
            ("__transaction_state", "transaction.state.log.num.partitions"),
        ],
    )
    def test_internal_topics_are_made_as_their_coordinators_need_them(
        self, tmp_path: Path, name: str, option: str
    ) -> None:
        """Whoever looks at one first must not decide how many partitions it has."""
        with Serving(tmp_path, {option: 7}) as serving, serving.connect() as wire:
            (topic,) = metadata(wire, name, create=True).topics
            assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 7)
            overrides = serving.inside(lambda: serving.broker.configs.overrides_of(name))
            assert overrides["cleanup.policy"] == "compact"

    def test_automatic_creation(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """A topic is made on demand, if the client allows it, and is in the same answer."""
        name = new_name()
        assert metadata(wire, name).topics[0].error_code == 3
        (created,) = metadata(wire, name, create=True).topics
        assert (created.error_code, len(created.partitions)) == (0, 1)
        assert produce(wire, name, batch_of(["x"])).error_code == 0
        old = MetadataRequest(topics=[MetadataRequestTopic(name=new_name())])
        assert wire.ask(old, 0).topics[0].error_code == 0, "v0 to v3 always allow it"

    @pytest.mark.parametrize("name", BAD_NAMES)
    @pytest.mark.parametrize("create", [False, True])
    def test_bad_names(self, wire: Wire, name: str, create: bool) -> None:
        """They are told apart from names that merely do not exist."""
        (topic,) = metadata(wire, name, create=create).topics
        assert (topic.error_code, topic.name) == (ErrorCode.INVALID_TOPIC_EXCEPTION, name)

    def test_creation_not_allowed_here(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """auto.create.topics.enable=false holds whatever the client says."""
        options = {"auto.create.topics.enable": "false"}
        with (
            Serving(tmp_path_factory.mktemp("fixed"), options) as fixed,
            fixed.connect() as wire,
        ):
            assert metadata(wire, "t", create=True).topics[0].error_code == 3

    def test_by_id(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """v12 asks by id; an unknown one has its own code and no name."""
        topic_id = create_topic(wire, name := new_name())
        wanted = [
            MetadataRequestTopic(topic_id=topic_id, name=None),
            MetadataRequestTopic(topic_id=b"u" * 16, name=None),
        ]
        found, unknown = wire.ask(MetadataRequest(topics=wanted), 12).topics
        assert (found.error_code, found.name) == (0, name)
        assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
        assert unknown.topic_id == b"u" * 16

    def test_allowed_operations(self, wire: Wire, topic: str) -> None:
        """An open cluster allows everything; who does not ask is told nothing."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)],
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        response = wire.ask(request, 8)
        assert response.topics[0].topic_authorized_operations == 0b1101_1111_1000
        assert response.cluster_authorized_operations == 0b1_1111_1010_0000
        assert metadata(wire, topic).topics[0].topic_authorized_operations == -(2**31)


class TestDescribeTopicPartitions:
    def pages(self, wire: Wire, names: list[str], limit: int) -> list[list[tuple[str, int]]]:
        """Return all pages of topics, as (name, partition)."""
        pages, cursor = [], None
        while True:
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names],
                response_partition_limit=limit,
                cursor=cursor,
            )
            response = wire.ask(request, 0)
            pages.append(
                [
                    (topic.name, partition.partition_index)
                    for topic in response.topics
                    for partition in topic.partitions
                ]
            )
            cursor = response.next_cursor
            if cursor is None:
                return pages

    def test_pages(self, wire: Wire, new_name: Callable[[], str]) -> None:
        """Every limit gives the same partitions in the same order, no page above the limit."""
        names = sorted(f"{new_name()}-page" for _ in range(3))
        for name, count in zip(names, (3, 1, 2), strict=True):
            create_topic(wire, name, count)
        everything = [(names[0], n) for n in range(3)]
        everything += [(names[1], 0), (names[2], 0), (names[2], 1)]
        for limit in range(1, 8):
            pages = self.pages(wire, names[::-1], limit)
            assert [entry for page in pages for entry in page] == everything
            assert all(len(page) <= limit for page in pages)

    def test_all_topics(self, wire: Wire, topic: str) -> None:
        """No names ask for every topic."""
        response = wire.ask(DescribeTopicPartitionsRequest(), 0)
        assert topic in [each.name for each in response.topics]
        assert [each.name for each in response.topics] == sorted(
            each.name for each in response.topics
        )

    def test_errors(self, wire: Wire, topic: str) -> None:
        """Unknown and impossible names have their codes; a negative cursor is a bad request."""
        wanted = [TopicRequest(name="nowhere"), TopicRequest(name="..")]
        response = wire.ask(DescribeTopicPartitionsRequest(topics=wanted), 0)
        assert {each.name: each.error_code for each in response.topics} == {"nowhere": 3, "..": 17}
        bad = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=topic)], cursor=Cursor(topic_name=topic, partition_index=-1)
        )
        assert wire.ask(bad, 0).topics[0].error_code == ErrorCode.INVALID_REQUEST


def test_many_changes_at_once(serving: Serving, new_name: Callable[[], str]) -> None:
    """Twenty connections that create, extend and delete at the same time get their own answers."""
    wires = [serving.connect() for _ in range(20)]
    names = [new_name() for _ in wires]
    for wire, name in zip(wires, names, strict=True):
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        wire.send(CreateTopicsRequest(topics=[topic]), 7)
        bigger = CreatePartitionsTopic(name=name, count=2, assignments=None)
        wire.send(CreatePartitionsRequest(topics=[bigger]), 3)
        wire.send(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000), 6)
    for wire, name in zip(wires, names, strict=True):
        _, created = wire.receive(CreateTopicsRequest, 7)
        assert [(each.name, each.error_code) for each in created.topics] == [(name, 0)]
        _, extended = wire.receive(CreatePartitionsRequest, 3)
        assert [(each.name, each.error_code) for each in extended.results] == [(name, 0)]
        _, deleted = wire.receive(DeleteTopicsRequest, 6)
        assert [(each.name, each.error_code) for each in deleted.responses] == [(name, 0)]
        wire.socket.close()
    serving.expect_no_lines()
