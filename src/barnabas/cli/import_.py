"""`barnabas import`: send the records in files to a topic, all or nothing."""

from __future__ import annotations

import argparse
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.arguments import add_connection, count
from barnabas.cli.command_config import client_options
from barnabas.cli.output import counted, print_json
from barnabas.cli.partitions import existing_partitions
from barnabas.cli.progress_line import ProgressLine
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.archive.formats import Format

EXAMPLES = """\
examples:
  barnabas import orders.parquet orders
  barnabas import exported/ orders-again
  barnabas import measurements.csv measurements --repartition
  barnabas import huge.parquet orders --rows-per-transaction 1000000

Files are those of `barnabas export`, or your own: with a column (or field) value, and optionally
key, headers, timestamp and partition. Without --rows-per-transaction, everything is one
transaction: if the import fails, read_committed consumers see none of its records.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_import)
    parser.add_argument("path", metavar="FILE_OR_DIR", type=Path)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--format",
        choices=["parquet", "csv", "jsonl"],
        help="file format (default: by the files' extensions)",
    )
    parser.add_argument(
        "--repartition",
        action="store_true",
        help="choose partitions by key (default: the partitions in the files)",
    )
    parser.add_argument(
        "--rows-per-transaction",
        metavar="N",
        type=count,
        help="commit after about this many records (default: once, at the end)",
    )
    add_connection(parser)


def _import(arguments: argparse.Namespace) -> None:
    from barnabas.archive.formats import Format, files_of
    from barnabas.archive.parquet_file import need_pyarrow

    if not arguments.path.exists():
        raise BarnabasError(f"{arguments.path}: no such file or directory")
    files = files_of(arguments.path, Format(arguments.format) if arguments.format else None)
    if any(format is Format.PARQUET for _, format in files):
        need_pyarrow()
    with ProgressLine(wanted=not arguments.json) as line:
        run(arguments, lambda client: _send(client, arguments, files, line), busy=True)


async def _send(
    client: ClusterClient,
    arguments: argparse.Namespace,
    files: list[tuple[Path, Format]],
    line: ProgressLine,
) -> None:
    from barnabas.archive.importing import Import

    partitions = await existing_partitions(client, arguments.topic, None)
    began_s = time.monotonic()
    work = Import(
        arguments.topic,
        len(partitions),
        repartition=arguments.repartition,
        rows_per_transaction=arguments.rows_per_transaction,
    )

    total = _total(files) if line.is_drawn else None

    def show() -> None:
        rate = work.records / max(time.monotonic() - began_s, 0.001)
        done = "" if not total else f" {work.records / total:.0%},"
        line.show(f"{arguments.topic}: {work.records:,} records,{done} {rate:,.0f}/s")

    options = {
        **client_options(arguments),
        "transactional.id": f"barnabas-import-{uuid.uuid4()}",
    }
    await work.run(files, options, show)
    took_s = max(time.monotonic() - began_s, 0.001)
    if arguments.json:
        print_json({"records": work.records, "files": len(files), "seconds": round(took_s, 3)})
    else:
        read = f"{work.records:,} records of {counted(len(files), 'file')}"
        line.print_line(f"{read}, {work.records / took_s:,.0f}/s")


def _total(files: list[tuple[Path, Format]]) -> int | None:
    """Return the number of records, if it is known without reading the files."""
    from barnabas.archive.formats import Format
    from barnabas.archive.parquet_file import count_rows

    if any(format is not Format.PARQUET for _, format in files):
        return None
    return sum(count_rows(path) for path, _ in files)
