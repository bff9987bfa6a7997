"""`kafka-topics`: create, list, describe, alter and delete topics, as Kafka's tool does."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    ZOOKEEPER,
    Flag,
    Flags,
    Given,
    UsageError,
)
from barnabas.cli.kafka.tree import DEPRECATED
from barnabas.cli.session import run as run_session
from barnabas.model.errors import BarnabasError, InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition, uuid_text

if TYPE_CHECKING:
    from barnabas.admin.config_entries import ConfigEntry
    from barnabas.admin.reassignments import Reassignment
    from barnabas.admin.topics import NewTopic, TopicOutcome
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.client.metadata import PartitionView, TopicView

Eligible = dict[TopicPartition, tuple[tuple[int, ...] | None, tuple[int, ...] | None]]

FAILURE = "Error while executing topic command : "
FAILS_ON_STDOUT = True

ACTIONS = ("list", "describe", "create", "alter", "delete")
MIN_ISR = "min.insync.replicas"
OVERRIDES = "topics-with-overrides"
REPORTS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)
"""Of which partitions `--describe` prints only those that match one of them."""


def replica_lists(text: str) -> dict[int, list[int]]:
    """Parse `1:2,2:3`: the brokers of each partition."""
    placed: dict[int, list[int]] = {}
    for index, part in enumerate(text.split(",")):
        try:
            replicas = [int(number) for number in part.strip().split(":")]
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"partition {index}: {part!r} is not a list of broker ids like 1:2"
            ) from None
        if len(set(replicas)) < len(replicas):
            twice = ",".join(
                str(each) for each in dict.fromkeys(replicas) if replicas.count(each) > 1
            )
            raise InvalidValueError(
                f"Partition replica lists may not contain duplicate entries: {twice}"
            )
        if placed and len(replicas) != len(placed[0]):
            raise InvalidValueError(
                f"Partition {index} has different replication factor: {replicas}"
            )
        placed[index] = replicas
    return placed


def _all_but(*actions: str) -> tuple[str, ...]:
    return tuple(action for action in ACTIONS if action not in actions)


FLAGS = Flags(
    "Create, delete, describe, or change a topic.",
    (
        BOOTSTRAP,
        ZOOKEEPER,
        COMMAND_CONFIG,
        Flag("--list", help="list all topics"),
        Flag("--create", help="create a topic"),
        Flag("--delete", help="delete topics"),
        Flag("--alter", help="add partitions to topics"),
        Flag("--describe", help="show partitions, leaders and in-sync replicas"),
        Flag("--topic", "TOPIC", "the topic; a regular expression, except with --create"),
        Flag("--topic-id", "ID", "describe the topic with this id"),
        Flag("--config", "NAME=VALUE", "an option of the new topic; may be repeated", many=True),
        Flag(
            "--delete-config",
            "NAME",
            "remove an option of a topic",
            many=True,
            inert="use kafka-configs --delete-config",
        ),
        Flag(
            "--partitions", "N", "number of partitions (create: the broker's)", int, read_late=True
        ),
        Flag(
            "--replication-factor",
            "N",
            "replicas of each partition (default: the broker's)",
            int,
            read_late=True,
        ),
        Flag(
            "--replica-assignment",
            "1:2,2:3,...",
            "brokers of each partition",
            replica_lists,
            read_late=True,
        ),
        Flag("--under-replicated-partitions", help="only those with replicas that are not in sync"),
        Flag("--unavailable-partitions", help="only those without a leader"),
        Flag("--under-min-isr-partitions", help="only those below min.insync.replicas"),
        Flag("--at-min-isr-partitions", help="only those at min.insync.replicas"),
        Flag("--topics-with-overrides", help="only topics with options of their own"),
        Flag("--if-exists", help="a missing topic is not an error"),
        Flag("--if-not-exists", help="an existing topic is not an error"),
        Flag("--exclude-internal", help="without internal topics"),
        Flag("--force", help="no questions", inert="nothing is asked"),
        Flag(
            "--partition-size-limit-per-response",
            "N",
            "largest number of partitions in one response",
            int,
            inert="the broker's limit applies",
        ),
    ),
    one_of=(ACTIONS,),
    excludes={
        "bootstrap-server": ("zookeeper",),
        "config": _all_but("create"),
        "delete-config": _all_but("alter"),
        "partitions": _all_but("alter", "create"),
        "replication-factor": _all_but("create"),
        "replica-assignment": _all_but("alter", "create"),
        **dict.fromkeys(REPORTS, _all_but("describe")),
        OVERRIDES: (*_all_but("describe"), *REPORTS),
        "if-exists": _all_but("alter", "delete", "describe"),
        "if-not-exists": _all_but("create"),
        "exclude-internal": _all_but("list", "describe"),
    },
    needs={"create": ("topic",), "alter": ("topic", "partitions"), "delete": ("topic",)},
)


def run(given: Given) -> None:
    """Do what is asked for."""
    if "bootstrap-server" not in given and "zookeeper" not in given:
        raise UsageError("--bootstrap-server must be specified")
    if "create" in given and "replica-assignment" in given:
        for other in ("partitions", "replication-factor"):
            if other in given:
                raise UsageError(
                    f'Option "[replica-assignment]" can\'t be used with option "[{other}]"'
                )
    if "describe" in given and "if-exists" in given and not {"topic", "topic-id"} & {*given.values}:
        raise UsageError("--topic or --topic-id is required to describe a topic")
    new = _new_topic(given) if "create" in given else None
    pattern = _pattern(given)
    if "zookeeper" in given:
        print(DEPRECATED)

    async def work(client: ClusterClient) -> None:
        if new is not None:
            await _create(client, new, forgiving="if-not-exists" in given)
        elif "list" in given:
            found = await _matching(client, given, pattern)
            print("\n".join(topic.name for topic in found))
        elif "describe" in given:
            await _describe(client, given, pattern)
        elif "alter" in given:
            await _alter(client, given, pattern)
        else:
            await _delete(client, given, pattern)

    run_session(given.connection(), work)


# Create.


def _new_topic(given: Given) -> NewTopic:
    from barnabas.admin.topics import NewTopic

    configs: dict[str, str] = {}
    for text in given["config"]:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidValueError(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        configs[name.strip()] = value.strip()
    name = given["topic"]
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both."
        )
    replication, partitions = given["replication-factor"], given["partitions"]
    if replication is not None and not 1 <= replication <= 32767:
        raise InvalidValueError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise InvalidValueError("The partitions must be greater than 0")
    return NewTopic(name, partitions or -1, replication or -1, given["replica-assignment"], configs)


async def _create(client: ClusterClient, new: NewTopic, *, forgiving: bool) -> None:
    from barnabas.admin.topics import create_topics
    from barnabas.model.error_codes import ErrorCode

    [created] = await create_topics(client, [new])
    if created.error is None:
        print(f"Created topic {new.name}.")
    elif not (forgiving and created.error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
        raise created.error


# Which topics.


def _pattern(given: Given) -> re.Pattern[str] | None:
    """Return what names must match; `a,b` means either."""
    text = given["topic"]
    if text is None or "create" in given:
        return None
    text = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(text)
    except re.error as failure:
        invalid = InvalidValueError(f"{text} is an invalid regex.")
        invalid.add_note(str(failure))
        raise invalid from failure


async def _matching(
    client: ClusterClient, given: Given, pattern: re.Pattern[str] | None
) -> list[TopicView]:
    from barnabas.admin.topics import describe_topics

    return [
        topic
        for topic in await describe_topics(client, None)
        if (pattern is None or pattern.fullmatch(topic.name))
        and not (topic.internal and "exclude-internal" in given)
    ]


async def _existing(
    client: ClusterClient, given: Given, pattern: re.Pattern[str] | None
) -> list[TopicView]:
    """Return the topics that match; raise if there must be one."""
    found = await _matching(client, given, pattern)
    if not found and pattern is not None and "if-exists" not in given:
        raise NoSuchTopic(f"Topic '{given['topic']}' does not exist as expected")
    return found


class NoSuchTopic(BarnabasError):
    """No topic has the name or the id."""


# Alter and delete.


async def _alter(client: ClusterClient, given: Given, pattern: re.Pattern[str] | None) -> None:
    from barnabas.admin.topics import NewPartitions, create_partitions

    placed: dict[int, list[int]] = given["replica-assignment"] or {}
    counts = {
        topic.name: NewPartitions(
            given["partitions"],
            [replicas for index, replicas in placed.items() if index >= len(topic.partitions)]
            if placed
            else None,
        )
        for topic in await _existing(client, given, pattern)
    }
    _raise_first(await create_partitions(client, counts) if counts else [])


async def _delete(client: ClusterClient, given: Given, pattern: re.Pattern[str] | None) -> None:
    from barnabas.admin.topics import delete_topics

    names = [topic.name for topic in await _existing(client, given, pattern)]
    _raise_first(await delete_topics(client, names) if names else [])


def _raise_first(outcomes: Sequence[TopicOutcome]) -> None:
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


# Describe.


async def _describe(client: ClusterClient, given: Given, pattern: re.Pattern[str] | None) -> None:
    from barnabas.admin.config_entries import ConfigResourceType, Resource
    from barnabas.admin.configs import describe_resources
    from barnabas.admin.reassignments import list_partition_reassignments

    if "topic-id" in given:
        topics = await _with_id(client, given)
    else:
        topics = await _existing(client, given, pattern)
    described = await describe_resources(
        client, {Resource(ConfigResourceType.TOPIC, topic.name): None for topic in topics}
    )
    configs = {resource.name: entries for resource, entries in described.items()}
    partitions = [
        TopicPartition(topic.name, index) for topic in topics for index in topic.partitions
    ]
    moving = await list_partition_reassignments(client, partitions) if partitions else {}
    eligible = await _eligible(client, [topic.name for topic in topics])
    wanted = [report for report in (*REPORTS, OVERRIDES) if report in given]
    for topic in topics:
        entries = configs[topic.name]
        if isinstance(entries, RequestError):
            raise entries
        _print_topic(topic, entries, moving, eligible, wanted, set(client.cluster.brokers))


async def _with_id(client: ClusterClient, given: Given) -> list[TopicView]:
    from barnabas.admin.topics import describe_topics
    from barnabas.model.ids import uuid_from_text

    text = given["topic-id"]
    try:
        topic_id = uuid_from_text(text)
    except ValueError as failure:
        raise InvalidValueError(f"--topic-id {text}: {failure}") from failure
    found = [topic for topic in await describe_topics(client, None) if topic.topic_id == topic_id]
    if not found and "if-exists" not in given:
        raise NoSuchTopic(f"TopicId '{text}' does not exist as expected")
    return found


async def _eligible(client: ClusterClient, names: list[str]) -> Eligible:
    """Return eligible and last known eligible leaders, where the broker knows them."""
    from barnabas.admin.topic_descriptions import describe_topic_partitions
    from barnabas.client.errors import UnsupportedApiError

    found: Eligible = {}
    start = None
    try:
        while names:
            page = await describe_topic_partitions(client, names, start=start)
            for topic in page.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name or "", each.index)
                    found[key] = (each.eligible_leaders, each.last_known_eligible)
            start = page.next
            if start is None:
                break
    except UnsupportedApiError:
        return {}
    return found


def _print_topic(
    topic: TopicView,
    entries: Sequence[ConfigEntry],
    moving: Mapping[TopicPartition, Reassignment],
    eligible: Eligible,
    wanted: Sequence[str],
    brokers: set[int],
) -> None:
    from barnabas.admin.config_entries import ConfigSource

    own = [entry for entry in entries if entry.source is not ConfigSource.DEFAULT]
    views = sorted(topic.partitions.values(), key=lambda view: view.index)
    if not wanted or (OVERRIDES in wanted and own):
        first = moving.get(TopicPartition(topic.name, views[0].index))
        print(
            f"Topic: {topic.name}\tTopicId: {uuid_text(topic.topic_id)}"
            f"\tPartitionCount: {len(views)}"
            f"\tReplicationFactor: {_replication_factor(views[0], first)}"
            f"\tConfigs: {','.join(f'{entry.name}={entry.value}' for entry in own)}"
        )
    if OVERRIDES in wanted:
        return
    least = next((int(each.value or 1) for each in entries if each.name == MIN_ISR), 1)
    for view in views:
        key = TopicPartition(topic.name, view.index)
        move = moving.get(key)
        if not wanted or any(_is_wanted(each, view, move, least, brokers) for each in wanted):
            _print_partition(key, view, move, eligible.get(key, (None, None)))


def _replication_factor(view: PartitionView, move: Reassignment | None) -> int:
    """Return the number of replicas; of a reassignment in progress those of its end are."""
    if move is not None and (move.adding or move.removing):
        return len(move.replicas) - len(move.adding)
    return len(view.replicas)


def _is_wanted(
    report: str, view: PartitionView, move: Reassignment | None, least: int, brokers: set[int]
) -> bool:
    if report == "under-replicated-partitions":
        return len(view.isr) < _replication_factor(view, move)
    if report == "unavailable-partitions":
        return view.leader_id not in brokers
    if report == "under-min-isr-partitions":
        return view.leader_id < 0 or len(view.isr) < least
    return len(view.isr) == least


def _print_partition(
    key: TopicPartition,
    view: PartitionView,
    move: Reassignment | None,
    eligible: tuple[tuple[int, ...] | None, tuple[int, ...] | None],
) -> None:
    line = (
        f"\tTopic: {key.topic}\tPartition: {key.partition}"
        f"\tLeader: {view.leader_id if view.leader_id >= 0 else 'none'}"
        f"\tReplicas: {_numbers(view.replicas)}\tIsr: {_numbers(view.isr)}"
    )
    if move is not None:
        line += f"\tAdding Replicas: {_numbers(move.adding)}"
        line += f"\tRemoving Replicas: {_numbers(move.removing)}"
    line += f"\tElr: {'N/A' if eligible[0] is None else _numbers(eligible[0])}"
    line += f"\tLastKnownElr: {'N/A' if eligible[1] is None else _numbers(eligible[1])}"
    print(line)


def _numbers(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
