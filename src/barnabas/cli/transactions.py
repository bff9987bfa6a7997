"""`barnabas transactions`: list and describe transactional ids, abort hanging transactions."""

from __future__ import annotations

import argparse
import sys
import time

from barnabas.admin.hanging import find_hanging
from barnabas.admin.transactions import (
    DescribedTransaction,
    OpenTransaction,
    abort_transaction,
    describe_transaction,
    list_transactions,
    open_transactions,
)
from barnabas.cli.arguments import add_action, index
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import existing_partitions
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    list_ = add_action(
        actions,
        "list",
        "list transactional ids",
        _list,
        "  barnabas transactions list\n  barnabas transactions list --state Ongoing --json",
    )
    list_.add_argument(
        "--state", action="append", default=[], help="only ids in this state; may be repeated"
    )
    describe = add_action(
        actions,
        "describe",
        "show state, producer and partitions of transactional ids",
        _describe,
        "  barnabas transactions describe payments-1",
    )
    describe.add_argument("ids", metavar="ID", nargs="+")
    hanging = add_action(
        actions,
        "open",
        "show open transactions on a topic, as its leaders report them",
        _open,
        "  barnabas transactions open orders\n  barnabas transactions open orders --json",
    )
    hanging.add_argument("topic", metavar="TOPIC")
    find = add_action(
        actions,
        "find-hanging",
        "find open transactions that no coordinator will end",
        _find_hanging,
        "  barnabas transactions find-hanging\n"
        "  barnabas transactions find-hanging --topic orders --max-transaction-timeout 60",
    )
    find.add_argument("--topic", metavar="TOPIC", help="only on this topic (default: all)")
    find.add_argument(
        "--broker", metavar="ID", type=index, help="only on partitions that this broker leads"
    )
    find.add_argument(
        "--max-transaction-timeout",
        metavar="MINUTES",
        type=index,
        default=15,
        help="maximum duration of a transaction; those with newer records are ignored "
        "(default: 15, as transaction.max.timeout.ms)",
    )
    abort = add_action(
        actions,
        "abort",
        "abort a transaction on one partition, regardless of its coordinator",
        _abort,
        "  barnabas transactions open orders\n"
        "  barnabas transactions abort orders --partition 0 --start-offset 1500",
    )
    abort.add_argument("topic", metavar="TOPIC")
    abort.add_argument(
        "--partition",
        metavar="N",
        type=index,
        required=True,
        help="partition on which the transaction is open",
    )
    abort.add_argument(
        "--start-offset",
        metavar="OFFSET",
        type=index,
        required=True,
        help="its first offset there, as shown by `barnabas transactions open`",
    )


def _list(arguments: argparse.Namespace) -> None:
    listed = run(arguments, lambda client: list_transactions(client, arguments.state))
    if arguments.json:
        print_json(
            [
                {
                    "id": each.transactional_id,
                    "state": each.state,
                    "producer_id": each.producer_id,
                    "coordinator": each.coordinator_id,
                }
                for each in listed
            ]
        )
        return
    print_table(
        ["id", "state", "producer", "coordinator"],
        [
            [each.transactional_id, each.state, each.producer_id, each.coordinator_id]
            for each in listed
        ],
    )


def _describe(arguments: argparse.Namespace) -> int:
    described, failures = run(arguments, lambda client: _describe_all(client, arguments.ids))
    now_ms = int(time.time() * 1000)
    if arguments.json:
        print_json(
            [
                {
                    "id": each.transactional_id,
                    "state": each.state,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                    "coordinator": each.coordinator_id,
                    "timeout_ms": each.timeout_ms,
                    "start_ms": each.start_ms,
                    "partitions": [[key.topic, key.partition] for key in each.partitions],
                }
                for each in described
            ]
        )
    elif described:
        columns = ["id", "state", "producer", "epoch", "coordinator", "timeout ms", "open s"]
        print_table(
            [*columns, "partitions"],
            [
                [
                    each.transactional_id,
                    each.state,
                    each.producer_id,
                    each.producer_epoch,
                    each.coordinator_id,
                    each.timeout_ms,
                    _open_s(each, now_ms),
                    " ".join(str(key) for key in each.partitions) or None,
                ]
                for each in described
            ],
        )
    for name, failure in failures:
        message = f"{name}: {failure} ({failure.code.name})"
        print(f"barnabas transactions describe: {message}", file=sys.stderr)
    return 1 if failures else 0


