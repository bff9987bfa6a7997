"""`barnabas mirror`: copy topics from one cluster to another, exactly once, once or for ever."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.cli.arguments import count, seconds
from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.output import counted, print_json, print_table
from barnabas.cli.progress_line import ProgressLine
from barnabas.cli.session import NO_BROKER, on_loop
from barnabas.cli.spark_master import LOCAL, spark_master

if TYPE_CHECKING:
    from barnabas.mirror.clients import Side
    from barnabas.mirror.ground import Engine, MirrorOptions
    from barnabas.mirror.mirror import Mirror
    from barnabas.mirror.progress import Report
    from barnabas.mirror.selection import Selection

EXAMPLES = """\
examples:
  barnabas mirror --source old:9092 --target new:9092 --topics 'orders|payments'
  barnabas mirror --source old:9092 --target new:9092 --topics '.*' --exclude 'test-.*'
  barnabas mirror --source a:9092 --target b:9092 --topics orders --until-caught-up --json
  barnabas mirror --consumer.config source.properties --producer.config target.properties \\
      --include '.*'
  barnabas mirror --source a:9092 --target b:9092 --topics '.*' --master spark://head:7077
  barnabas mirror offsets --source old:9092 --target new:9092 --topics '.*' --dry-run

Records keep their partitions, keys, headers and timestamps. Each gets one header more, which says
where it came from: so mirrors may point at each other. A mirror that was stopped or killed goes
on where it was, without loss and without repetition; what is read on the target must be read with
isolation.level=read_committed for that.
"""

OFFSETS_EXAMPLES = """\
  barnabas mirror offsets --source old:9092 --target new:9092 --topics '.*' --dry-run
  barnabas mirror offsets --source old:9092 --target new:9092 --topics orders --groups 'shop-.*'

Each group's offsets on the source become the offsets of the same records on the target."""

REPORT_S = 1.0
PLAIN_REPORT_S = 10.0
NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_mirror)
    _add_clusters(parser)
    parser.add_argument(
        "--engine",
        choices=["local", "spark"],
        help="what copies: this process, or tasks of Spark (default: local, or spark if --master "
        "is given)",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        type=spark_master,
        help=f"of Spark: local[N], spark://HOST:PORT, yarn, k8s://... (default: {LOCAL})",
    )
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="an option of Spark; may be repeated",
    )
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="stop at what was the end when it started (default: go on for ever)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        choices=["beginning", "end"],
        help="where a mirror begins that has never run (default: beginning, or what "
        "auto.offset.reset of --consumer.config says)",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=_name,
        help="of this mirror: one runs at a time, and goes on where the last one was "
        "(default: group.id of --consumer.config, or the id of the source's cluster)",
    )
    parser.add_argument(
        "--replication-factor",
        metavar="N",
        type=count,
        default=-1,
        help="of topics that are created (default: the target's default.replication.factor)",
    )
    parser.add_argument(
        "--commit-interval",
        metavar="SECONDS",
        type=seconds,
        default=1.0,
        help="longest that a transaction stays open for more records (default: 1)",
    )
    parser.add_argument(
        "--refresh",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="look so often for new topics, partitions and options (default: 10)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=300.0,
        help="give up when a cluster is out of reach for so long (default: 300)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON line every second")
    actions = parser.add_subparsers(metavar="[offsets]", title="also")
    offsets = actions.add_parser(
        "offsets",
        help="translate the offsets of consumer groups, and commit them on the target",
        description="Translate the offsets of consumer groups, and commit them on the target.",
        epilog=f"examples:\n{OFFSETS_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    offsets.set_defaults(run=_offsets)
    _add_clusters(offsets)
    offsets.add_argument(
        "--groups",
        metavar="REGEX",
        action="append",
        help="groups whose whole names match; may be repeated (default: all)",
    )
    offsets.add_argument("--dry-run", action="store_true", help="show, and commit nothing")
    offsets.add_argument(
        "--rewind", action="store_true", help="also move groups back that are further already"
    )
    offsets.add_argument("--json", action="store_true", help="print JSON, for machines")


def _add_clusters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="HOST:PORT[,...]", help="brokers to copy from")
    parser.add_argument("--target", metavar="HOST:PORT[,...]", help="brokers to copy to")
    parser.add_argument(
        "--consumer.config",
        dest="consumer_config",
        metavar="FILE",
        help="options of consumers of the source, as Kafka's MirrorMaker takes them",
    )
    parser.add_argument(
        "--producer.config",
        dest="producer_config",
        metavar="FILE",
        help="options of producers to the target, as Kafka's MirrorMaker takes them",
    )
    parser.add_argument(
        "--include",
        "--whitelist",
        "--topics",
        dest="topics",
        metavar="REGEX",
        action="append",
        default=[],
        help="topics whose whole names match; may be repeated",
    )
    parser.add_argument(
        "--exclude", metavar="REGEX", action="append", default=[], help="but not these"
    )
    parser.add_argument(
        "--prefix", metavar="TEXT", default="", help="put before the names of topics on the target"
    )


def _name(text: str) -> str:
    if NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name: 1 to 200 letters, digits, dots, underscores and hyphens"
        )
    return text


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not an option of Spark: NAME=VALUE")
    return name, value


def _sides(arguments: argparse.Namespace) -> tuple[Side, Side, Selection]:
    from barnabas.mirror.clients import read_source, read_target
    from barnabas.mirror.selection import Selection

    return (
        read_source(arguments.consumer_config, arguments.source),
        read_target(arguments.producer_config, arguments.target),
        Selection(arguments.topics, arguments.exclude, prefix=arguments.prefix),
    )


