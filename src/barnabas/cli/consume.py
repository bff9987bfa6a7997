"""`barnabas consume`: print the records of a topic, from anywhere in it, once or forever."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from barnabas.admin.offsets import LATEST, list_offsets
from barnabas.cli.arguments import add_connection, count, index
from barnabas.cli.group_reader import check, read_in_group
from barnabas.cli.partitions import existing_partitions, offsets_at
from barnabas.cli.position import Beginning, End, Position, parse_position
from barnabas.cli.record_format import Formatter, compile_format, json_line, parse_format
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.cli.partition_reader import Delivery

EXAMPLES = r"""formats:
  %t topic  %p partition  %o offset  %T timestamp in ms  %h headers  %k key  %v value
  %K and %V sizes in bytes  %% percent sign  \t \n \r \0 \\ \xNN

examples:
  barnabas consume orders
  barnabas consume orders --from beginning --exit-at-end --format '%p %o %k\t%v\n'
  barnabas consume orders --from 2h --max-messages 10 --json
  barnabas consume orders --group printers
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_consume)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="POSITION",
        type=lambda text: parse_position(text, int(time.time() * 1000)),
        help="beginning, end, an offset, a time (2026-01-31T12:00:00Z) or an age (15m); "
        "default: end, or beginning with --exit-at-end",
    )
    parser.add_argument(
        "--partition",
        metavar="N",
        type=index,
        action="append",
        help="only this one; may be repeated",
    )
    parser.add_argument(
        "--group",
        metavar="NAME",
        help="read as a member of this consumer group, and commit what was printed",
    )
    parser.add_argument(
        "--max-messages", metavar="N", type=count, help="stop after so many records"
    )
    until = parser.add_mutually_exclusive_group()
    until.add_argument(
        "--follow", action="store_true", help="wait for new records until interrupted (default)"
    )
    until.add_argument(
        "--exit-at-end", action="store_true", help="stop at what was the end when it started"
    )
    parser.add_argument(
        "--format",
        metavar="TEXT",
        type=parse_format,
        default=r"%v\n",
        help=r"how a record is printed (default: %%v\n)",
    )
    parser.add_argument(
        "--null-marker",
        metavar="TEXT",
        type=os.fsencode,
        default="",
        help="printed for null (default: nothing)",
    )
    parser.add_argument(
        "--isolation",
        choices=["committed", "uncommitted"],
        default="uncommitted",
        help="whether records of open and aborted transactions are hidden (default: uncommitted)",
    )
    add_connection(parser)


def _consume(arguments: argparse.Namespace) -> None:
    if arguments.json:
        formatter: Formatter = json_line
    else:
        formatter = compile_format(arguments.format, arguments.null_marker)
    read = _print_records
    if arguments.group is not None:
        check(arguments)
        read = read_in_group
    run(arguments, lambda client: read(client, arguments, formatter), busy=True)


async def _print_records(
    client: ClusterClient, arguments: argparse.Namespace, formatter: Formatter
) -> None:
    # Only here: the consumer is by far the largest thing that a command may load.
    from barnabas.cli.partition_reader import PartitionReader, reader_options

    partitions = await existing_partitions(client, arguments.topic, arguments.partition)
    committed = arguments.isolation == "committed"
    start: Position = arguments.start
    if start is None:
        start = Beginning() if arguments.exit_at_end else End()
    ends = None
    if arguments.exit_at_end:
        found = await list_offsets(client, dict.fromkeys(partitions, LATEST), committed=committed)
        ends = {partition: answer.offset for partition, answer in found.items()}
    reader = PartitionReader(
        client,
        reader_options(arguments),
        await offsets_at(client, partitions, start, committed),
        ends=ends,
        moved=_tell_moved,
    )
    left: int | None = arguments.max_messages
    async with aclosing(reader.deliveries()) as deliveries:
        async for delivery in deliveries:
            left = _print(delivery, formatter, left)
            if left == 0:
                return


def _print(delivery: Delivery, formatter: Formatter, left: int | None) -> int | None:
    """Print up to `left` records and return how many may still be printed."""
    records = delivery.records if left is None else delivery.records[:left]
    topic, partition = delivery.partition
    out = sys.stdout.buffer
    out.write(b"".join(formatter(topic, partition, record) for record in records))
    out.flush()
    return None if left is None else left - len(records)


def _tell_moved(partition: TopicPartition, wanted: int, offset: int) -> None:
    print(
        f"barnabas consume: {partition} has no offset {wanted}; going on from {offset}",
        file=sys.stderr,
    )
