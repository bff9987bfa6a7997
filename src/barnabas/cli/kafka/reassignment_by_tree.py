"""The old actions of `kafka-reassign-partitions --zookeeper`: through the coordination tree.

The controller watches the node that a reassignment is written to, and removes it when it is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from barnabas.admin.moves.plan import Holding, Move
from barnabas.admin.moves.throttles import (
    DIRECTORY_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    throttled_replicas,
)
from barnabas.cli.kafka.flags import Given
from barnabas.cli.kafka.reassignment_texts import (
    EXISTING,
    VERIFY,
    broker_list,
    print_clearing,
    print_proposal,
    print_rollback,
    print_started,
    print_states,
)
from barnabas.cli.kafka.tree import on_tree
from barnabas.cli.reassign.file import Target, read_plan, read_topics
from barnabas.coordination.contract import Coordination, NodeExists, NoNode
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.config_store import ConfigStore
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

Plan = Mapping[TopicPartition, Target]
Replicas = dict[TopicPartition, tuple[int, ...]]

NO_DIRECTORIES = "bootstrap-server needs to be provided when replica reassignments are present."


def act(action: str, given: Given) -> int:
    """Read the files, open a session, and do what one action says."""
    if action == "generate":
        topics = read_topics(Path(given["topics-to-move-json-file"]))
        brokers = broker_list(given["broker-list"])
        rack_aware = "disable-rack-aware" not in given
        return on_tree(given["zookeeper"], partial(_generate, topics, brokers, rack_aware))
    plan = read_plan(Path(given["reassignment-json-file"]))
    if any(target.directory_on(broker) for target in plan.values() for broker in target.replicas):
        raise InvalidValueError(NO_DIRECTORIES)
    work = {"execute": _execute, "verify": _verify}[action]
    return on_tree(given["zookeeper"], partial(work, plan, given))


async def _generate(
    topics: list[str], brokers: list[int], rack_aware: bool, tree: Coordination
) -> int:
    present = {
        key: Holding(replicas, -1, None)
        for key, replicas in (await _replicas(tree, topics)).items()
    }
    missing = sorted(set(topics) - {key.topic for key in present})
    if missing:
        raise InvalidValueError(f"Topic {missing[0]} not found.")
    print_proposal(present, brokers, await _racks(tree), rack_aware=rack_aware)
    return 0


async def _racks(tree: Coordination) -> dict[int, str | None]:
    """Return the live brokers with their racks."""
    try:
        ids = sorted(map(int, await tree.children(nodes.BROKER_IDS)))
    except NoNode:
        return {}
    paths = [nodes.broker_path(each) for each in ids]
    found = zip(ids, paths, await tree.get_many(paths), strict=True)
    return {
        number: nodes.BrokerRegistration.decode(path, node[0]).rack
        for number, path, node in found
        if node is not None
    }


async def _replicas(tree: Coordination, topics: Iterable[str]) -> Replicas:
    """Return the replicas of all partitions of those topics that exist."""
    names = sorted(set(topics))
    paths = [nodes.topic_path(name) for name in names]
    return {
        TopicPartition(name, number): tuple(replicas)
        for name, path, node in zip(names, paths, await tree.get_many(paths), strict=True)
        if node is not None
        for number, replicas in nodes.TopicAssignment.decode(path, node[0]).replicas.items()
    }


async def _moving(tree: Coordination) -> set[TopicPartition] | None:
    """Return the partitions of the reassignment in progress, None if there is none."""
    path = nodes.LEGACY_REASSIGNMENT
    try:
        data, _ = await tree.get(path)
    except NoNode:
        return None
    return {TopicPartition(*each[:2]) for each in nodes.decode_partitions(path, data)}


async def _execute(plan: Plan, given: Given, tree: Coordination) -> int:
    present = await _replicas(tree, {key.topic for key in plan})
    unknown = [str(key) for key in sorted(plan) if key not in present]
    if unknown:
        raise InvalidValueError(
            f"The proposed assignment contains non-existent partitions: {', '.join(unknown)}"
        )
    live = await _racks(tree)
    absent = sorted({each for target in plan.values() for each in target.replicas} - live.keys())
    if absent:
        raise InvalidValueError(
            "The proposed assignment contains non-existent brokerIDs: " + ",".join(map(str, absent))
        )
    if await _moving(tree) is not None:
        print(EXISTING)
        return 1
    print_rollback({key: present[key] for key in plan})
    if given["throttle"] >= 0:
        print(VERIFY)
        moves = [Move(key, present[key], target.replicas, -1, None) for key, target in plan.items()]
        await _throttle(ConfigStore(tree), moves, given["throttle"])
        print(f"The inter-broker throttle limit was set to {given['throttle']} B/s")
    partitions = [(*key, target.replicas) for key, target in sorted(plan.items())]
    data = nodes.encode_partitions(partitions)
    try:
        await tree.create(nodes.LEGACY_REASSIGNMENT, data, make_parents=True)
    except NodeExists:
        print(EXISTING)
        return 1
    print_started(plan)
    return 0


async def _throttle(configs: ConfigStore, moves: list[Move], rate: int) -> None:
    for topic, options in throttled_replicas(moves).items():
        await configs.update("topics", topic, partial(_with, options))
    rates = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), str(rate))
    for broker in sorted({each for move in moves for each in (*move.before, *move.after)}):
        await configs.update("brokers", str(broker), partial(_with, rates))


async def _verify(plan: Plan, given: Given, tree: Coordination) -> int:
    print(
        "Warning: because you are using the deprecated --zookeeper option, the results may be "
        "incomplete.  Use --bootstrap-server instead for more accurate results."
    )
    moving = await _moving(tree)
    current = await _replicas(tree, {key.topic for key in plan})
    print_states(current, {key: target.replicas for key, target in plan.items()}, moving or ())
    if moving is None and "preserve-throttles" not in given:
        await _clear(tree, plan)
    return 0


async def _clear(tree: Coordination, plan: Plan) -> None:
    configs = ConfigStore(tree)
    topics = sorted({key.topic for key in plan})
    named = {broker for target in plan.values() for broker in target.replicas}
    brokers = sorted((await _racks(tree)).keys() | named)
    print_clearing(brokers, topics)
    rates = (LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE)
    for broker in brokers:
        await configs.update("brokers", str(broker), partial(_without, rates))
    for topic in topics:
        await configs.update(
            "topics", topic, partial(_without, (LEADER_REPLICAS, FOLLOWER_REPLICAS))
        )


def _with(options: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    return {**before, **options}


def _without(names: Iterable[str], before: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in before.items() if name not in names}
