"""`barnabas elect`: trigger preferred or unclean leader elections."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from barnabas.admin.reassignments import ElectionType, elect_leaders
from barnabas.admin.topics import describe_topics
from barnabas.cli.arguments import add_connection, index
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import existing_partitions
from barnabas.cli.reassign.file import read_partitions
from barnabas.cli.session import run
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.client.metadata import ClientMetadata
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition

EXAMPLES = """\
examples:
  barnabas elect --all
  barnabas elect --topic orders
  barnabas elect --topic orders --partition 0 --unclean
  barnabas elect --file partitions.json --json

A preferred leader election makes the preferred (first) replica of each partition the leader, if it
is in sync. --unclean lets a partition without a leader elect a replica that is not in sync: records
may be lost.
"""

Outcomes = dict[TopicPartition, RequestError | None]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_elect)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="all partitions")
    which.add_argument("--topic", metavar="TOPIC", help="partitions of this topic")
    which.add_argument(
        "--file", metavar="PATH", type=Path, help='{"partitions":[{"topic":"t","partition":0}]}'
    )
    parser.add_argument(
        "--partition",
        metavar="N",
        type=index,
        action="append",
        help="only this partition of the topic; may be repeated",
    )
    parser.add_argument(
        "--unclean", action="store_true", help="elect replicas that are not in sync, if necessary"
    )
    add_connection(parser)


def _elect(arguments: argparse.Namespace) -> int:
    if arguments.partition and arguments.topic is None:
        raise InvalidValueError("--partition needs --topic")
    outcomes, leaders = run(arguments, lambda client: _hold(client, arguments))
    if arguments.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    "leader": leaders.get(key),
                    "elected": outcome is None,
                    **_error_document(outcome),
                }
                for key, outcome in outcomes.items()
            ]
        )
    elif outcomes:
        print_table(
            ["partition", "result", "leader"],
            [[str(key), _result(outcome), leaders.get(key)] for key, outcome in outcomes.items()],
        )
    else:
        print("no partition needs an election")
    failed = [outcome for outcome in outcomes.values() if _has_failed(outcome)]
    for failure in failed:
        print(f"barnabas elect: {failure}", file=sys.stderr)
    return 1 if failed else 0


async def _hold(
    client: ClusterClient, arguments: argparse.Namespace
) -> tuple[Outcomes, dict[TopicPartition, int]]:
    partitions: list[TopicPartition] | None = None
    if arguments.file is not None:
        partitions = read_partitions(arguments.file)
    elif arguments.topic is not None:
        partitions = await existing_partitions(client, arguments.topic, arguments.partition)
    election = ElectionType.UNCLEAN if arguments.unclean else ElectionType.PREFERRED
    answers = await elect_leaders(client, partitions, election)
    outcomes = {key: answers[key] for key in sorted(answers)}
    if not outcomes:
        return {}, {}
    # The other brokers may not have learned yet whom the controller has elected.
    await describe_topics(client, {key.topic for key in outcomes}, to=CONTROLLER)
    return outcomes, _leaders(client.cluster, outcomes)


def _leaders(cluster: ClientMetadata, outcomes: Outcomes) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for key in outcomes:
        topic = cluster.topics.get(key.topic)
        view = topic.partitions.get(key.partition) if topic is not None else None
        if view is not None and view.leader_id >= 0:
            found[key] = view.leader_id
    return found


def _has_failed(outcome: RequestError | None) -> bool:
    return outcome is not None and outcome.code is not ErrorCode.ELECTION_NOT_NEEDED


def _result(outcome: RequestError | None) -> str:
    if outcome is None:
        return "elected"

    return "already the leader" if not _has_failed(outcome) else outcome.code.name


def _error_document(error: RequestError | None) -> dict[str, str]:
    return {} if error is None else {"error": error.code.name, "message": str(error)}