# Copying.


def _mirror(arguments: argparse.Namespace) -> None:
    from barnabas.mirror.ground import MirrorOptions
    from barnabas.model.errors import InvalidValueError

    if arguments.engine == "local" and (arguments.master or arguments.conf):
        raise InvalidValueError("--engine local: --master and --conf are for --engine spark")
    source, target, selection = _sides(arguments)
    start = arguments.start
    if start is None:
        latest = source.options.get("auto.offset.reset") in ("latest", "largest")
        start = "end" if latest else "beginning"
    options = MirrorOptions(
        source,
        target,
        selection,
        name=arguments.name or source.options.get("group.id"),
        until_caught_up=arguments.until_caught_up,
        commit_interval_ms=arguments.commit_interval * 1000,
        refresh_interval_ms=arguments.refresh * 1000,
        replication_factor=arguments.replication_factor,
        from_end=start == "end",
    )
    INTERRUPTION.serve()
    with (
        ProgressLine(wanted=not arguments.json) as line,
        _engine(arguments, options, line) as engine,
    ):
        on_loop(_run(arguments, options, engine, line), busy=True)


@contextmanager
def _engine(
    arguments: argparse.Namespace, options: MirrorOptions, line: ProgressLine
) -> Iterator[Engine]:
    """Start what copies, and end it."""
    if arguments.engine == "local" or not (arguments.engine or arguments.master or arguments.conf):
        from barnabas.mirror.in_process import IN_PROCESS

        yield IN_PROCESS
        return
    from barnabas.spark.mirroring import spark_engine

    on_loop(_reached(options))  # Spark takes seconds to start, a misspelt address is told before
    line.show("Spark starts …")
    with spark_engine(arguments.master or LOCAL, dict(arguments.conf)) as engine:
        yield engine


async def _reached(options: MirrorOptions) -> None:
    """Raise if one of the clusters does not answer."""
    from barnabas.mirror.opening import clusters

    with _noted():
        async with clusters(options.source, options.target, options.selection):
            return


@contextmanager
def _noted() -> Iterator[None]:
    from barnabas.client.errors import NoBrokersAvailable

    try:
        yield
    except NoBrokersAvailable as failure:
        failure.add_note(NO_BROKER)
        raise


async def _run(
    arguments: argparse.Namespace, options: MirrorOptions, engine: Engine, line: ProgressLine
) -> None:
    from barnabas.client.retry import Backoff
    from barnabas.mirror.mirror import Mirror

    loop = asyncio.get_running_loop()
    mirror = Mirror(
        options,
        engine,
        backoff=Backoff(random.random, initial_ms=200, max_ms=10_000),
        patience_ms=arguments.timeout * 1000,
        tell=lambda text: line.tell(f"barnabas mirror: {text}"),
        now_ms=loop.time() * 1000,
    )
    copying = loop.create_task(mirror.run())
    try:
        with _noted():
            await _reported(arguments, mirror, copying, line)
    finally:
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)
        report = mirror.progress.report(loop.time() * 1000, total=True)
        if arguments.json:
            print(json.dumps(report.document() | {"done": True}), flush=True)
            INTERRUPTION.closed()
        elif report.partitions:
            line.tell(f"barnabas mirror: {_text(report)}")
            INTERRUPTION.closed()


async def _reported(
    arguments: argparse.Namespace,
    mirror: Mirror,
    copying: asyncio.Task[None],
    line: ProgressLine,
) -> None:
    """Show progress until the copying ends, and raise what ended it."""
    loop = asyncio.get_running_loop()
    told_s = loop.time()
    while not copying.done():
        await asyncio.wait({copying}, timeout=REPORT_S)
        report = mirror.progress.report(loop.time() * 1000)
        if arguments.json and not copying.done():
            print(json.dumps(report.document()), flush=True)
        elif line.is_drawn:
            line.show(_text(report))
        elif report.partitions and loop.time() - told_s >= PLAIN_REPORT_S and not arguments.json:
            told_s = loop.time()
            line.tell(f"barnabas mirror: {_text(report)}")
    if not copying.cancelled():
        copying.result()


def _text(report: Report) -> str:
    lag = "?" if report.lag is None else f"{report.lag:,}"
    text = (
        f"{report.records:,} records of {counted(report.topics, 'topic')}, "
        f"{report.records_per_second:,.0f}/s, lag {lag}"
    )
    if report.skipped:
        text += f", {report.skipped:,} skipped that came from the target"
    if report.restarts:
        text += f", {report.restarts} restarts"
    return text


# Offsets of groups.


def _offsets(arguments: argparse.Namespace) -> int:
    from barnabas.mirror.group_offsets import COMMITTED, KEPT, TRANSLATED, translate_groups

    source, target, selection = _sides(arguments)
    with _noted():
        found = on_loop(
            translate_groups(
                source,
                target,
                selection,
                arguments.groups or [".*"],
                dry_run=arguments.dry_run,
                rewind=arguments.rewind,
            )
        )
    columns = ("group", "topic", "partition", "source_offset", "target_offset", "outcome")
    rows = [
        (
            each.place.group,
            each.target.topic,
            each.target.partition,
            each.place.offset,
            each.target_offset,
            each.outcome,
        )
        for each in found
    ]
    if arguments.json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table([column.replace("_", " ") for column in columns], rows)
    fine = (COMMITTED, KEPT, TRANSLATED)
    return 0 if all(each.outcome in fine for each in found) else 1
