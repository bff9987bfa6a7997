"""`kafka-transactions`: list and describe transactions, find those that hang, and abort them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    HELP,
    VERSION,
    Flag,
    Flags,
    Given,
    UsageError,
)
from barnabas.cli.kafka.integers import whole_number

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient

FAILURE = ""

SUMMARY = "Show the state of transactional producers, detect hanging transactions and abort them."
COMMON = (BOOTSTRAP._replace(required=True), COMMAND_CONFIG)
LONG = {"-h": "--help", "-v": "--version"}
_TOPIC = Flag("--topic", "TOPIC", "a topic", required=True)
_PARTITION = Flag("--partition", "N", "a partition of it", whole_number, required=True)

COMMANDS = {
    "list": (
        "list transactions",
        Flag("--duration-filter", "MS", "only those that have run for longer", whole_number),
        Flag("--transactional-id-pattern", "REGEX", "only ids that match"),
    ),
    "describe": (
        "describe the state of an active transactional-id",
        Flag("--transactional-id", "ID", "a transactional id", required=True),
    ),
    "describe-producers": (
        "describe the states of active producers for a topic partition",
        _TOPIC,
        _PARTITION,
        Flag("--broker-id", "ID", "as this replica sees them", whole_number),
    ),
    "abort": (
        "abort a hanging transaction (requires administrative privileges)",
        _TOPIC,
        _PARTITION,
        Flag("--start-offset", "OFFSET", "the transaction's first offset", whole_number),
        Flag("--producer-id", "ID", "for brokers before 3.0", whole_number),
        Flag("--producer-epoch", "EPOCH", "for brokers before 3.0", whole_number),
        Flag("--coordinator-epoch", "EPOCH", "for brokers before 3.0", whole_number),
    ),
    "find-hanging": (
        "find hanging transactions",
        Flag("--broker-id", "ID", "on partitions of this broker", whole_number),
        Flag("--topic", "TOPIC", "on this topic"),
        Flag("--partition", "N", "on this partition of it", whole_number),
        Flag("--max-transaction-timeout", "MINUTES", "longest duration", whole_number, 15),
    ),
    "forceTerminateTransaction": (
        "force abort an ongoing transaction on transactionalId",
        Flag("--transactionalId", "ID", "a transactional id", required=True),
    ),
}


def main(words: Sequence[str]) -> int:
    """Run one action; what all of them need may stand before or after its name."""
    action, rest = _action([LONG.get(word, word) for word in words])
    if action is None:
        if "--help" in rest:
            print(overview(), end="")
            return 0
        if "--version" in rest:
            return _print_version()
        raise UsageError("too few arguments: expected one of " + ", ".join(COMMANDS))
    summary, *rows = COMMANDS[action]
    flags = Flags(f"Action {action}: {summary}.", (*COMMON, *rows))
    given = flags.parse(rest)
    if "help" in given:
        print(flags.help(f"barnabas kafka-transactions {action}"), end="")
        return 0
    if "version" in given:
        return _print_version()
    from barnabas.cli import session

    return session.run(given.connection(), partial(_WORK[action], given))


def overview() -> str:
    """Return what `--help` prints without an action."""
    lines = ["usage: barnabas kafka-transactions [OPTION]... ACTION [OPTION]...", "", SUMMARY, ""]
    width = max(map(len, COMMANDS))
    lines += ["actions:", *(f"  {name:<{width}}  {row[0]}" for name, row in COMMANDS.items()), ""]
    rows = (*COMMON, HELP, VERSION)
    shapes = {f"{row.name} {row.metavar}".strip(): row.help for row in rows}
    width = max(map(len, shapes))
    lines += ["options:", *(f"  {shape:<{width}}  {text}" for shape, text in shapes.items())]
    return "\n".join(lines) + "\n"


def _print_version() -> int:
    from barnabas.cli.kafka.command import version_line

    print(version_line())
    return 0


def _action(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the action, and the other words."""
    rest = list(words)
    position = 0
    while position < len(rest):
        word = rest[position]
        if not word.startswith("-"):
            if word not in COMMANDS:
                those = ", ".join(map(repr, COMMANDS))
                raise UsageError(f"invalid choice: {word!r} (choose from {those})")
            return rest.pop(position), rest
        takes_value = word in ("--bootstrap-server", "--command-config")
        position += 2 if takes_value else 1
    return None, rest


