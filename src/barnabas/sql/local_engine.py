"""Runs queries with DuckDB in this process, on rows as they are fetched.

A table that a query reads once is streamed through it: memory does not grow with the topic, and a
LIMIT stops the fetching. A table that is read several times (a self-join, a recursion) is loaded
first, as rows are streamed only once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any

from barnabas.sql.dialect import Translated, quoted, to_duckdb
from barnabas.sql.errors import SqlError, UnknownTopicError, at_position
from barnabas.sql.feed import Feed
from barnabas.sql.result import Result
from barnabas.sql.table import TopicTable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

RESULT_ROWS = 10_000
_FILES = re.compile(r".*\.(csv|tsv|json|jsonl|ndjson|parquet)(\.(gz|zst))?", re.IGNORECASE)
_EXPLAIN = "explain (format json) "
_SCANS = re.compile(r'"name": "[A-Z_]*ARROW_SCAN')
_SYSTEM = ("information_schema", "pg_catalog")


class LocalEngine:
    """One connection of DuckDB; end it with `close`."""

    def __init__(self, client: Mapping[str, str], progressed: Callable[[], None]) -> None:
        try:
            import duckdb
        except ImportError as failure:
            raise SqlError(
                "the local engine needs duckdb, which is not installed: "
                "pip install 'barnabas[sql]'; --engine spark does not need it"
            ) from failure
        self._error = duckdb.Error
        self._client = client
        self._progressed = progressed
        self._duck: duckdb.DuckDBPyConnection = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": False,
                "python_enable_replacements": False,
            },
        )
        self._duck.execute("set TimeZone = 'UTC'")
        self.feeds: dict[str, Feed] = {}

    def run(self, query: str, table_of: Callable[[str], TopicTable]) -> Result:
        """Return the rows of a query; `table_of` returns the table of a topic, or raises."""
        translated = to_duckdb(query)
        mentions = self._mentions(query, translated)
        for name in mentions.counts:
            if _FILES.fullmatch(name) or name in mentions.foreign:
                continue
            try:
                table = table_of(name)
            except UnknownTopicError:
                if name in mentions.own:
                    continue
                raise
            if name in mentions.dotted:
                raise SqlError(f"topic {name}: in a query write it as `{name}`, with backticks")
            self.feeds[name] = Feed(table, self._client, self._progressed)
        streams = self._reads_once(query, translated, mentions)
        for name, feed in self.feeds.items():
            if streams:
                self._duck.register(name, feed.reader())
            else:
                self._load(name, feed)
        try:
            reader = self._interruptible(
                lambda: self._duck.sql(translated.text).to_arrow_reader(RESULT_ROWS)
            )
        except self._error as failure:
            raise self._told(failure, query, translated) from None
        return Result(reader.schema, self._batches(reader, query, translated))

    def close(self) -> None:
        """Stop fetching, and drop all tables."""
        for feed in self.feeds.values():
            feed.close()
        self._duck.close()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _mentions(self, query: str, translated: Translated) -> Mentions:
        """Return the tables that a query names."""
        [(answer,)] = self._duck.execute(
            "select json_serialize_sql(?::varchar)", [translated.text]
        ).fetchall()
        tree = json.loads(answer)
        if tree.get("error"):
            what = str(tree.get("error_message", "it cannot be parsed"))
            if "position" in tree:
                raise _misread(query, translated.original(int(tree["position"])), what)
            raise SqlError("only queries can be run: select …, with …, from …")
        if len(tree["statements"]) != 1:
            raise SqlError(f"must be one query, not {len(tree['statements'])}")
        mentions = Mentions()
        mentions.collect(tree)
        return mentions

    def _reads_once(self, query: str, translated: Translated, mentions: Mentions) -> bool:
        """Return whether the plan of a query reads each table at most once."""
        for name, feed in self.feeds.items():
            self._duck.register(name, feed.rows.schema.empty_table())
        try:
            rows = self._duck.execute(f"{_EXPLAIN}{translated.text}").fetchall()
        except self._error as failure:
            raise self._told(failure, query, translated) from None
        finally:
            for name in self.feeds:
                self._duck.unregister(name)
        plan = rows[0][1]
        once = all(count == 1 for count in mentions.counts.values())
        return once and _SCANS.subn("", plan)[1] <= len(self.feeds) and "RECURSIVE" not in plan

    def _load(self, name: str, feed: Feed) -> None:
        self._duck.register("feed of a topic", feed.reader())
        try:
            self._duck.execute(f'create table {quoted(name)} as select * from "feed of a topic"')
        except self._error:
            self._raise_failure()
            raise
        finally:
            self._duck.unregister("feed of a topic")
        self._raise_failure()

    def _batches(
        self, reader: pa.RecordBatchReader, query: str, translated: Translated
    ) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._interruptible(lambda: next(reader, None))) is not None:
                yield batch
        except (self._error, OSError) as failure:  # Arrow's streams raise OSError
            raise self._told(failure, query, translated) from None
        self._raise_failure()

    def _interruptible(self, call: Callable[[], Any]) -> Any:
        """Return the result of a call; Ctrl-C interrupts it, which DuckDB does not check for."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(call)
            try:
                return future.result()
            except KeyboardInterrupt:
                self._duck.interrupt()
                raise

    def _raise_failure(self) -> None:
        for feed in self.feeds.values():
            if feed.failure is not None:
                raise feed.failure

    def _told(self, failure: Exception, query: str, translated: Translated) -> Exception:
        """Return our error for one of DuckDB."""
        for feed in self.feeds.values():
            if feed.failure is not None:
                return feed.failure  # type: ignore[return-value]
        return explained(str(failure), query, translated)


