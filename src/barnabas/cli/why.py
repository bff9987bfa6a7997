"""`barnabas why`: why something is as it is: its present state with reasons, and what happened."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable, Iterable

from barnabas.admin.diary import read_diary
from barnabas.admin.present_state import (
    broker_state,
    client_state,
    group_state,
    partition_state,
    topic_state,
)
from barnabas.cli.arguments import add_action, count, index
from barnabas.cli.diary import document, lines, since
from barnabas.cli.output import print_json
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.diary import subjects
from barnabas.diary.concerns import (
    Concerns,
    about_broker,
    about_client,
    about_group,
    about_partition,
    about_topic,
)
from barnabas.diary.entry import Entry
from barnabas.metadata.partition_for import partition_for
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

LIMIT = 20
OFFSETS_TOPIC = "__consumer_offsets"

State = Callable[[ClusterClient, list[Entry]], Awaitable[list[str]]]
"""Returns the present state in sentences; the entries are those about its subject."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    parser.epilog = (
        "Each answer is the present state with its reasons, then what happened, the newest first,\n"
        "from the cluster's diary (`barnabas diary`). Reading it takes READ on topic\n"
        "__barnabas_diary; the present state takes what describing the subject takes."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    group = _add(
        actions,
        "group",
        "say why a group rebalanced, lags or has no members",
        _group,
        "  barnabas why group billing\n  barnabas why group billing --since 2h --json",
    )
    group.add_argument("name", metavar="GROUP")
    partition = _add(
        actions,
        "partition",
        "say why a partition has its leader, why replicas are not in sync, what retention does",
        _partition,
        "  barnabas why partition orders-3\n  barnabas why partition orders-3 --since 1d",
    )
    partition.add_argument("name", metavar="TOPIC-N", type=_topic_partition)
    client = _add(
        actions,
        "client",
        "say why a client was rejected, denied or throttled",
        _client,
        "  barnabas why client 10.0.0.7\n  barnabas why client billing-app\n"
        "  barnabas why client User:alice",
    )
    client.add_argument("name", metavar="HOST|ID|PRINCIPAL")
    broker = _add(
        actions,
        "broker",
        "say what happened to a broker, and what is wrong with its replicas",
        _broker,
        "  barnabas why broker 2",
    )
    broker.add_argument("number", metavar="ID", type=index)
    topic = _add(
        actions,
        "topic",
        "say what happened to a topic: changes, leaders, segments, rejected records",
        _topic,
        "  barnabas why topic orders",
    )
    topic.add_argument("name", metavar="TOPIC")


def _add(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    answer: Callable[[argparse.Namespace], int | None],
    examples: str,
) -> argparse.ArgumentParser:
    parser = add_action(actions, name, summary, answer, examples)
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=since,
        help="only what happened since a time, or in the last so long (15m, 2h, 1d)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=count,
        default=LIMIT,
        help=f"at most so many entries, the newest (default: {LIMIT})",
    )
    return parser


def _topic_partition(text: str) -> TopicPartition:
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form TOPIC-N, like orders-3")
    return TopicPartition(topic, int(number))


# -- what each one is about


def _group(arguments: argparse.Namespace) -> int:
    name: str = arguments.name

    async def state(client: ClusterClient, entries: list[Entry]) -> list[str]:
        return await group_state(client, name, entries)

    async def concerns(client: ClusterClient) -> Concerns:
        view = await client.refresh([OFFSETS_TOPIC])
        topic = view.topics.get(OFFSETS_TOPIC)
        if topic is None or not topic.partitions:
            return about_group(name)
        number = partition_for(name, len(topic.partitions))
        return about_group(name, subjects.partition(OFFSETS_TOPIC, number))

    return _answer(arguments, subjects.group(name), concerns, state)


def _partition(arguments: argparse.Namespace) -> int:
    key: TopicPartition = arguments.name
    return _answer(
        arguments,
        subjects.partition(*key),
        _fixed(about_partition(*key)),
        lambda client, entries: partition_state(client, key, entries),
    )


def _client(arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    return _answer(
        arguments,
        f"client {name}",
        _fixed(about_client(name)),
        lambda client, entries: client_state(client, name, entries),
    )


def _broker(arguments: argparse.Namespace) -> int:
    number: int = arguments.number
    return _answer(
        arguments,
        subjects.broker(number),
        _fixed(about_broker(number)),
        lambda client, entries: broker_state(client, number, entries),
    )


def _topic(arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    return _answer(
        arguments,
        subjects.topic(name),
        _fixed(about_topic(name)),
        lambda client, entries: topic_state(client, name, entries),
    )


def _fixed(concerns: Concerns) -> Callable[[ClusterClient], Awaitable[Concerns]]:
    async def found(client: ClusterClient) -> Concerns:
        return concerns

    return found


# -- the answer


def _answer(
    arguments: argparse.Namespace,
    subject: str,
    find: Callable[[ClusterClient], Awaitable[Concerns]],
    state: State,
) -> int:
    async def ask(client: ClusterClient) -> tuple[list[str], list[Entry]]:
        concerns = await find(client)
        entries = [each for each in await read_diary(client, arguments.since) if concerns(each)]
        entries.reverse()
        return await state(client, entries), entries

    try:
        present, entries = run(arguments, ask)
    except InvalidValueError as missing:
        print(f"barnabas why: {missing}", file=sys.stderr)
        return 1
    shown = entries[: arguments.limit]
    if arguments.json:
        print_json(
            {
                "subject": subject,
                "at": int(time.time() * 1000),
                "now": present,
                "entries": [document(entry) for entry in shown],
            }
        )
        return 0
    _print(present, shown, len(entries) - len(shown), subject)
    return 0


def _print(present: Iterable[str], entries: list[Entry], more: int, subject: str) -> None:
    print("now:")
    for text in present:
        print(f"  {text}")
    print("what happened:" if entries else "what happened: the diary has no entry about it")
    for text in lines(entries, subject):
        print(f"  {text}")
    if more > 0:
        print(f"  and {more} earlier; see --limit")
