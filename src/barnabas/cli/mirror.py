"""`barnabas mirror`: copy topics from one cluster to another, exactly once."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.cli.arguments import add_command_config, count, seconds
from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.next_step import explain_silence, with_next_step
from barnabas.cli.output import counted, print_json, print_table
from barnabas.cli.progress_line import ProgressLine
from barnabas.cli.session import on_loop
from barnabas.cli.spark_master import LOCAL, spark_master

if TYPE_CHECKING:
    from barnabas.mirror.client_options import ClientOptions
    from barnabas.mirror.engine import Engine, MirrorOptions
    from barnabas.mirror.mirror import Mirror
    from barnabas.mirror.progress import Report
    from barnabas.mirror.replication_policy import TopicFilter

EXAMPLES = """\
examples:
  barnabas mirror --source old:9092 --target new:9092 --topics 'orders|payments'
  barnabas mirror --source old:9092 --target new:9092 --topics '.*' --exclude 'test-.*'
  barnabas mirror --source a:9092 --target b:9092 --topics orders --until-caught-up --json
  barnabas mirror --consumer.config source.properties --producer.config target.properties \\
      --include '.*'
  barnabas mirror --source a:9092 --target b:9092 --topics '.*' --master spark://head:7077
  barnabas mirror offsets --source old:9092 --target new:9092 --topics '.*' --dry-run

Records keep their partitions, keys, headers and timestamps. Each gets one more header, with its
origin, so mirrors may point at each other. A mirror that was stopped or killed continues where it
was, without losing or repeating records; consumers of the target must set
isolation.level=read_committed to see it that way.
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
        help="copy in this process, or in Spark tasks (default: local, or spark if --master "
        "is given)",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        type=spark_master,
        help=f"Spark master: local[N], spark://HOST:PORT, yarn, k8s://... (default: {LOCAL})",
    )
    parser.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a Spark option; may be repeated",
    )
    parser.add_argument(
        "--until-caught-up",
        action="store_true",
        help="stop at the end offsets that the source had at the start (default: run forever)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        choices=["beginning", "end"],
        help="where a mirror that has never run starts (default: beginning, or "
        "auto.offset.reset in --consumer.config)",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        type=_name,
        help="name of this mirror: one runs at a time, and continues where the last one stopped "
        "(default: group.id in --consumer.config, or the source's cluster id)",
    )
    parser.add_argument(
        "--replication-factor",
        metavar="N",
        type=count,
        default=-1,
        help="replication factor of topics that are created (default: the target's "
        "default.replication.factor)",
    )
    parser.add_argument(
        "--commit-interval",
        metavar="SECONDS",
        type=seconds,
        default=1.0,
        help="how long a transaction stays open for more records (default: 1)",
    )
    parser.add_argument(
        "--refresh",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="how often to look for new topics, partitions and options (default: 10)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=300.0,
        help="give up after a cluster was unreachable for this long (default: 300)",
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
        help="translate groups whose whole names match; may be repeated (default: all)",
    )
    offsets.add_argument(
        "--dry-run", action="store_true", help="show the offsets without committing them"
    )
    offsets.add_argument(
        "--rewind", action="store_true", help="also move groups back that are ahead on the target"
    )
    offsets.add_argument("--json", action="store_true", help="print JSON")


