"""`barnabas groups`: list and describe consumer groups, reset their offsets, delete them."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from barnabas.admin.group_offsets import CommittedOffset, commit_offsets, group_offsets
from barnabas.admin.groups import (
    GroupDescription,
    GroupMember,
    delete_groups,
    describe_group,
    list_groups,
)
from barnabas.admin.lag import Lag, lag_of
from barnabas.cli.arguments import add_action
from barnabas.cli.offset_reset import (
    bounds,
    find_goals,
    parse_goal,
    read_offsets,
    within,
    write_offsets,
)
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import existing_partitions
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition

INACTIVE = ("Empty", "Dead")
"""States in which only an administrator commits offsets."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    list_ = add_action(
        actions,
        "list",
        "list groups",
        _list,
        "  barnabas groups list\n  barnabas groups list --state Stable --json",
    )
    list_.add_argument(
        "--state", action="append", default=[], help="only groups in this state; may be repeated"
    )
    list_.add_argument(
        "--type", action="append", default=[], help="only groups of this type: classic or consumer"
    )
    describe = add_action(
        actions,
        "describe",
        "show members, committed offsets and lag",
        _describe,
        "  barnabas groups describe billing\n  barnabas groups describe billing --members --json",
    )
    describe.add_argument("groups", metavar="GROUP", nargs="+")
    describe.add_argument("--members", action="store_true", help="show one line per member")
    reset = add_action(
        actions,
        "reset-offsets",
        "show the new offsets, and commit them with --execute",
        _reset,
        "  barnabas groups reset-offsets billing --topic orders --to earliest\n"
        "  barnabas groups reset-offsets billing --topic orders:0,2 --to 2h --execute\n"
        "  barnabas groups reset-offsets billing --all-topics --to=-100 --execute\n"
        "  barnabas groups reset-offsets billing --all-topics --to current --export > before.csv\n"
        "  barnabas groups reset-offsets billing --from-file before.csv --execute",
    )
    reset.add_argument("group", metavar="GROUP")
    goal = reset.add_mutually_exclusive_group(required=True)
    goal.add_argument(
        "--to",
        metavar="POSITION",
        type=lambda text: parse_goal(text, int(time.time() * 1000)),
        help="earliest, latest, current, an offset, a time (2026-01-31T12:00:00Z), an age (2h), "
        "or a step (+100, --to=-100)",
    )
    goal.add_argument(
        "--from-file", metavar="FILE", type=Path, help="read lines of topic,partition,offset"
    )
    reset.add_argument(
        "--topic",
        metavar="TOPIC[:N,...]",
        action="append",
        default=[],
        help="a topic, or some of its partitions; may be repeated",
    )
    reset.add_argument(
        "--all-topics", action="store_true", help="every partition with a committed offset"
    )
    reset.add_argument(
        "--execute", action="store_true", help="commit the offsets (default: only show them)"
    )
    reset.add_argument("--export", action="store_true", help="print lines for --from-file")
    delete = add_action(
        actions,
        "delete",
        "delete groups without members, and their offsets",
        _delete,
        "  barnabas groups delete billing\n  barnabas groups delete billing audit --if-exists",
    )
    delete.add_argument("groups", metavar="GROUP", nargs="+")
    delete.add_argument("--if-exists", action="store_true", help="a missing group is not an error")


# list


def _list(arguments: argparse.Namespace) -> None:
    groups = run(arguments, lambda client: list_groups(client, arguments.state, arguments.type))
    if arguments.json:
        print_json(
            [
                {
                    "name": group.name,
                    "state": group.state,
                    "type": group.type,
                    "protocol_type": group.protocol_type,
                }
                for group in groups
            ]
        )
        return
    print_table(
        ["group", "state", "type", "protocol"],
        [
            [group.name, group.state, group.type or None, group.protocol_type or None]
            for group in groups
        ],
    )


# describe


