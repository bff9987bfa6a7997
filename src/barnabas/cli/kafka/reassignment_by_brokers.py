"""The actions of `kafka-reassign-partitions` through a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from barnabas.admin.config_entries import AlterConfigOp, Change, ConfigResourceType, Resource
from barnabas.admin.configs import alter_configs
from barnabas.admin.moves.plan import Move
from barnabas.admin.moves.progress import holdings
from barnabas.admin.moves.throttles import DIRECTORY_RATE, clear_throttles, set_throttle
from barnabas.admin.reassignments import (
    Reassignment,
    alter_partition_reassignments,
    list_partition_reassignments,
)
from barnabas.admin.topics import describe_topics
from barnabas.cli import session
from barnabas.cli.kafka.exceptions import message, named
from barnabas.cli.kafka.flags import Given
from barnabas.cli.kafka.reassignment_texts import (
    EXISTING,
    VERIFY,
    broker_list,
    plural,
    print_clearing,
    print_proposal,
    print_rollback,
    print_started,
    print_states,
)
from barnabas.cli.reassign.directory_moves import (
    DirectoryMove,
    choose_directories,
    look_at_directories,
    wanted_directories,
)
from barnabas.cli.reassign.file import Target, read_plan, read_topics
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnknownTopicOrPartitionError
from barnabas.structs import TopicPartitionReplica

Plan = Mapping[TopicPartition, Target]
Replicas = dict[TopicPartition, tuple[int, ...]]


def act(action: str, given: Given) -> int:
    """Read the files, connect, and do what one action says."""
    if action == "list":
        return session.run(given.connection(), _list)
    if action == "generate":
        topics = read_topics(Path(given["topics-to-move-json-file"]))
        brokers = broker_list(given["broker-list"])
        rack_aware = "disable-rack-aware" not in given
        return session.run(given.connection(), partial(_generate, topics, brokers, rack_aware))
    plan = read_plan(Path(given["reassignment-json-file"]))
    work = {"execute": _execute, "verify": _verify, "cancel": _cancel}[action]
    return session.run(given.connection(), partial(work, plan, given))


async def _list(client: ClusterClient) -> int:
    moving = await list_partition_reassignments(client)
    print("Current partition reassignments:" if moving else "No partition reassignments found.")
    for key in sorted(moving):
        parts = [f"{key}: replicas: {_ids(moving[key].replicas)}."]
        for verb, ids in (("adding", moving[key].adding), ("removing", moving[key].removing)):
            parts += [f"{verb}: {_ids(ids)}."] if ids else []
        print(" ".join(parts))
    return 0


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


async def _generate(
    topics: list[str], brokers: list[int], rack_aware: bool, client: ClusterClient
) -> int:
    await _replicas(client, topics)  # raises if one does not exist
    present = await holdings(client, topics)
    racks = {node: broker.rack for node, broker in client.cluster.brokers.items()}
    print_proposal(present, brokers, racks, rack_aware=rack_aware)
    return 0


async def _replicas(client: ClusterClient, topics: Iterable[str]) -> Replicas:
    """Return the replicas of all partitions of topics; raise if a topic does not exist."""
    found: Replicas = {}
    for topic in await describe_topics(client, sorted(set(topics)), to=CONTROLLER):
        if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise _unknown(f"Topic {topic.name} not found.")
        if topic.error is not ErrorCode.NONE:
            raise RequestError(topic.error, f"topic {topic.name}: {topic.error.meaning}")
        for number, view in topic.partitions.items():
            found[TopicPartition(topic.name, number)] = view.replicas
    return found


def _unknown(text: str) -> BarnabasError:
    """Return a failure that Kafka's tool prints with the exception's name."""
    return InvalidValueError(named(UnknownTopicOrPartitionError(text)))


# -- execute


async def _execute(plan: Plan, given: Given, client: ClusterClient) -> int:
    moving = await list_partition_reassignments(client)
    if moving and "additional" not in given:
        print(EXISTING)
        return 1
    for broker in sorted({each for target in plan.values() for each in target.replicas}):
        if broker not in client.cluster.brokers:
            raise InvalidValueError(f"Unknown broker id {broker}")
    present = await _replicas(client, {key.topic for key in plan})
    missing = [str(key) for key in sorted(plan) if key not in present]
    if missing:
        raise _unknown(f"Unable to find partition: {', '.join(missing)}")
    print_rollback({key: present[key] for key in plan})
    directories = wanted_directories(plan)
    await _throttle(client, given, _moves(plan, present, moving), directories)
    answers = await alter_partition_reassignments(
        client,
        {key: target.replicas for key, target in plan.items()},
        same_factor="disallow-replication-factor-change" in given,
    )
    failed = {key: answer for key, answer in answers.items() if answer is not None}
    if failed:
        print("Error reassigning partition(s):")
        for key in sorted(failed):
            print(_reason(key, failed[key]))
        return 1
    print_started(plan)
    return await _move_directories(client, directories, given["timeout"] / 1000)


def _reason(key: TopicPartition, failure: RequestError) -> str:
    """Return why a partition failed; the broker's message may name it, too."""
    text = message(failure)
    while text.startswith(f"{key}: "):
        text = text.removeprefix(f"{key}: ")
    return f"{key}: {text}"


def _moves(
    plan: Plan, present: Replicas, moving: Mapping[TopicPartition, Reassignment]
) -> list[Move]:
    """Return all moves, those in progress included: each from the replicas that have the data."""
    moves = {
        key: Move(key, _sources(each), each.replicas, -1, None) for key, each in moving.items()
    }
    for key, target in plan.items():
        before = moves[key].before if key in moves else present[key]
        moves[key] = Move(key, before, target.replicas, -1, None)
    return list(moves.values())