def _print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns with a tab after each, as Kafka's tool does."""
    lines = [list(head), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (f"{cell:<{width}}\t" for cell, width in zip(line, widths, strict=True))
        print("".join(padded))


def _failed(text: str) -> int:
    import sys

    print(f"{text}.", file=sys.stderr)
    return 1


async def _list(given: Given, client: ClusterClient) -> int:
    from barnabas.admin.settling import settled_or_raise
    from barnabas.admin.transactions import list_transactions_of

    duration = given["duration-filter"]
    listed = await list_transactions_of(
        client,
        running_ms_min=duration if duration is not None and duration >= 0 else None,
        pattern=given["transactional-id-pattern"],
    )
    rows = [
        (each.transactional_id, node_id, each.producer_id, each.state)
        for node_id, found in sorted(settled_or_raise(listed).items())
        for each in found
    ]
    _print_table(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)
    return 0


async def _describe(given: Given, client: ClusterClient) -> int:
    from barnabas.admin.transactions import describe_transaction
    from barnabas.model.errors import RequestError

    name = given["transactional-id"]
    try:
        state = await describe_transaction(client, name)
    except RequestError as failure:
        what = f"Failed to describe transaction state of transactional-id `{name}`"
        return _failed(f"{what}: {failure}")
    now_ms = int(time.time() * 1000)
    start, duration = (
        ("None", "None") if state.start_ms is None else (state.start_ms, now_ms - state.start_ms)
    )
    head = (
        "CoordinatorId",
        "TransactionalId",
        "ProducerId",
        "ProducerEpoch",
        "TransactionState",
        "TransactionTimeoutMs",
        "CurrentTransactionStartTimeMs",
        "TransactionDurationMs",
        "TopicPartitions",
    )
    row = (
        state.coordinator_id,
        name,
        state.producer_id,
        state.producer_epoch,
        state.state,
        state.timeout_ms,
        start,
        duration,
        ",".join(map(str, state.partitions)),
    )
    _print_table(head, [row])
    return 0


async def _describe_producers(given: Given, client: ClusterClient) -> int:
    from barnabas.admin.producers import describe_producers
    from barnabas.model.errors import RequestError
    from barnabas.model.ids import TopicPartition

    key, broker = TopicPartition(given["topic"], given["partition"]), given["broker-id"]
    try:
        producers = (await describe_producers(client, [key], broker_id=broker))[key]
    except RequestError as failure:
        who = "leader" if broker is None else f"broker {broker}"
        return _failed(f"Failed to describe producers for partition {key} on {who}: {failure}")
    head = (
        "ProducerId",
        "ProducerEpoch",
        "LatestCoordinatorEpoch",
        "LastSequence",
        "LastTimestamp",
        "CurrentTransactionStartOffset",
    )
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp_ms,
            each.transaction_start_offset,
        )
        for each in producers
    ]
    _print_table(head, rows)
    return 0


async def _abort(given: Given, client: ClusterClient) -> int:
    from barnabas.admin.transactions import OpenTransaction, abort_transaction, open_transactions
    from barnabas.model.errors import RequestError
    from barnabas.model.ids import TopicPartition

    key, start = TopicPartition(given["topic"], given["partition"]), given["start-offset"]
    if start is None:
        if given["producer-id"] is None:
            raise UsageError(
                "The transaction to abort must be identified either with --start-offset (for "
                "brokers on 3.0 or above) or with --producer-id, --producer-epoch, and "
                "--coordinator-epoch (for older brokers)"
            )
        for name in ("producer-epoch", "coordinator-epoch"):
            if given[name] is None:
                raise UsageError(f"Missing required argument --{name}")
        who = (given["producer-id"], given["producer-epoch"], given["coordinator-epoch"])
        opened = OpenTransaction(key, *who, -1, -1)
    else:
        try:
            found = await open_transactions(client, [key])
        except RequestError as failure:
            return _failed(f"Failed to validate producer state for partition {key}: {failure}")
        matching = [each for each in found if each.start_offset == start]
        if not matching:
            what = "Could not find any open transactions starting at offset"
            return _failed(f"{what} {start} on partition {key}")
        opened = matching[0]
    try:
        await abort_transaction(client, opened)
    except RequestError as failure:
        return _failed(f"Failed to abort transaction on {key}: {failure}")
    return 0


async def _find_hanging(given: Given, client: ClusterClient) -> int:
    from barnabas.admin.hanging import find_hanging

    topic, partition = given["topic"], given["partition"]
    if topic is None and given["broker-id"] is None:
        raise UsageError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope "
            "of the search"
        )
    if partition is not None and topic is None:
        raise UsageError("The --partition argument requires --topic to be provided")
    now_ms = int(time.time() * 1000)
    since_ms = now_ms - given["max-transaction-timeout"] * 60_000
    found = await find_hanging(client, topic, given["broker-id"], since_ms)
    head = (
        "Topic",
        "Partition",
        "ProducerId",
        "ProducerEpoch",
        "CoordinatorEpoch",
        "StartOffset",
        "LastTimestamp",
        "Duration(min)",
    )
    rows = [
        (
            *each.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.start_offset,
            each.last_timestamp_ms,
            (now_ms - each.last_timestamp_ms) // 60_000,
        )
        for each in found
        if partition in (None, each.partition.partition)
    ]
    _print_table(head, rows)
    return 0


async def _terminate(given: Given, client: ClusterClient) -> int:
    from barnabas.admin.producers import fence_producers
    from barnabas.model.errors import RequestError

    name = given["transactionalId"]
    outcome = (await fence_producers(client, [name]))[name]
    if isinstance(outcome, RequestError):
        return _failed(f"Failed to force terminate transactionalId `{name}`: {outcome}")
    return 0


_WORK: dict[str, Callable[[Given, ClusterClient], Awaitable[int]]] = {
    "list": _list,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "abort": _abort,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _terminate,
}