def _describe(arguments: argparse.Namespace) -> int:
    described, failures = run(arguments, lambda client: _describe_all(client, arguments.groups))
    if arguments.json:
        print_json([_document(group, lags) for group, lags in described])
    else:
        for group, lags in described:
            _print_group(group, lags, by_member=arguments.members)
    for name, failure in failures:
        _complain("describe", name, failure)
    return 1 if failures else 0


Described = tuple[GroupDescription, dict[TopicPartition, Lag]]


async def _describe_all(
    client: ClusterClient, names: list[str]
) -> tuple[list[Described], list[tuple[str, RequestError]]]:
    described: list[Described] = []
    failures: list[tuple[str, RequestError]] = []
    for name in dict.fromkeys(names):
        try:
            group = await describe_group(client, name)
            offsets = await group_offsets(client, name)
            lags = await lag_of(client, await _existing(client, offsets), int(time.time() * 1000))
        except RequestError as failure:
            failures.append((name, failure))
        else:
            described.append((group, lags))
    return described, failures


async def _existing(
    client: ClusterClient, offsets: dict[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, CommittedOffset]:
    """Skip offsets of deleted topics: they have no log to compare with."""
    view = await client.refresh(dict.fromkeys(partition.topic for partition in offsets))
    return {key: offset for key, offset in offsets.items() if view.partition(key) is not None}


def _owners(group: GroupDescription) -> dict[TopicPartition, GroupMember]:
    return {partition: member for member in group.members for partition in member.partitions or ()}


def _print_group(
    group: GroupDescription, lags: dict[TopicPartition, Lag], *, by_member: bool
) -> None:
    title = f"group {group.name}: {group.state}, {group.type}"
    if group.assignor:
        title += f", {group.assignor}"
    title += f", {len(group.members)} members, coordinator {group.coordinator_id}"
    if by_member:
        print_table(
            ["member", "instance", "client", "host", "partitions"],
            [
                [
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.host,
                    _partitions_text(member),
                ]
                for member in group.members
            ],
            title=title,
        )
        return
    owners = _owners(group)
    rows: list[list[object]] = []
    for partition in sorted({*lags, *owners}):
        lag, owner = lags.get(partition), owners.get(partition)
        rows.append(
            [
                partition.topic,
                partition.partition,
                lag.committed if lag else None,
                lag.end if lag else None,
                lag.records if lag else None,
                _seconds_text(lag),
                owner.member_id if owner else None,
                owner.host if owner else None,
                owner.client_id if owner else None,
            ]
        )
    columns = ["topic", "partition", "committed", "end", "lag", "lag s"]
    print_table([*columns, "member", "host", "client"], rows, title=title)


def _partitions_text(member: GroupMember) -> str | None:
    if member.partitions is None:
        return None
    topics: dict[str, list[str]] = {}
    for partition in sorted(member.partitions):
        topics.setdefault(partition.topic, []).append(str(partition.partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())


def _seconds_text(lag: Lag | None) -> str | None:
    if lag is None:
        return None
    return "0" if lag.waiting_ms is None else f"{lag.waiting_ms / 1000:.1f}"


def _document(group: GroupDescription, lags: dict[TopicPartition, Lag]) -> dict[str, Any]:
    owners = _owners(group)
    return {
        "name": group.name,
        "state": group.state,
        "type": group.type,
        "assignor": group.assignor,
        "coordinator": group.coordinator_id,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "partitions": None
                if member.partitions is None
                else [[each.topic, each.partition] for each in sorted(member.partitions)],
            }
            for member in group.members
        ],
        "offsets": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "committed": lag.committed,
                "end": lag.end,
                "lag": lag.records,
                "lag_seconds": 0 if lag.waiting_ms is None else lag.waiting_ms / 1000,
                "member_id": owners[partition].member_id if partition in owners else None,
            }
            for partition, lag in lags.items()
        ],
    }


# reset-offsets


