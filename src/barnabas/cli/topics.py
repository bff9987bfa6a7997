"""`barnabas topics`: create, list, describe, alter, fork, delete; delete old records."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from barnabas.admin.offsets import HIGH_WATERMARK, delete_records, list_offsets
from barnabas.admin.topics import (
    NewTopic,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topics,
)
from barnabas.cli.arguments import add_action, assignment, count, index
from barnabas.cli.health import (
    is_unavailable,
    is_under_min_isr,
    is_under_replicated,
    min_isr_of,
)
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import existing_partitions
from barnabas.cli.position import Beginning, End, Offset, Position, parse_position, parse_time
from barnabas.cli.session import run
from barnabas.cli.topic_description import describe_topic, print_topic, replication_factor
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition, uuid_text


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    create = add_action(
        actions,
        "create",
        "create topics",
        _create,
        "  barnabas topics create orders --partitions 6 --replication-factor 3\n"
        "  barnabas topics create users --config cleanup.policy=compact --if-not-exists",
    )
    create.add_argument("topics", metavar="TOPIC", nargs="+")
    create.add_argument(
        "--partitions", metavar="N", type=count, help="number of partitions (default: the broker's)"
    )
    create.add_argument(
        "--replication-factor",
        metavar="N",
        type=count,
        help="replicas of each partition (default: the broker's)",
    )
    create.add_argument(
        "--config",
        metavar="NAME=VALUE",
        type=assignment,
        action="append",
        default=[],
        help="a topic option; may be repeated",
    )
    create.add_argument(
        "--if-not-exists", action="store_true", help="an existing topic is not an error"
    )
    list_ = add_action(
        actions,
        "list",
        "list topics",
        _list,
        "  barnabas topics list\n  barnabas topics list --internal --json",
    )
    list_.add_argument("--internal", action="store_true", help="also list internal topics")
    describe = add_action(
        actions,
        "describe",
        "show partitions, leaders, in-sync replicas, offsets and sizes",
        _describe,
        "  barnabas topics describe orders\n  barnabas topics describe --json\n"
        "  barnabas topics describe --under-replicated",
    )
    describe.add_argument("topics", metavar="TOPIC", nargs="*", help="(default: all)")
    only = describe.add_mutually_exclusive_group()
    only.add_argument(
        "--under-replicated",
        action="store_true",
        help="only partitions with a replica that is not in sync",
    )
    only.add_argument("--unavailable", action="store_true", help="only partitions without a leader")
    only.add_argument(
        "--under-min-isr",
        action="store_true",
        help="only partitions that reject writes with acks=all",
    )
    alter = add_action(
        actions,
        "alter",
        "add partitions to a topic",
        _alter,
        "  barnabas topics alter orders --partitions 12",
    )
    alter.add_argument("topic", metavar="TOPIC")
    alter.add_argument(
        "--partitions",
        metavar="N",
        type=count,
        required=True,
        help="new number of partitions; it can only grow",
    )
    delete = add_action(
        actions,
        "delete",
        "delete topics and all their records",
        _delete,
        "  barnabas topics delete orders\n  barnabas topics delete orders users --if-exists",
    )
    delete.add_argument("topics", metavar="TOPIC", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="a missing topic is not an error")
    fork = add_action(
        actions,
        "fork",
        "create a topic that starts with the records of another one, without copying them",
        _fork,
        "  barnabas topics fork orders orders-test\n"
        "  barnabas topics fork orders orders-friday --at 2026-01-30T18:00:00Z\n"
        "  barnabas topics fork orders orders-before --offsets 0:1500,1:1620",
    )
    fork.add_argument("source", metavar="SOURCE")
    fork.add_argument("target", metavar="TARGET")
    end = fork.add_mutually_exclusive_group()
    end.add_argument(
        "--at",
        metavar="TIME",
        type=_time,
        help="end before the first record at this time (2026-01-31T12:00:00Z, @1767225600000) "
        "or age (15m)",
    )
    end.add_argument(
        "--offsets",
        metavar="P:O[,...]",
        type=_offsets,
        help="end partition P before offset O (default: the last stable offset)",
    )
    fork.add_argument(
        "--config",
        metavar="NAME=VALUE",
        type=assignment,
        action="append",
        default=[],
        help="a topic option that differs from the source; may be repeated",
    )
    records = add_action(
        actions,
        "delete-records",
        "delete the records before an offset or a time",
        _delete_records,
        "  barnabas topics delete-records orders --before 1500 --partition 0\n"
        "  barnabas topics delete-records orders --before 7d\n"
        "  barnabas topics delete-records orders --before end",
    )
    records.add_argument("topic", metavar="TOPIC")
    records.add_argument(
        "--before",
        metavar="POSITION",
        required=True,
        type=lambda text: parse_position(text, int(time.time() * 1000)),
        help="an offset, a time (2026-01-31T12:00:00Z), an age (7d), or end",
    )
    records.add_argument(
        "--partition",
        metavar="N",
        type=index,
        action="append",
        help="only this partition; may be repeated",
    )


def _create(arguments: argparse.Namespace) -> int:
    new = [
        NewTopic(
            name,
            arguments.partitions or -1,
            arguments.replication_factor or -1,
            topic_configs=dict(arguments.config),
        )
        for name in arguments.topics
    ]
    created = run(arguments, lambda client: create_topics(client, new))
    forgiven = ErrorCode.TOPIC_ALREADY_EXISTS if arguments.if_not_exists else None
    if arguments.json:
        print_json(
            [
                {
                    "name": topic.name,
                    "id": uuid_text(topic.topic_id),
                    "partitions": topic.partitions,
                    "replication_factor": topic.replication_factor,
                    "created": topic.error is None,
                    **_error_document(topic.error),
                }
                for topic in created
            ]
        )
    failed = 0
    for topic in created:
        if topic.error is None:
            if not arguments.json:
                print(f"created topic {topic.name}")
        elif topic.error.code is forgiven:
            if not arguments.json:
                print(f"topic {topic.name} already exists")
        else:
            failed += _complain("create", topic.name, topic.error)
    return min(failed, 1)


def _time(text: str) -> int:
    timestamp_ms = parse_time(text, int(time.time() * 1000))
    if timestamp_ms is None:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a time nor an age")
    return timestamp_ms


def _offsets(text: str) -> str:
    if not re.fullmatch(r"[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form PARTITION:OFFSET,...")
    return text


def _fork(arguments: argparse.Namespace) -> int:
    configs = {"barnabas.fork.source": arguments.source, **dict(arguments.config)}
    if arguments.at is not None:
        configs["barnabas.fork.at"] = str(arguments.at)
    if arguments.offsets is not None:
        configs["barnabas.fork.offsets"] = arguments.offsets
    new = NewTopic(arguments.target, topic_configs=configs)
    [made] = run(arguments, lambda client: create_topics(client, [new]))
    if made.error is not None:
        return _complain("fork", arguments.target, made.error)
    if arguments.json:
        document = {"name": made.name, "id": uuid_text(made.topic_id), "source": arguments.source}
        print_json({**document, "partitions": made.partitions})
    else:
        print(f"created topic {made.name}, a fork of {arguments.source}")
    return 0


def _list(arguments: argparse.Namespace) -> None:
    topics = run(arguments, lambda client: describe_topics(client, None))
    shown = [topic for topic in topics if arguments.internal or not topic.internal]
    if arguments.json:
        print_json(
            [
                {
                    "name": topic.name,
                    "id": uuid_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replication_factor": replication_factor(topic),
                    "internal": topic.internal,
                }
                for topic in shown
            ]
        )
        return
    print_table(
        ["topic", "partitions", "replicas"],
        [[topic.name, len(topic.partitions), replication_factor(topic)] for topic in shown],
    )


def _describe(arguments: argparse.Namespace) -> int:
    found = run(arguments, lambda client: _describe_all(client, arguments))
    described = [document for document, _ in found if document is not None]
    if arguments.json:
        print_json(described)
    else:
        for document in described:
            print_topic(document)
    return max((_complain("describe", *failure) for _, failure in found if failure), default=0)


async def _describe_all(
    client: ClusterClient, arguments: argparse.Namespace
) -> list[tuple[dict[str, Any] | None, tuple[str, RequestError] | None]]:
    """Return the document of each topic, or its name and failure."""
    names = arguments.topics or None
    topics = await describe_topics(client, names)
    ills = await _ills(client, topics, arguments)
    results: list[tuple[dict[str, Any] | None, tuple[str, RequestError] | None]] = []
    for topic in topics:
        if topic.error is not ErrorCode.NONE:
            results.append((None, (topic.name, RequestError(topic.error))))
            continue
        if ills is not None:
            ill = {n: view for n, view in topic.partitions.items() if ills(topic.name, view)}
            topic = replace(topic, partitions=ill)
            if not ill:
                continue
        if names is not None or ills is not None or not topic.internal:
            results.append((await describe_topic(client, topic), None))
    return results


async def _ills(
    client: ClusterClient, topics: list[TopicView], arguments: argparse.Namespace
) -> Callable[[str, PartitionView], bool] | None:
    """Return the filter for partitions, or None to show all."""
    if arguments.under_replicated:
        return lambda _, view: is_under_replicated(view)
    if arguments.unavailable:
        return lambda _, view: is_unavailable(view, client.cluster.brokers)
    if arguments.under_min_isr:
        least = await min_isr_of(client, [topic for topic in topics if not topic.error])
        return lambda name, view: is_under_min_isr(view, least[name])
    return None


def _alter(arguments: argparse.Namespace) -> int:
    counts = {arguments.topic: arguments.partitions}
    outcomes = run(arguments, lambda client: create_partitions(client, counts))
    if arguments.json:
        print_json(
            [
                {
                    "name": outcome.name,
                    "altered": outcome.error is None,
                    **_error_document(outcome.error),
                }
                for outcome in outcomes
            ]
        )
    failed = 0
    for outcome in outcomes:
        if outcome.error is not None:
            failed += _complain("alter", outcome.name, outcome.error)
        elif not arguments.json:
            print(f"topic {outcome.name} now has {arguments.partitions} partitions")
    return min(failed, 1)


def _delete(arguments: argparse.Namespace) -> int:
    outcomes = run(arguments, lambda client: delete_topics(client, arguments.topics))
    forgiven = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if arguments.if_exists else None
    if arguments.json:
        print_json(
            [
                {
                    "name": outcome.name,
                    "deleted": outcome.error is None,
                    **_error_document(outcome.error),
                }
                for outcome in outcomes
            ]
        )
    failed = 0
    for outcome in outcomes:
        if outcome.error is None:
            if not arguments.json:
                print(f"deleted topic {outcome.name}")
        elif outcome.error.code is forgiven:
            if not arguments.json:
                print(f"topic {outcome.name} does not exist")
        else:
            failed += _complain("delete", outcome.name, outcome.error)
    return min(failed, 1)


def _delete_records(arguments: argparse.Namespace) -> int:
    if isinstance(arguments.before, Beginning):
        raise InvalidValueError("--before beginning: must be an offset, a time, an age or end")
    outcomes = run(
        arguments,
        lambda client: _delete_before(
            client, arguments.topic, arguments.partition, arguments.before
        ),
    )
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, RequestError)]
    rows = [
        (partition.partition, outcome)
        for partition, outcome in outcomes.items()
        if not isinstance(outcome, RequestError)
    ]
    if arguments.json:
        print_json([{"partition": index, "earliest_offset": offset} for index, offset in rows])
    elif rows:
        print_table(["partition", "earliest"], rows)
    for failure in failures:
        print(f"barnabas topics delete-records: {failure} ({failure.code.name})", file=sys.stderr)
    return 1 if failures else 0


async def _delete_before(
    client: ClusterClient, topic: str, wanted: list[int] | None, position: Position
) -> dict[TopicPartition, int | RequestError]:
    partitions = await existing_partitions(client, topic, wanted)
    if isinstance(position, Offset):
        return await delete_records(client, dict.fromkeys(partitions, position.offset))
    if isinstance(position, End):
        return await delete_records(client, dict.fromkeys(partitions, HIGH_WATERMARK))
    assert not isinstance(position, Beginning)
    found = await list_offsets(client, dict.fromkeys(partitions, position.timestamp_ms))
    # -1: every record is older than the time, so all are deleted, as with `end`.
    return await delete_records(client, {key: answer.offset for key, answer in found.items()})


def _error_document(error: RequestError | None) -> dict[str, str]:
    return {} if error is None else {"error": error.code.name, "message": str(error)}


def _complain(action: str, topic: str, error: RequestError) -> int:
    print(f"barnabas topics {action}: {topic}: {error} ({error.code.name})", file=sys.stderr)
    return 1
