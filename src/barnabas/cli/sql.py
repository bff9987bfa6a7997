"""`barnabas sql`: query topics in SQL, with results as a table, a file or JSON."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.arguments import add_connection, count
from barnabas.cli.command_config import client_options
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import existing_partitions, offsets_at
from barnabas.cli.position import Beginning, End, Position, parse_position
from barnabas.cli.progress_line import ProgressLine
from barnabas.cli.session import run
from barnabas.cli.spark_master import LOCAL, spark_master
from barnabas.metadata.topic_names import illegal_name

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.spark.offset_ranges import OffsetRange
    from barnabas.sql.local_engine import LocalEngine
    from barnabas.sql.result import Result
    from barnabas.sql.table import TopicTable

EXAMPLES = """\
examples:
  barnabas sql "select * from orders limit 10"
  barnabas sql "select country, count(*), avg(price) from orders group by all" --from -1h
  barnabas sql 'select * from `web.clicks` limit 1000' --output clicks.csv
  barnabas sql "select key, count(*) from orders group by key" --master spark://host:7077

Each topic is a table: partition, offset, timestamp, key, value, headers, and the fields of values
that are JSON objects. Quote names with dashes or dots in backticks. Queries join no consumer group
and commit no offsets.
"""

ROWS = 100
CELL_WIDTH = 100
SHOW_EVERY_S = 0.2
FORMATS = ("auto", "json", "csv", "avro", "protobuf", "string", "binary")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_sql)
    # An age may be typed as -1h: argparse accepts values that look like negative numbers.
    parser._negative_number_matcher = re.compile(r"-\d+(ms|[smhd])?$|-\d*\.\d+$")
    parser.add_argument("query", metavar="QUERY", help="a query, or - to read it from stdin")
    for option, name, default, meaning in (
        ("--from", "start", Beginning(), "the beginning"),
        ("--to", "end", End(), "the current end; not included"),
    ):
        parser.add_argument(
            option,
            dest=name,
            metavar="POSITION",
            type=_position,
            default=default,
            help="earliest, latest, an offset, a time (2026-01-31T12:00:00Z) or an age (-1h); "
            f"default: {meaning}",
        )
    parser.add_argument(
        "--format",
        metavar="[TOPIC=]FORMAT",
        action="append",
        default=[],
        help=f"value format: {', '.join(FORMATS)} (default: auto, inferred from recent records)",
    )
    parser.add_argument(
        "--schema",
        metavar="[TOPIC=]SCHEMA",
        action="append",
        default=[],
        help="value schema: columns ('id BIGINT, name STRING') for json and csv, the Avro "
        "schema (or @FILE) for avro, FILE#package.Message for protobuf",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=count,
        help=f"maximum number of rows (default: {ROWS} to a terminal or pipe, all to a file)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write to a .parquet, .csv, .json or .jsonl file",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument(
        "--isolation",
        choices=["committed", "uncommitted"],
        default="committed",
        help="whether to skip records of open and aborted transactions (default: committed)",
    )
    parser.add_argument(
        "--engine",
        choices=["local", "spark"],
        help="local: DuckDB in this process; spark: local[*] (default: local, spark with --master)",
    )
    parser.add_argument(
        "--master", metavar="URL", type=spark_master, help="run on this Spark cluster"
    )
    add_connection(parser)


def _position(text: str) -> Position:
    words = {"earliest": "beginning", "latest": "end"}
    age = text[1:] if re.fullmatch(r"-\d+(ms|[smhd])", text) else text
    return parse_position(words.get(text, age), int(time.time() * 1000))


def _sql(arguments: argparse.Namespace) -> None:
    from barnabas.sql.errors import SqlError
    from barnabas.sql.result import check_output, write

    if arguments.output is not None:
        check_output(arguments.output, arguments.overwrite)
    if arguments.engine == "local" and arguments.master is not None:
        raise SqlError(f"--master {arguments.master}: needs --engine spark")
    query = sys.stdin.read() if arguments.query == "-" else arguments.query
    rows = arguments.limit or (None if arguments.output else ROWS)
    with ProgressLine(wanted=not arguments.json) as line:
        tables = Tables(arguments)
        with _answer(arguments, query, tables, rows, line) as result:
            if arguments.output is not None:
                found = result if rows is None else result.limited(rows)
                written = write(found, arguments.output)
                line.print_line(f"{written:,} rows to {arguments.output}")
            else:
                assert rows is not None
                _show(result, rows, arguments.json, line)


@contextmanager
def _answer(
    arguments: argparse.Namespace,
    query: str,
    tables: Tables,
    rows: int | None,
    line: ProgressLine,
) -> Iterator[Result]:
    """Run a query; unreadable values are reported at the end."""
    if arguments.engine == "spark" or arguments.master is not None:
        from barnabas.sql.spark_engine import SparkEngine

        line.show("starting Spark …")
        with SparkEngine(tables.client, arguments.master or LOCAL) as engine:
            line.show("running the query …")
            yield engine.run(query, tables.find, None if rows is None else rows + 1)
        return
    from barnabas.sql.local_engine import LocalEngine

    progress = QueryProgress(line)
    with LocalEngine(tables.client, progress.step) as local:
        progress.engine = local
        yield local.run(query, tables.find)
        for feed in local.feeds.values():
            if feed.rows.unreadable:
                line.print_line(
                    f"{feed.rows.unreadable:,} values of {feed.table.topic} do not fit its "
                    f"columns, which are null for them (see valueError): first at "
                    f"{feed.rows.first_unreadable}"
                )


class QueryProgress:
    """Progress of reading all topics."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
        self._began_s = self._shown_s = time.monotonic()
        self.engine: LocalEngine | None = None

    def step(self) -> None:
        """Update the progress line, but not too often."""
        now_s = time.monotonic()
        if self.engine is None or now_s - self._shown_s < SHOW_EVERY_S:
            return
        self._shown_s = now_s
        feeds = list(self.engine.feeds.values())
        records = sum(feed.records for feed in feeds)
        offsets = sum(len(each) for feed in feeds for each in feed.table.ranges)
        done = min(1.0, records / max(1, offsets))
        bar = "━" * round(done * 30)
        rate = records / max(now_s - self._began_s, 0.001)
        self._line.show(f"{bar:<30} {done:4.0%}  {records:,} records, {rate:,.0f}/s")