def _reset(arguments: argparse.Namespace) -> int:
    if arguments.from_file is None and bool(arguments.topic) == arguments.all_topics:
        raise InvalidValueError("nothing to reset: use --topic (may be repeated) or --all-topics")
    before, after, failures = run(arguments, lambda client: _reset_offsets(client, arguments))
    done = {key: offset for key, offset in after.items() if failures.get(key) is None}
    if arguments.export:
        write_offsets(done, sys.stdout)
    elif arguments.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    "before": before.get(key),
                    "after": offset,
                    "executed": arguments.execute,
                }
                for key, offset in sorted(done.items())
            ]
        )
    else:
        print_table(
            ["topic", "partition", "before", "after"],
            [
                [key.topic, key.partition, before.get(key), offset]
                for key, offset in sorted(done.items())
            ],
        )
        if not arguments.execute:
            print("nothing was changed; use --execute to commit these offsets")
    failed = [failure for failure in failures.values() if failure is not None]
    for failure in failed:
        _complain("reset-offsets", arguments.group, failure)
    return 1 if failed else 0


async def _reset_offsets(
    client: ClusterClient, arguments: argparse.Namespace
) -> tuple[
    dict[TopicPartition, int], dict[TopicPartition, int], dict[TopicPartition, RequestError | None]
]:
    """Return the offsets before and after, and the failures."""
    name = arguments.group
    if arguments.execute:
        await _expect_inactive(client, name)
    committed = {key: each.offset for key, each in (await group_offsets(client, name)).items()}
    if arguments.from_file is not None:
        with arguments.from_file.open(newline="") as file:
            wanted = read_offsets(file)
        for topic in dict.fromkeys(partition.topic for partition in wanted):
            numbers = [each.partition for each in wanted if each.topic == topic]
            await existing_partitions(client, topic, numbers)
        after = within(wanted, *await bounds(client, wanted))
    else:
        partitions = await _named(client, arguments.topic, committed)
        after = await find_goals(client, partitions, committed, arguments.to)
    failures: dict[TopicPartition, RequestError | None] = {}
    if arguments.execute and after:
        failures = await commit_offsets(client, name, after)
    return committed, after, failures


async def _expect_inactive(client: ClusterClient, name: str) -> None:
    try:
        group = await describe_group(client, name)
    except RequestError as failure:
        if failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return  # its first commit creates it
        raise
    if group.state not in INACTIVE:
        raise RequestError(
            ErrorCode.NON_EMPTY_GROUP,
            f"group {name!r} is {group.state} with {len(group.members)} members; stop them first",
        )


async def _named(
    client: ClusterClient, texts: list[str], committed: dict[TopicPartition, int]
) -> list[TopicPartition]:
    """Return the given partitions, or all with a committed offset."""
    if not texts:
        return sorted(committed)
    partitions: list[TopicPartition] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        try:
            wanted = [int(number) for number in numbers.split(",")] if colon else None
        except ValueError:
            raise InvalidValueError(f"{text!r} is not TOPIC or TOPIC:0,1,...") from None
        partitions += await existing_partitions(client, topic, wanted)
    return partitions


# delete


def _delete(arguments: argparse.Namespace) -> int:
    outcomes = run(arguments, lambda client: delete_groups(client, arguments.groups))
    if arguments.json:
        print_json(
            [
                {
                    "name": name,
                    "deleted": error is None,
                    **({} if error is None else {"error": _code(error), "message": str(error)}),
                }
                for name, error in outcomes.items()
            ]
        )
    forgiven = ErrorCode.GROUP_ID_NOT_FOUND if arguments.if_exists else None
    failed = 0
    for name, error in outcomes.items():
        if error is None:
            if not arguments.json:
                print(f"deleted group {name}")
        elif getattr(error, "code", None) is forgiven and forgiven is not None:
            if not arguments.json:
                print(f"group {name} does not exist")
        else:
            failed += _complain("delete", name, error)
    return min(failed, 1)


def _code(error: BarnabasError) -> str | None:
    return error.code.name if isinstance(error, RequestError) else None


def _complain(action: str, name: str, error: BarnabasError) -> int:
    code = f" ({error.code.name})" if isinstance(error, RequestError) else ""
    text = str(error).removeprefix(f"{name}: ")  # a group's own failure starts with its name
    print(f"barnabas groups {action}: {name}: {text}{code}", file=sys.stderr)
    return 1