def _open_s(each: DescribedTransaction, now_ms: int) -> int | None:
    """Return for how many seconds a transaction is open; None if it is not.

    One that has ended still reports when it began.
    """
    if each.start_ms is None or not each.partitions:
        return None
    return max(now_ms - each.start_ms, 0) // 1000


async def _describe_all(
    client: ClusterClient, ids: list[str]
) -> tuple[list[DescribedTransaction], list[tuple[str, RequestError]]]:
    described: list[DescribedTransaction] = []
    failures: list[tuple[str, RequestError]] = []
    for name in dict.fromkeys(ids):
        try:
            described.append(await describe_transaction(client, name))
        except RequestError as failure:
            failures.append((name, failure))
    return described, failures


def _open(arguments: argparse.Namespace) -> None:
    found = run(arguments, lambda client: _find_open(client, arguments.topic, None))
    now_ms = int(time.time() * 1000)
    if arguments.json:
        print_json([_document(each) for each in found])
        return
    print_table(
        ["partition", "start offset", "producer", "epoch", "idle s"],
        [_row(each, now_ms) for each in found],
    )


def _find_hanging(arguments: argparse.Namespace) -> None:
    now_ms = int(time.time() * 1000)
    silent_since_ms = now_ms - arguments.max_transaction_timeout * 60_000

    async def find(client: ClusterClient) -> list[OpenTransaction]:
        if arguments.topic is not None:
            await existing_partitions(client, arguments.topic, None)  # raises if there is none
        return await find_hanging(client, arguments.topic, arguments.broker, silent_since_ms)

    found = run(arguments, find)
    if arguments.json:
        print_json([{"topic": each.partition.topic, **_document(each)} for each in found])
        return
    print_table(
        ["topic", "partition", "start offset", "producer", "epoch", "idle s"],
        [[each.partition.topic, *_row(each, now_ms)] for each in found],
    )


def _document(opened: OpenTransaction) -> dict[str, int]:
    return {
        "partition": opened.partition.partition,
        "start_offset": opened.start_offset,
        "producer_id": opened.producer_id,
        "producer_epoch": opened.producer_epoch,
        "coordinator_epoch": opened.coordinator_epoch,
        "last_timestamp_ms": opened.last_timestamp_ms,
    }


def _row(opened: OpenTransaction, now_ms: int) -> list[int]:
    return [
        opened.partition.partition,
        opened.start_offset,
        opened.producer_id,
        opened.producer_epoch,
        max(now_ms - opened.last_timestamp_ms, 0) // 1000,
    ]


def _abort(arguments: argparse.Namespace) -> None:
    aborted = run(arguments, lambda client: _abort_at(client, arguments))
    if arguments.json:
        print_json({"producer_id": aborted.producer_id, "producer_epoch": aborted.producer_epoch})
    else:
        print(f"aborted the transaction of producer {aborted.producer_id} on {aborted.partition}")


async def _abort_at(client: ClusterClient, arguments: argparse.Namespace) -> OpenTransaction:
    for opened in await _find_open(client, arguments.topic, arguments.partition):
        if opened.start_offset == arguments.start_offset:
            await abort_transaction(client, opened)
            return opened
    partition = TopicPartition(arguments.topic, arguments.partition)
    raise RequestError(
        ErrorCode.INVALID_TXN_STATE,
        f"{partition}: no open transaction starts at offset {arguments.start_offset}",
    )


async def _find_open(
    client: ClusterClient, topic: str, partition: int | None
) -> list[OpenTransaction]:
    wanted = None if partition is None else [partition]
    return await open_transactions(client, await existing_partitions(client, topic, wanted))