def explained(message: str, query: str, translated: Translated) -> SqlError:
    """Return DuckDB's message as one line, with the position in the query as it was typed."""
    head, _, rest = message.strip().partition("\n\nLINE ")
    what = " ".join(head.split())
    what = what.split(": ", 1)[1] if re.match(r"[A-Z]\w+ Error: ", what) else what
    caret = re.match(r"(\d+): ([^\n]*)\n( *)\^", rest)
    if caret is None:
        return SqlError(what)
    lines = translated.text.split("\n")
    number = int(caret[1]) - 1
    # The line may be truncated on both sides, marked by three dots.
    line = lines[number]
    shown = caret[2]
    column = len(caret[3]) - len(f"LINE {caret[1]}: ")
    if shown.startswith("..."):
        column += line.find(shown[3:].removesuffix("...")) - 3
    if _EXPLAIN in shown:
        column -= len(_EXPLAIN)
    before = sum(len(each) + 1 for each in lines[:number])
    return at_position(query, translated.original(before + column), what)


def _misread(query: str, position: int, what: str) -> SqlError:
    failure = at_position(query, position, what)
    if query[position : position + 1] in ("-", "."):
        failure.add_note("names with dashes or dots need backticks: `my-topic`")
    return failure


class Mentions:
    """The tables in a parsed query: those that it reads, and those that it defines."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.own: set[str] = set()
        self.dotted: set[str] = set()
        self.foreign: set[str] = set()

    def collect(self, node: Any) -> None:
        """Visit a node and all below it."""
        if isinstance(node, list):
            for each in node:
                self.collect(each)
        elif isinstance(node, dict):
            if node.get("type") == "BASE_TABLE" and node.get("table_name"):
                self._add(node)
            for entry in (node.get("cte_map") or {}).get("map") or ():
                self.own.add(entry["key"])
            for each in node.values():
                self.collect(each)

    def _add(self, node: dict[str, Any]) -> None:
        parts = [node.get("catalog_name"), node.get("schema_name"), node["table_name"]]
        given = [part for part in parts if part]
        name = ".".join(given)
        self.counts[name] = self.counts.get(name, 0) + 1
        if len(given) > 1:
            (self.foreign if given[0] in _SYSTEM else self.dotted).add(name)