def _sources(moving: Reassignment) -> tuple[int, ...]:
    return tuple(each for each in moving.replicas if each not in moving.adding)


async def _throttle(
    client: ClusterClient,
    given: Given,
    moves: list[Move],
    directories: Mapping[TopicPartitionReplica, str],
) -> None:
    between_brokers, between_directories = (
        given["throttle"],
        given["replica-alter-log-dirs-throttle"],
    )
    if between_brokers < 0 and between_directories < 0:
        return
    print(VERIFY)
    if between_brokers >= 0:
        await set_throttle(client, moves, between_brokers)
        print(f"The inter-broker throttle limit was set to {between_brokers} B/s")
    if between_directories >= 0:
        change = Change(AlterConfigOp.SET, DIRECTORY_RATE, str(between_directories))
        for broker in sorted({replica.broker_id for replica in directories}):
            resource = Resource(ConfigResourceType.BROKER, str(broker))
            await alter_configs(client, resource, [change])
        print(f"The replica-alter-dir throttle limit was set to {between_directories} B/s")


async def _move_directories(
    client: ClusterClient, wanted: Mapping[TopicPartitionReplica, str], timeout_s: float
) -> int:
    failed = await choose_directories(client, wanted, timeout_s) if wanted else {}
    for replica in sorted(wanted, key=_by_broker):
        if replica not in failed:
            print(
                f"Successfully started moving log directory to {wanted[replica]} for replica "
                f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
            )
    late = []
    for replica, failure in failed.items():
        if failure.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
            raise RequestError(failure.code, f"Failed to alter dir for {_name(replica)}: {failure}")
        late.append(replica)
    if late:
        names = ",".join(_name(replica) for replica in sorted(late, key=_by_broker))
        print(f"Timed out before log directory move{plural(late)} could be started for: {names}")
    return 1 if late else 0


def _by_broker(replica: TopicPartitionReplica) -> tuple[int, str, int]:
    return replica.broker_id, replica.topic, replica.partition


def _name(replica: TopicPartitionReplica) -> str:
    return f"{replica.topic}-{replica.partition}-{replica.broker_id}"


# -- verify and cancel


async def _verify(plan: Plan, given: Given, client: ClusterClient) -> int:
    # Reassignments first: those that end before the replicas are read then show as done.
    moving = await list_partition_reassignments(client)
    current = await _known_replicas(client, {key.topic for key in plan})
    print_states(current, {key: target.replicas for key, target in plan.items()}, moving)
    directories = await look_at_directories(client, wanted_directories(plan))
    print("\n".join(_directory_state(each) for each in _sorted(directories)))
    done = not moving and not any(each.is_moving for each in directories)
    if done and "preserve-throttles" not in given:
        await _clear(client, plan)
    return 0


async def _known_replicas(client: ClusterClient, topics: Iterable[str]) -> Replicas:
    """Return the replicas of all partitions of those topics that exist."""
    return {
        TopicPartition(topic.name, number): view.replicas
        for topic in await describe_topics(client, sorted(set(topics)), to=CONTROLLER)
        for number, view in topic.partitions.items()
    }


def _sorted(directories: Iterable[DirectoryMove]) -> list[DirectoryMove]:
    return sorted(directories, key=lambda each: _by_broker(each.replica))


def _directory_state(move: DirectoryMove) -> str:
    replica = move.replica
    partition = f"{replica.topic}-{replica.partition}"
    if move.present is None:
        return (
            f"Partition {partition} is not found in any live log dir on broker "
            f"{replica.broker_id}. There is likely an offline log directory on the broker."
        )
    if move.is_moving:
        return f"Reassignment of replica {_name(replica)} is still in progress."
    if move.is_done:
        return f"Reassignment of replica {_name(replica)} completed successfully."
    return (
        f"Partition {partition} on broker {replica.broker_id} is not being moved from log dir "
        f"{move.present} to {move.wanted}."
    )


async def _clear(client: ClusterClient, plan: Plan) -> None:
    topics = {key.topic for key in plan}
    named = {broker for target in plan.values() for broker in target.replicas}
    print_clearing(client.cluster.brokers.keys() | named, topics)
    known = {key.topic for key in await _known_replicas(client, topics)}
    await clear_throttles(client, known)


async def _cancel(plan: Plan, given: Given, client: ClusterClient) -> int:
    moving = sorted(await list_partition_reassignments(client, plan))
    if moving:
        answers = await alter_partition_reassignments(client, dict.fromkeys(moving))
        failed = {key: answer for key, answer in answers.items() if answer is not None}
        if failed:
            print(f"Error cancelling partition reassignment{plural(list(failed))} for:")
            for key in sorted(failed):
                print(_reason(key, failed[key]))
            return 1
        names = ",".join(map(str, moving))
        print(f"Successfully cancelled partition reassignment{plural(moving)} for: {names}")
    else:
        print("None of the specified partition reassignments are active.")
    directories = await look_at_directories(client, wanted_directories(plan))
    back = {each.replica: each.present for each in directories if each.is_moving and each.present}
    code = 0
    if back:
        code = await _move_directories(client, back, given["timeout"] / 1000)
    else:
        # Kafka's tool does not end this line, either.
        print("None of the specified partition moves are active.", end="")
    if "preserve-throttles" not in given:
        await _clear(client, plan)
    return code
