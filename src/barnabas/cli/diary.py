"""`barnabas diary`: what the brokers of a cluster decided, when and why."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from barnabas.admin.diary import follow_diary, read_diary
from barnabas.cli.arguments import add_connection, count
from barnabas.cli.output import print_json
from barnabas.cli.position import parse_time
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.diary.entry import Entry
from barnabas.diary.sentences import sentence
from barnabas.diary.wording import moment

EXAMPLES = """\
examples:
  barnabas diary
  barnabas diary --since 2h --event group
  barnabas diary --subject orders-3
  barnabas diary --subject group:billing --json
  barnabas diary --follow

Entries are about partitions (orders-3), topics (topic:orders), groups (group:billing), brokers
(broker:2), clients (client:User:app@10.0.0.7) and transactional ids (transaction:app-1). The newest
comes first, with --follow the oldest. Reading takes READ on topic __barnabas_diary. `barnabas why`
answers questions about one of them.
"""

LIMIT = 100
ALIKE_MS = 1_000
NAMED_MAX = 3
"""How many further partitions a line names."""
NO_ENTRIES = "no entries; brokers keep the diary unless barnabas.diary.enable=false"


def since(text: str) -> int:
    """Parse a time, or an age, to milliseconds since 1970."""
    found = parse_time(text, int(time.time() * 1000))
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an age (15m, 2h, 1d) nor a time (2026-01-31T12:00:00Z)"
        )
    return found


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_diary)
    parser.add_argument(
        "--subject", metavar="SUBJECT", help="only entries about this: orders-3, group:billing, …"
    )
    parser.add_argument(
        "--event",
        metavar="EVENT",
        help="only this event (group.rebalance), or all of a kind (group, isr, leader, reject, …)",
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=since,
        help="only entries since a time (2026-01-31T12:00:00Z), or of the last so long (15m, 2h)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=count,
        default=LIMIT,
        help=f"at most so many entries, the newest (default: {LIMIT})",
    )
    parser.add_argument(
        "--follow", action="store_true", help="print entries as they come, until interrupted"
    )
    add_connection(parser)


def _diary(arguments: argparse.Namespace) -> None:
    if arguments.follow:
        run(arguments, lambda client: _follow(client, arguments))
        return
    entries = run(arguments, lambda client: read_diary(client, arguments.since))
    chosen = [entry for entry in reversed(entries) if _is_wanted(entry, arguments)]
    if arguments.json:
        print_json([document(entry) for entry in chosen[: arguments.limit]])
        return
    for text in lines(chosen[: arguments.limit]):
        print(text)
    if not entries:
        print(NO_ENTRIES, file=sys.stderr)
    elif len(chosen) > arguments.limit:
        print(f"{len(chosen) - arguments.limit} older entries; see --limit", file=sys.stderr)


async def _follow(client: ClusterClient, arguments: argparse.Namespace) -> None:
    start_ms = arguments.since if arguments.since is not None else int(time.time() * 1000)
    async for entry in follow_diary(client, start_ms):
        if _is_wanted(entry, arguments):
            text = json.dumps(document(entry)) if arguments.json else line(entry)
            print(text, flush=True)


def _is_wanted(entry: Entry, arguments: argparse.Namespace) -> bool:
    event: str | None = arguments.event
    return (arguments.subject is None or entry.subject == arguments.subject) and (
        event is None or entry.event == event or entry.event.startswith(f"{event}.")
    )


def line(entry: Entry, *, subject: bool = True) -> str:
    """Return an entry as a line for people."""
    text = sentence(entry.event, entry.cause, entry.data)
    if entry.count > 1:
        text += f" ({entry.count} times until {moment(entry.last_ms)})"
    about = f"{entry.subject}  " if subject else ""
    return f"{moment(entry.at_ms)}  {about}{text}"


def lines(entries: list[Entry], subject: str | None = None) -> Iterator[str]:
    """Yield entries as lines; what happened to many partitions for one reason is one line.

    The subject is left out where it is the given one.
    """
    start = 0
    while start < len(entries):
        first = entries[start]
        end = start + 1
        while end < len(entries) and _is_alike(first, entries[end]):
            end += 1
        text = line(first, subject=first.subject != subject)
        others = [entry.subject for entry in entries[start + 1 : end]]
        if others:
            named = ", ".join(others[:NAMED_MAX])
            more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
            text += f"; likewise {named}{more}"
        yield text
        start = end


def _is_alike(one: Entry, other: Entry) -> bool:
    """Return whether the same happened to another partition at the same time."""
    return (
        ":" not in one.subject + other.subject
        and (one.event, one.cause, one.broker) == (other.event, other.cause, other.broker)
        and one.subject != other.subject
        and abs(one.at_ms - other.at_ms) <= ALIKE_MS
        and all(one.data.get(name) == other.data.get(name) for name in ("removed", "previous"))
        and (one.event != "leader.elected" or one.data.get("leader") == other.data.get("leader"))
    )


def document(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "at": entry.at_ms,
        "broker": entry.broker,
        "event": entry.event,
        "subject": entry.subject,
        "cause": entry.cause,
        "count": entry.count,
        "last": entry.last_ms,
        "data": entry.data,
        "sentence": sentence(entry.event, entry.cause, entry.data),
    }