def _add_clusters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="HOST:PORT[,...]", help="brokers to copy from")
    parser.add_argument("--target", metavar="HOST:PORT[,...]", help="brokers to copy to")
    parser.add_argument(
        "--consumer.config",
        dest="consumer_config",
        metavar="FILE",
        help="consumer options for the source, as for Kafka's MirrorMaker",
    )
    parser.add_argument(
        "--producer.config",
        dest="producer_config",
        metavar="FILE",
        help="producer options for the target, as for Kafka's MirrorMaker",
    )
    add_command_config(parser, "for each cluster that has no file of its own ")
    parser.add_argument(
        "--include",
        "--whitelist",
        "--topics",
        dest="topics",
        metavar="REGEX",
        action="append",
        default=[],
        help="copy topics whose whole names match; may be repeated",
    )
    parser.add_argument(
        "--exclude",
        metavar="REGEX",
        action="append",
        default=[],
        help="except these topics; may be repeated",
    )
    parser.add_argument(
        "--prefix", metavar="TEXT", default="", help="prefix of topic names on the target"
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
        raise argparse.ArgumentTypeError(f"{text!r} is not a Spark option: NAME=VALUE")
    return name, value


def _clusters(
    arguments: argparse.Namespace,
) -> tuple[ClientOptions, ClientOptions, TopicFilter]:
    from barnabas.mirror.client_options import read_source, read_target
    from barnabas.mirror.replication_policy import TopicFilter

    # The file is that of both clusters: it cannot have the address of either.
    shared = {
        name: value
        for name, value in arguments.command_config.options.items()
        if name != "bootstrap.servers"
    }
    return (
        read_source(arguments.consumer_config, arguments.source, shared),
        read_target(arguments.producer_config, arguments.target, shared),
        TopicFilter(arguments.topics, arguments.exclude, prefix=arguments.prefix),
    )


# Copying.


def _mirror(arguments: argparse.Namespace) -> None:
    from barnabas.mirror.engine import MirrorOptions
    from barnabas.model.errors import InvalidValueError

    if arguments.engine == "local" and (arguments.master or arguments.conf):
        raise InvalidValueError("--engine local: --master and --conf are for --engine spark")
    source, target, topics = _clusters(arguments)
    start = arguments.start
    if start is None:
        latest = source.given.get("auto.offset.reset") in ("latest", "largest")
        start = "end" if latest else "beginning"
    options = MirrorOptions(
        source,
        target,
        topics,
        name=arguments.name or source.given.get("group.id"),
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
    """Start the engine that copies, and stop it."""
    if arguments.engine == "local" or not (arguments.engine or arguments.master or arguments.conf):
        from barnabas.mirror.engine import LOCAL_ENGINE

        yield LOCAL_ENGINE
        return
    from barnabas.spark.mirroring import spark_engine

    on_loop(_check_clusters(arguments, options))  # before Spark, which takes seconds to start
    line.show("starting Spark …")
    with spark_engine(arguments.master or LOCAL, dict(arguments.conf)) as engine:
        yield engine


async def _check_clusters(arguments: argparse.Namespace, options: MirrorOptions) -> None:
    """Raise if one of the clusters does not answer."""
    from barnabas.mirror.clusters import open_clusters

    with _hints(arguments):
        async with open_clusters(options.source, options.target, options.topics):
            return


@contextmanager
def _hints(arguments: argparse.Namespace) -> Iterator[None]:
    """Add the next step to failures to reach a cluster."""
    from barnabas.client.errors import NoBrokersAvailable

    shared: str | None = arguments.command_config.path
    files = (arguments.consumer_config or shared, arguments.producer_config or shared)
    file = " or ".join(dict.fromkeys(filter(None, files)))
    with with_next_step(file, "--consumer.config or --producer.config"):
        try:
            yield
        except NoBrokersAvailable as failure:
            explain_silence(failure)
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
        timeout_ms=arguments.timeout * 1000,
        notify=lambda text: line.print_line(f"barnabas mirror: {text}"),
        now_ms=loop.time() * 1000,
    )
    copying = loop.create_task(mirror.run())
    try:
        with _hints(arguments):
            await _show_progress(arguments, mirror, copying, line)
    finally:
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)
        report = mirror.progress.report(loop.time() * 1000, total=True)
        if arguments.json:
            print(json.dumps(report.document() | {"done": True}), flush=True)
            INTERRUPTION.closed()
        elif report.partitions:
            line.print_line(f"barnabas mirror: {_text(report)}")
            INTERRUPTION.closed()


async def _show_progress(
    arguments: argparse.Namespace,
    mirror: Mirror,
    copying: asyncio.Task[None],
    line: ProgressLine,
) -> None:
    """Show progress until the copying ends; raise its failure."""
    loop = asyncio.get_running_loop()
    reported_s = loop.time()
    while not copying.done():
        await asyncio.wait({copying}, timeout=REPORT_S)
        report = mirror.progress.report(loop.time() * 1000)
        if arguments.json and not copying.done():
            print(json.dumps(report.document()), flush=True)
        elif line.is_drawn:
            line.show(_text(report))
        elif (
            report.partitions and loop.time() - reported_s >= PLAIN_REPORT_S and not arguments.json
        ):
            reported_s = loop.time()
            line.print_line(f"barnabas mirror: {_text(report)}")
    if not copying.cancelled():
        copying.result()


def _text(report: Report) -> str:
    lag = "?" if report.lag is None else f"{report.lag:,}"
    text = (
        f"{report.records:,} records of {counted(report.topics, 'topic')}, "
        f"{report.records_per_second:,.0f}/s, lag {lag}"
    )
    if report.skipped:
        text += f", {report.skipped:,} skipped (originally from the target)"
    if report.restarts:
        text += f", {report.restarts} restarts"
    return text


# Group offsets.


def _offsets(arguments: argparse.Namespace) -> int:
    from barnabas.mirror.group_offsets import COMMITTED, KEPT, TRANSLATED, translate_groups

    source, target, topics = _clusters(arguments)
    with _hints(arguments):
        found = on_loop(
            translate_groups(
                source,
                target,
                topics,
                arguments.groups or [".*"],
                dry_run=arguments.dry_run,
                rewind=arguments.rewind,
            )
        )
    columns = ("group", "topic", "partition", "source_offset", "target_offset", "outcome")
    rows = [
        (
            each.committed.group,
            each.target.topic,
            each.target.partition,
            each.committed.offset,
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