class Tables:
    """The topics of a cluster as tables, looked up as a query names them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._formats = _by_topic("--format", arguments.format)
        self._schemas = _by_topic("--schema", arguments.schema)
        self._found: dict[str, TopicTable] = {}
        for text in self._formats.values():
            if text not in FORMATS:
                raise _refused(f"--format {text}: must be one of {', '.join(FORMATS)}")
        self.client = {
            **client_options(arguments),
            "isolation.level": f"read_{arguments.isolation}",
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "request.timeout.ms": str(int(arguments.timeout * 1000)),
        }

    def find(self, topic: str) -> TopicTable:
        """Return a topic as a table; raise UnknownTopicError if it does not exist."""
        from barnabas.sql.sampling import take_sample
        from barnabas.sql.table import make_table

        if topic not in self._found:
            ranges, whole = run(self._arguments, lambda client: self._ranges(client, topic))
            # The columns of a topic must not depend on whether the range has records.
            sample = take_sample(self.client, ranges) or take_sample(self.client, whole)
            self._found[topic] = make_table(
                topic,
                ranges,
                sample,
                self._formats.get(topic, self._formats.get("", "auto")),
                self._schema(topic),
            )
        return self._found[topic]

    def _schema(self, topic: str) -> str | None:
        text = self._schemas.get(topic, self._schemas.get(""))
        return Path(text[1:]).read_text() if text is not None and text.startswith("@") else text

    async def _ranges(
        self, client: ClusterClient, topic: str
    ) -> tuple[list[OffsetRange], list[OffsetRange]]:
        """Return the offset ranges to read, and those of the whole partitions."""
        from barnabas.admin.topics import describe_topics
        from barnabas.config.option import suggest
        from barnabas.spark.offset_ranges import OffsetRange
        from barnabas.sql.errors import UnknownTopicError

        names = [view.name for view in await describe_topics(client, None)]
        if topic not in names:
            close = suggest(topic, dict.fromkeys(names))
            raise UnknownTopicError(f"topic {topic} does not exist{close}")
        partitions = await existing_partitions(client, topic, None)
        committed = self._arguments.isolation == "committed"
        first = await offsets_at(client, partitions, Beginning(), committed)
        last = await offsets_at(client, partitions, End(), committed)
        starts = await offsets_at(client, partitions, self._arguments.start, committed)
        ends = await offsets_at(client, partitions, self._arguments.end, committed)
        found = []
        for each in partitions:
            start = min(max(starts[each], first[each]), last[each])
            found.append(OffsetRange(*each, start, max(start, min(ends[each], last[each]))))
        whole = [OffsetRange(*each, first[each], last[each]) for each in partitions]
        return found, whole


def _by_topic(option: str, given: list[str]) -> dict[str, str]:
    """Return values by topic, "" for all others; a legal topic name before `=` is a topic."""
    found: dict[str, str] = {}
    for text in given:
        topic, equals, rest = text.partition("=")
        named = bool(equals) and illegal_name(topic) is None
        name, value = (topic, rest) if named else ("", text)
        if name in found:
            raise _refused(f"{option} {text}: given twice for {name or 'all topics'}")
        found[name] = value
    return found


def _refused(text: str) -> Exception:
    from barnabas.sql.errors import SqlError

    return SqlError(text)


def _show(result: Result, rows: int, as_json: bool, line: ProgressLine) -> None:
    """Print rows, and whether there are more."""
    from barnabas.sql.result import objects

    batches = list(result.limited(rows + 1).batches)
    found = sum(batch.num_rows for batch in batches)
    line.show("")
    if as_json:
        print_json([row for batch in batches for row in objects(batch)][:rows])
    else:
        cells: list[list[Any]] = [
            [_cell(cell) for cell in row]
            for batch in batches
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
        print_table(result.schema.names, cells[:rows])
    if found > rows:
        line.print_line(f"first {rows:,} rows; --limit shows more, --output writes all to a file")


def _cell(cell: Any) -> Any:
    """Return a cell as the table shows it: numbers as they are, and truncated on a terminal."""
    from barnabas.sql.result import plain, text

    whole = plain(cell)
    if cell is None or type(whole) is int:
        return whole
    shown = text(cell)
    if sys.stdout.isatty() and len(shown) > CELL_WIDTH:
        return shown[: CELL_WIDTH - 1] + "…"
    return shown
