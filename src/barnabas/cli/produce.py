"""`barnabas produce`: send lines of a file or of standard input to a topic, one record each."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.cli.arguments import add_connection, assignment, index, separator
from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.lines import read_lines
from barnabas.cli.position import parse_time
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.records.compression import Codec

if TYPE_CHECKING:
    from barnabas.cli.line_sender import Headers, LineSender, Row

_COMPLAINTS_SHOWN = 10

EXAMPLES = r"""examples:
  echo hello | barnabas produce orders
  barnabas produce orders --key-separator '\t' --codec zstd --file orders.tsv
  printf 'k:\n' | barnabas produce users --key-separator : --null-marker ''
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_produce)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--file", metavar="PATH", help="read this instead of standard input")
    parser.add_argument(
        "--key-separator",
        metavar="TEXT",
        type=separator,
        help=r"what stands between key and value, like '\t' (default: lines have no key)",
    )
    parser.add_argument(
        "--null-marker",
        metavar="TEXT",
        type=os.fsencode,
        help="a key or value that is this text becomes null",
    )
    parser.add_argument(
        "--header",
        metavar="NAME=VALUE",
        type=_header,
        action="append",
        default=[],
        help="a header of every record; may be repeated",
    )
    parser.add_argument(
        "--partition", metavar="N", type=index, help="send everything to this partition"
    )
    parser.add_argument(
        "--timestamp",
        metavar="TIME",
        type=_timestamp,
        help="time of every record: 2026-01-31T12:00:00Z, @1767225600000 or 15m (default: now)",
    )
    parser.add_argument(
        "--acks",
        choices=["-1", "0", "1", "all"],
        default="all",
        help="who must have a record before it counts as sent (default: all)",
    )
    parser.add_argument(
        "--codec",
        choices=[codec.name.lower() for codec in Codec],
        default="none",
        help="compression of batches (default: none)",
    )
    add_connection(parser)


def _header(text: str) -> tuple[str, bytes]:
    """Read a header; its value may be any bytes that a shell can pass, its name must be text."""
    name, value = assignment(text)
    if any("\ud800" <= char <= "\udfff" for char in name):
        raise argparse.ArgumentTypeError(f"the name in {text!r} is not UTF-8")
    return name, os.fsencode(value)


def _timestamp(text: str) -> int:
    timestamp_ms = parse_time(text, int(time.time() * 1000))
    if timestamp_ms is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time")
    return timestamp_ms


def _produce(arguments: argparse.Namespace) -> int:
    if arguments.file is None:
        return run(arguments, lambda client: _send(client, arguments, 0), busy=True)
    descriptor = os.open(arguments.file, os.O_RDONLY)
    try:
        return run(arguments, lambda client: _send(client, arguments, descriptor), busy=True)
    finally:
        os.close(descriptor)


async def _send(client: ClusterClient, arguments: argparse.Namespace, descriptor: int) -> int:
    # Only here: the help does without a producer.
    from barnabas.cli.line_sender import LineSender, producer_core

    core = producer_core(client, arguments)
    try:
        await core.start(arguments.timeout * 1000)
        partition_count = await _partition_count(client, arguments.topic)
        if arguments.partition is not None and arguments.partition >= partition_count:
            raise InvalidValueError(
                f"topic {arguments.topic!r} has partitions 0-{partition_count - 1}, "
                f"not {arguments.partition}"
            )
        await core.topics.know(arguments.topic, arguments.timeout * 1000)
        report = Report(arguments.topic, as_json=arguments.json)
        sender = LineSender(core, arguments.topic, arguments.partition, report)
        try:
            await _send_lines(descriptor, arguments, sender, report)
        except BaseException as failure:
            sender.drop()
            if isinstance(failure, asyncio.CancelledError):
                report.finish()
                INTERRUPTION.closed()
            raise
    finally:
        await core.close()
    return report.finish()


async def _send_lines(
    descriptor: int, arguments: argparse.Namespace, sender: LineSender, report: Report
) -> None:
    to_row = row_reader(arguments)
    line_number = 0
    async for lines in read_lines(descriptor):
        for line in lines:
            line_number += 1
            row = to_row(line)
            if isinstance(row, str):
                report.refused(line_number, row)
            else:
                sender.add(row, line_number)
        await sender.room()
        report.show_progress()
    await sender.finish()


