"""`barnabas export`: write the current records of a topic to files."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.arguments import add_connection, count, index
from barnabas.cli.command_config import client_options
from barnabas.cli.output import counted, print_json
from barnabas.cli.partitions import existing_partitions, offsets_at
from barnabas.cli.position import Beginning, End, parse_position
from barnabas.cli.progress_line import ProgressLine
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.archive.exporting import Range
    from barnabas.archive.formats import Format

EXAMPLES = """\
examples:
  barnabas export orders orders.parquet
  barnabas export orders exported/ --rows-per-file 1000000
  barnabas export orders yesterday.jsonl --from 2026-01-30T00:00Z --to 2026-01-31T00:00Z
  barnabas export orders few.csv --partition 0 --from 100 --to 200

A path that ends in .parquet, .csv or .jsonl is a single file; any other path is a directory with
files for each partition. Parquet needs pyarrow: pip install 'barnabas[arrow]'.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_export)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("path", metavar="FILE_OR_DIR", type=Path)
    parser.add_argument(
        "--format",
        choices=["parquet", "csv", "jsonl"],
        help="file format (default: by the file's extension, or parquet)",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="POSITION",
        type=lambda text: parse_position(text, int(time.time() * 1000)),
        default=Beginning(),
        help="beginning, an offset, a time (2026-01-31T12:00:00Z) or an age (15m); "
        "default: beginning",
    )
    parser.add_argument(
        "--to",
        dest="end",
        metavar="POSITION",
        type=lambda text: parse_position(text, int(time.time() * 1000)),
        default=End(),
        help="stop before this offset or time (default: the current end)",
    )
    parser.add_argument(
        "--partition",
        metavar="N",
        type=index,
        action="append",
        help="only this partition; may be repeated",
    )
    parser.add_argument(
        "--rows-per-file",
        metavar="N",
        type=count,
        help="start a new file of a partition after this many records",
    )
    parser.add_argument(
        "--isolation",
        choices=["committed", "uncommitted"],
        default="committed",
        help="whether to skip records of open and aborted transactions (default: committed)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing files")
    add_connection(parser)


def _export(arguments: argparse.Namespace) -> None:
    from barnabas.archive.formats import Format, format_of
    from barnabas.archive.parquet_file import need_pyarrow

    named = format_of(arguments.path)
    format = Format(arguments.format) if arguments.format else named or Format.PARQUET
    if format is Format.PARQUET:
        need_pyarrow()
    with ProgressLine(wanted=not arguments.json) as line:
        run(
            arguments,
            lambda client: _write(client, arguments, format, named is not None, line),
            busy=True,
        )


async def _write(
    client: ClusterClient,
    arguments: argparse.Namespace,
    format: Format,
    single: bool,
    line: ProgressLine,
) -> None:
    from barnabas.archive.exporting import Export
    from barnabas.archive.output import Output

    ranges = await _ranges(client, arguments)
    began_s = time.monotonic()
    output = Output(
        arguments.path,
        format,
        single=single,
        partitions=len(ranges),
        rows_per_file=arguments.rows_per_file,
        overwrite=arguments.overwrite,
    )
    export = Export(ranges, output, format)

    def show() -> None:
        done = 1 - export.offsets_left / max(export.offsets, 1)
        rate = export.records / max(time.monotonic() - began_s, 0.001)
        line.show(f"{arguments.topic}: {export.records:,} records, {done:.0%}, {rate:,.0f}/s")

    try:
        await export.run(_consumer(arguments), show)
    except BaseException:
        output.discard()
        raise
    if arguments.overwrite and not single:
        _remove_earlier(arguments.path, format, ranges, output.files)
    took_s = max(time.monotonic() - began_s, 0.001)
    if arguments.json:
        print_json(
            {
                "records": export.records,
                "files": [str(path) for path in output.files],
                "seconds": round(took_s, 3),
            }
        )
    else:
        line.print_line(
            f"{export.records:,} records in {counted(len(output.files), 'file')}, "
            f"{export.records / took_s:,.0f}/s"
        )


async def _ranges(
    client: ClusterClient, arguments: argparse.Namespace
) -> dict[TopicPartition, Range]:
    """Return the offsets to export, limited to those that the partitions have."""
    from barnabas.archive.exporting import Range

    partitions = await existing_partitions(client, arguments.topic, arguments.partition)
    committed = arguments.isolation == "committed"
    first = await offsets_at(client, partitions, Beginning(), committed)
    last = await offsets_at(client, partitions, End(), committed)
    starts = await offsets_at(client, partitions, arguments.start, committed)
    ends = await offsets_at(client, partitions, arguments.end, committed)
    return {
        each: Range(max(starts[each], first[each]), min(ends[each], last[each]))
        for each in partitions
    }


def _remove_earlier(
    directory: Path, format: Format, partitions: Iterable[TopicPartition], written: list[Path]
) -> None:
    """Remove files of an earlier export of the same partitions.

    They may start at other offsets, or have other numbers of rows; together with the new files, an
    import would send their records twice.
    """
    for topic, partition in partitions:
        for path in directory.glob(f"{topic}-{partition:05d}-{'[0-9]' * 20}.{format.value}"):
            if path not in written:
                path.unlink()


def _consumer(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        **client_options(arguments),
        "isolation.level": f"read_{arguments.isolation}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "request.timeout.ms": str(int(arguments.timeout * 1000)),
    }
