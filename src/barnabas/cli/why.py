"""`barnabas why`: why something is as it is: its present state with reasons, and what happened."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable, Iterable

from barnabas.admin.diary import read_diary
from barnabas.cli.arguments import add_action, count, index
from barnabas.cli.diary import document, lines, since
from barnabas.cli.output import print_json
from barnabas.cli.present_state import (
    broker_state,
    client_state,
    group_state,
    partition_state,
    topic_state,
)
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.diary import subjects
from barnabas.diary.entry import Entry
from barnabas.metadata.partition_for import partition_for
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

LIMIT = 20
OFFSETS_TOPIC = "__consumer_offsets"

State = Callable[[ClusterClient, list[Entry]], Awaitable[list[str]]]
"""Returns the present state in sentences; the entries are those about its subject."""

Concerns = Callable[[Entry], bool]


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
    subject = subjects.group(name)

    def is_about(entry: Entry) -> bool:
        return entry.subject == subject

    async def state(client: ClusterClient, entries: list[Entry]) -> list[str]:
        return await group_state(client, name, entries)

    async def wider(client: ClusterClient) -> Concerns:
        """Include the partition that stores the group: its leader is the group's coordinator."""
        view = await client.refresh([OFFSETS_TOPIC])
        topic = view.topics.get(OFFSETS_TOPIC)
        if topic is None or not topic.partitions:
            return is_about
        own = subjects.partition(OFFSETS_TOPIC, partition_for(name, len(topic.partitions)))
        return lambda entry: (
            is_about(entry)
            or (entry.subject == own and entry.event in ("leader.elected", "partition.offline"))
        )

    return _answer(arguments, subject, wider, state)


def _partition(arguments: argparse.Namespace) -> int:
    key: TopicPartition = arguments.name
    subject = subjects.partition(*key)
    return _answer(
        arguments,
        subject,
        _fixed(lambda entry: entry.subject == subject or entry.data.get("partition") == subject),
        lambda client, entries: partition_state(client, key, entries),
    )


def _client(arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    return _answer(
        arguments,
        f"client {name}",
        _fixed(lambda entry: entry.concerns(name)),
        lambda client, entries: client_state(client, name, entries),
    )


def _broker(arguments: argparse.Namespace) -> int:
    number: int = arguments.number
    subject = subjects.broker(number)
    named = ("leader", "previous")

    def concerns(entry: Entry) -> bool:
        return (
            entry.subject == subject
            or any(entry.data.get(name) == number for name in named)
            or number in entry.data.get("removed", ())
            or any(
                isinstance(each, dict) and each.get("id") == number
                for each in entry.data.get("replicas", ())
            )
        )

    return _answer(
        arguments,
        subject,
        _fixed(concerns),
        lambda client, entries: broker_state(client, number, entries),
    )


def _topic(arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    own = subjects.topic(name)

    def concerns(entry: Entry) -> bool:
        return (
            entry.subject == own
            or _topic_of(entry.subject) == name
            or _topic_of(str(entry.data.get("partition", ""))) == name
        )

    return _answer(
        arguments,
        own,
        _fixed(concerns),
        lambda client, entries: topic_state(client, name, entries),
    )


def _topic_of(partition: str) -> str | None:
    topic, _, number = partition.rpartition("-")
    return topic if number.isdecimal() and ":" not in topic else None


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
