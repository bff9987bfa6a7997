"""One program, run with kafka-python's admin client and with ours: what it sees is the same.

Each client has topics and groups of its own on one broker; ids, sizes and words of errors differ.
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import barnabas.admin
import barnabas.errors
from barnabas.blocking.admin import KafkaAdminClient
from barnabas.structs import OffsetAndMetadata, TopicPartition
from barnabas.wire.apis import OWN_KEYS_FROM

with warnings.catch_warnings():  # while it is loaded; it reads its schemas in an old way
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    import kafka.admin
    import kafka.errors

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Side:
    """One of the two libraries, with a client of it."""

    def __init__(self, admin: Any, words: ModuleType, errors: ModuleType, structs: Any) -> None:
        self.admin = admin
        self.words = words
        self.errors = errors
        self.structs = structs

    def raised_by(self, work: Callable[[], Any]) -> str:
        """Return the name of the class of what some work raises, as kafka-python has it."""
        with pytest.raises(self.errors.KafkaError) as caught:
            work()
        return type(caught.value).__name__


class Ours:
    TopicPartition = TopicPartition
    OffsetAndMetadata = OffsetAndMetadata


@pytest.fixture
def sides(barnabas_bootstrap: str) -> Iterator[list[Side]]:
    with (
        kafka.KafkaAdminClient(bootstrap_servers=barnabas_bootstrap) as theirs,
        KafkaAdminClient(bootstrap_servers=barnabas_bootstrap) as ours,
    ):
        yield [
            Side(theirs, kafka.admin, kafka.errors, kafka),
            Side(ours, barnabas.admin, barnabas.errors, Ours),
        ]


def plain(value: Any) -> Any:
    """Return a value without what differs between two runs, and with classes by their names."""
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in value.items() if key != "is_cordoned"}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__, tuple(plain(each) for each in value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    if isinstance(value, type):
        return value.__name__
    return "id" if UUID.fullmatch(str(value)) else value


def same(sides: list[Side], program: Callable[[Side], Any]) -> Any:
    """Run a program on both sides, hold the answers against each other and return them."""
    theirs, ours = (plain(program(side)) for side in sides)
    assert ours == theirs
    return ours


def named(side: Side, topic: str) -> str:
    """Return a topic of one side; `own` takes the side's name out of its answers."""
    return f"{side.words.__name__.partition('.')[0]}-{topic}"


def own(side: Side, answer: Any, topic: str) -> Any:
    return eval(repr(plain(answer)).replace(named(side, topic), topic))


def test_the_life_of_a_topic(sides: list[Side]) -> None:
    def program(side: Side) -> Any:
        topic = named(side, "life")
        new = side.words.NewTopic(topic, 2, 1, topic_configs={"retention.ms": "5"})
        answers = [side.admin.create_topics([new])]
        answers += [side.admin.describe_topics([topic, "missing"])]
        side.admin.create_partitions({topic: 3})
        answers += [side.admin.describe_topic_partitions([topic], 2)]
        answers += [topic in side.admin.list_topics()]
        refusals = [
            lambda: side.admin.create_topics([new]),
            lambda: side.admin.create_topics(["no/slash"]),
            lambda: side.admin.create_partitions({topic: 1}),
            lambda: side.admin.delete_topics(["missing"]),
            lambda: side.admin.delete_records({side.structs.TopicPartition("missing", 0): 1}),
            lambda: side.admin.delete_records({side.structs.TopicPartition(topic, 0): 9}),
        ]
        answers += [side.raised_by(each) for each in refusals]
        answers += [side.admin.delete_records({side.structs.TopicPartition(topic, 0): 0})]
        answers += [side.admin.delete_topics([topic])]
        return own(side, answers, "life")

    answers = same(sides, program)
    assert answers[4] == "TopicAlreadyExistsError"


def test_topics_by_id_and_by_dict(sides: list[Side]) -> None:
    def program(side: Side) -> Any:
        topic = named(side, "by-id")
        side.admin.create_topics({topic: {"num_partitions": 1}}, wait_for_metadata=True)
        [described] = side.admin.describe_topics([topic])
        topic_id = uuid.UUID(described["topic_id"])
        [again] = side.admin.describe_topics([topic_id])
        assert again == described
        deleted = side.admin.delete_topics([topic_id])
        [gone] = side.admin.describe_topics([topic_id])
        return own(side, [described, deleted, gone["error_code"]], "by-id")

    assert same(sides, program)[2] == 100


