"""`kafka-leader-election`: elect preferred leaders, or leaders that are not in sync."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.kafka.integers import whole_number

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.model.ids import TopicPartition

FAILURE = ""

TYPES = ("PREFERRED", "UNCLEAN")
WHICH = ("topic", "all-topic-partitions", "path-to-json-file")


def _election_type(text: str) -> str:
    if text.upper() not in TYPES:
        raise ValueError(f"it must be one of: {', '.join(TYPES)}")
    return text.upper()


FLAGS = Flags(
    "Elect leaders of partitions: the preferred replica, or one that is not in sync.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("--admin.config", "FILE", "deprecated: use --command-config"),
        Flag("--election-type", "TYPE", "preferred or unclean", _election_type),
        Flag("--topic", "TOPIC", "a topic, with --partition"),
        Flag("--partition", "N", "a partition of the topic", whole_number),
        Flag("--all-topic-partitions", help="all partitions"),
        Flag("--path-to-json-file", "FILE", '{"partitions":[{"topic":"t","partition":0}]}'),
    ),
    excludes={"admin.config": ("command-config",)},
)


def run(given: Given) -> int:
    """Check what is missing, and hold the elections."""
    _check(given)
    from barnabas.cli import session
    from barnabas.cli.reassign.file import read_partitions
    from barnabas.model.ids import TopicPartition

    partitions = None
    if "path-to-json-file" in given:
        partitions = read_partitions(Path(given["path-to-json-file"]))
    elif "topic" in given:
        partitions = [TopicPartition(given["topic"], given["partition"])]
    config = "admin.config" if "admin.config" in given else "command-config"
    return session.run(
        given.connection(config), partial(_elect, given["election-type"], partitions)
    )


def _check(given: Given) -> None:
    missing = [key for key in ("bootstrap-server", "election-type") if key not in given]
    if missing:
        raise UsageError(f"Missing required option(s): {', '.join(missing)}")
    if sum(key in given for key in WHICH) != 1:
        raise UsageError(f"One and only one of the following options is required: {_listed(WHICH)}")
    if "topic" in given and "partition" not in given:
        raise UsageError("Missing required option(s): partition")
    if "partition" in given and "topic" not in given:
        raise UsageError("Option partition is only allowed if topic is used")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


async def _elect(
    election: str, partitions: list[TopicPartition] | None, client: ClusterClient
) -> int:
    import sys

    from barnabas.admin.reassignments import ElectionType, elect_leaders
    from barnabas.cli.kafka.exceptions import named
    from barnabas.model.error_codes import ErrorCode

    outcomes = await elect_leaders(client, partitions, ElectionType[election])
    elected = [str(key) for key in sorted(outcomes) if outcomes[key] is None]
    failed = {key: error for key, error in sorted(outcomes.items()) if error is not None}
    idle = [str(key) for key, e in failed.items() if e.code is ErrorCode.ELECTION_NOT_NEEDED]
    if elected:
        print(
            f"Successfully completed leader election ({election}) for partitions "
            f"{', '.join(elected)}"
        )
    if idle:
        print(f"Valid replica already elected for partitions {', '.join(idle)}")
    for key, error in failed.items():
        if str(key) not in idle:
            print(f"Error completing leader election ({election}) for partition: {key}: ", end="")
            print(named(error))
    if len(failed) > len(idle):
        print(f"{len(failed) - len(idle)} replica(s) could not be elected", file=sys.stderr)
        return 1
    return 0
