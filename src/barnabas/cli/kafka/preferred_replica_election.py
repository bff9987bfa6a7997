"""`kafka-preferred-replica-election`: make the preferred replicas of partitions their leaders.

Kafka 3.0 has removed it; these are the words of the releases before.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.coordination.contract import Coordination
    from barnabas.model.ids import TopicPartition

FAILURE = "Admin command failed: "

FLAGS = Flags(
    "Make the preferred replicas of partitions their leaders; use kafka-leader-election instead.",
    (
        BOOTSTRAP,
        Flag("--zookeeper", "HOST:PORT[/CHROOT]", "deprecated: use --bootstrap-server"),
        Flag(
            "--path-to-json-file",
            "FILE",
            '{"partitions":[{"topic":"t","partition":0}]}; without it, all partitions',
        ),
        Flag("--admin.config", "FILE", "properties of the admin client"),
    ),
)


def run(given: Given) -> int:
    """Hold the elections, or ask the controller for them through ZooKeeper."""
    print(
        "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405"
    )
    if ("bootstrap-server" in given) == ("zookeeper" in given):
        raise UsageError("Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided")
    if "admin.config" in given and "zookeeper" in given:
        raise UsageError('Option "[admin.config]" can\'t be used with option "[zookeeper]"')
    from barnabas.cli.reassign.file import read_partitions

    file = given["path-to-json-file"]
    partitions = None if file is None else read_partitions(Path(file))
    if "zookeeper" not in given:
        from barnabas.cli import session

        return session.run(given.connection("admin.config"), partial(_elect, partitions))
    from barnabas.cli.kafka.tree import on_tree

    print("Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.")
    print("Use --bootstrap-server instead to specify a broker to connect to.")
    return on_tree(given["zookeeper"], partial(_request, partitions))


async def _elect(partitions: list[TopicPartition] | None, client: ClusterClient) -> int:
    import sys

    from barnabas.admin.reassignments import elect_leaders
    from barnabas.cli.kafka.exceptions import named
    from barnabas.model.error_codes import ErrorCode

    outcomes = await elect_leaders(client, partitions)
    failed = {
        key: error
        for key, error in sorted(outcomes.items())
        if error is not None and error.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    done = ", ".join(str(key) for key in sorted(outcomes) if key not in failed)
    if done:
        print(f"Successfully completed preferred leader election for partitions {done}")
    for key, error in failed.items():
        print(f"Error completing preferred leader election for partition: {key}: {named(error)}")
    if failed:
        print(f"{len(failed)} preferred replica(s) could not be elected", file=sys.stderr)
        return 1
    return 0


async def _request(wanted: list[TopicPartition] | None, tree: Coordination) -> int:
    """Write the node that the controller watches, and removes when it has held the elections."""
    from barnabas.coordination.contract import NodeExists
    from barnabas.metadata import tree_schema as nodes
    from barnabas.model.errors import InvalidValueError

    present = await _partitions(tree, {key.topic for key in wanted} if wanted else None)
    chosen = sorted(present if wanted is None else present & set(wanted))
    path = nodes.LEGACY_PREFERRED_ELECTION
    listed = [{"topic": key.topic, "partition": key.partition} for key in chosen]
    try:
        data = nodes.compact({"version": 1, "partitions": listed})
        await tree.create(path, data, make_parents=True)
    except NodeExists:
        pending = nodes.decode_partitions(path, (await tree.get(path))[0])
        running = ",".join(f"{topic}-{number}" for topic, number, _ in pending)
        raise InvalidValueError(
            f"Preferred replica leader election currently in progress for {running}. "
            "Aborting operation"
        ) from None
    names = [str(key) for key in chosen]
    print(f"Created preferred replica election path with {','.join(names)}")
    print(f"Successfully started preferred replica election for partitions Set({', '.join(names)})")
    for key in sorted(set(wanted or ()) - present):
        print(
            f"Skipping preferred replica leader election for partition {key} since it doesn't "
            "exist."
        )
    return 0


async def _partitions(tree: Coordination, topics: set[str] | None) -> set[TopicPartition]:
    """Return the partitions that exist, of some topics or of all."""
    from barnabas.coordination.contract import NoNode
    from barnabas.metadata import tree_schema as nodes
    from barnabas.model.ids import TopicPartition

    if topics is None:
        try:
            topics = set(await tree.children(nodes.TOPICS))
        except NoNode:
            return set()
    names = sorted(topics)
    paths = [nodes.topic_path(name) for name in names]
    found = zip(names, paths, await tree.get_many(paths), strict=True)
    return {
        TopicPartition(name, number)
        for name, path, node in found
        if node is not None
        for number in nodes.TopicAssignment.decode(path, node[0]).replicas
    }