def test_options(sides: list[Side]) -> None:
    def program(side: Side) -> Any:
        topic = named(side, "options")
        side.admin.create_topics([side.words.NewTopic(topic, 1, 1)])
        resource = side.words.ConfigResource
        answers = [
            side.admin.alter_configs([resource("TOPIC", topic, {"retention.ms": "7"})]),
            side.admin.describe_configs([resource("TOPIC", topic)], include_synonyms=True),
            side.admin.describe_configs(
                [resource("topic", topic, ["cleanup.policy"])], config_filter="all"
            ),
            side.admin.alter_configs(
                [resource("topic", topic, {"cleanup.policy": ("APPEND", "compact")})]
            ),
            side.admin.describe_configs([resource("topic", topic)]),
            side.admin.reset_configs([resource("topic", topic, ["retention.ms"])]),
            side.admin.describe_configs([resource("topic", topic)]),
            side.admin.describe_configs([resource("broker", "0")]),
        ]
        with pytest.raises(ValueError, match=r"no\.such"):
            side.admin.alter_configs([resource("TOPIC", topic, {"no.such": "7"})])
        return own(side, answers, "options")

    assert same(sides, program)[0] == {"topic": {"options": "OK"}}


def test_groups_and_offsets(sides: list[Side]) -> None:
    def program(side: Side) -> Any:
        topic = named(side, "grouped")
        group = named(side, "group")
        side.admin.create_topics([side.words.NewTopic(topic, 2, 1)])
        first = side.structs.TopicPartition(topic, 0)
        second = side.structs.TopicPartition(topic, 1)
        missing = side.structs.TopicPartition("missing", 0)
        spec = side.words.OffsetSpec
        offset = side.structs.OffsetAndMetadata
        answers = [
            side.admin.alter_group_offsets(
                group, {first: offset(0, "m", -1), missing: offset(1, "", -1)}
            ),
            [each for each in side.admin.list_groups() if each["group_id"] == group],
            side.admin.describe_groups([group]),
            side.admin.list_group_offsets(group),
            side.admin.list_group_offsets({group: [first, second]}),
            side.admin.reset_group_offsets(group, {second: spec.LATEST}),
            side.admin.list_partition_offsets({first: spec.EARLIEST, second: spec.LATEST}),
            side.admin.list_partition_offsets({second: spec.MAX_TIMESTAMP})[second].offset,
            side.admin.delete_group_offsets(group, [first]),
            side.admin.list_group_offsets([group]),
            side.admin.delete_groups([group, "missing"]),
            side.admin.list_groups(states_filter=["stable"]),
            side.admin.list_transactions(),
            side.admin.describe_producers([first]),
            side.raised_by(lambda: side.admin.describe_transactions(["missing"])),
        ]
        for each in answers[2].values():
            each["authorized_operations"].sort()
        return own(side, own(side, answers, "grouped"), "group")

    answers = same(sides, program)
    assert answers[10] == {"group": "OK", "missing": "GroupIdNotFoundError"}


def test_the_cluster(sides: list[Side]) -> None:
    def program(side: Side) -> Any:
        return [
            side.admin.describe_cluster(),
            side.admin.describe_features(),
            side.admin.list_partition_reassignments(),
            {
                int(key): tuple(each)
                for key, each in side.admin.api_versions().items()
                if int(key) < OWN_KEYS_FROM  # the others are shown to our own kind
            },
            [each["broker"] for each in side.admin.describe_log_dirs()],
            sorted(side.admin.list_config_resources(["BROKER"])),
        ]

    assert same(sides, program)[0]["controller_id"] == 0


def test_log_directories_and_elections(sides: list[Side]) -> None:
    def program(side: Side) -> Any:
        topic = named(side, "dirs")
        side.admin.create_topics([side.words.NewTopic(topic, 1, 1)])
        [answer] = side.admin.describe_log_dirs({topic: [0]})
        for directory in answer["log_dirs"]:
            del directory["usable_bytes"]
        elected = side.admin.elect_leaders(0, {topic: [0]})
        [result] = elected.replica_election_results
        [partition] = result.partition_result
        place = {(topic, 0, 0): answer["log_dirs"][0]["log_dir"]}
        moved = side.admin.alter_replica_log_dirs(place)
        return own(
            side,
            [answer, result.topic, partition.partition_id, partition.error_code, moved],
            "dirs",
        )

    assert same(sides, program)[3] == 84