async def _partition_count(client: ClusterClient, topic: str) -> int:
    """Return how many partitions a topic has; the broker may create it on demand."""

    async def attempt() -> int:
        cluster = await client.refresh([topic], auto_create=True)
        view = cluster.topics[topic]
        if view.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            failure = InvalidValueError(f"topic {topic!r} does not exist")
            failure.add_note(f"create it with: barnabas topics create {topic}")
            raise failure
        if view.error is not ErrorCode.NONE:
            raise RequestError(view.error, f"topic {topic!r}: {view.error.meaning}")
        return len(view.partitions)

    return await client.retrying(attempt)


def row_reader(arguments: argparse.Namespace) -> Callable[[bytes], Row | str]:
    """Return the function that makes a record of a line, or says why it cannot."""
    headers: Headers = tuple(arguments.header)
    divider: bytes | None = arguments.key_separator
    null: bytes | None = arguments.null_marker
    timestamp_ms: int | None = arguments.timestamp

    def to_row(line: bytes) -> Row | str:
        key: bytes | None = None
        value: bytes | None = line
        if divider is not None:
            key, found, value = line.partition(divider)
            if not found:
                return f"it has no key separator {divider.decode(errors='replace')!r}"
        if null is not None:
            key = None if key == null else key
            value = None if value == null else value
        return key, value, headers, timestamp_ms

    return to_row


class Report:
    """Counts what was sent, prints acknowledgements, complains about lines, sums up at the end.

    Acknowledgements go to stdout, everything for people to stderr.
    """

    def __init__(self, topic: str, *, as_json: bool) -> None:
        self._topic = topic
        self._as_json = as_json
        self._sent = 0
        self._failed = 0
        self._spans: dict[int, tuple[int, int]] = {}
        self._started = time.perf_counter()
        self._next_progress = self._started + 1.0
        self._progress_shown = False

    def acknowledged(self, partition: int, lines: list[int], base_offset: int | None) -> None:
        """Count lines that the broker has; without acknowledgements no offset is known."""
        self._sent += len(lines)
        if base_offset is not None:
            first, _ = self._spans.get(partition, (base_offset, base_offset))
            self._spans[partition] = (first, base_offset + len(lines) - 1)
        if self._as_json:
            for index, line in enumerate(lines):
                document = {
                    "line": line,
                    "topic": self._topic,
                    "partition": partition,
                    "offset": None if base_offset is None else base_offset + index,
                }
                print(json.dumps(document))
            sys.stdout.flush()

    def failed(
        self, lines: list[int], failure: BaseException, rejected: dict[int, BaseException]
    ) -> None:
        """Count the lines of a batch that was given up, some of which may be to blame."""
        for line in lines:
            if rejected and line not in rejected:
                culprit = min(rejected)
                self.refused(line, f"it shares a batch with line {culprit}, which was rejected")
                continue
            reason = rejected.get(line, failure)
            # Of a batch that was given up for its age, the last answer is the reason.
            reason = reason.__cause__ or reason
            code = f" ({reason.code.name})" if isinstance(reason, RequestError) else ""
            self.refused(line, f"{reason}{code}")

    def refused(self, line: int, reason: str) -> None:
        """Count a line that was not sent; the first ones are named."""
        self._failed += 1
        if self._failed <= _COMPLAINTS_SHOWN:
            self._clear_progress()
            print(f"barnabas produce: line {line} was not sent: {reason}", file=sys.stderr)

    def show_progress(self) -> None:
        """Show the count on a terminal while a long run goes on."""
        now = time.perf_counter()
        if now >= self._next_progress and sys.stderr.isatty():
            self._next_progress = now + 0.5
            self._progress_shown = True
            print(f"\r{self._sent} records sent", end="", file=sys.stderr, flush=True)

    def finish(self) -> int:
        """Print the summary and return the exit code."""
        self._clear_progress()
        elapsed = time.perf_counter() - self._started
        if self._failed > _COMPLAINTS_SHOWN:
            more = self._failed - _COMPLAINTS_SHOWN
            print(f"barnabas produce: {more} more lines were not sent", file=sys.stderr)
        spans = "; ".join(
            f"partition {partition} offsets {first}-{last}"
            for partition, (first, last) in sorted(self._spans.items())[:8]
        )
        failed = f", {self._failed} failed" if self._failed else ""
        rate = self._sent / elapsed if elapsed > 0 else 0.0
        print(
            f"{self._sent} record{'' if self._sent == 1 else 's'} sent to {self._topic} "
            f"in {elapsed:.2f} s "
            f"({rate:.0f} records/s{failed}){': ' if spans else ''}{spans}",
            file=sys.stderr,
        )
        return 1 if self._failed else 0

    def _clear_progress(self) -> None:
        if self._progress_shown:
            self._progress_shown = False
            print("\r\x1b[K", end="", file=sys.stderr)
