"""Runs queries with Spark, through `format("barnabas")`.

Spark's own analysis reports which tables a query names: each one that it does not find is looked up
among the topics, and the query is analysed again. The JVM's stderr is captured and
shown only if it does not start.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import ConfigError
from barnabas.spark.cores import cores
from barnabas.spark.session import apart, close_session, open_session
from barnabas.spark.values.value_format import ERROR_COLUMN
from barnabas.sql.errors import SqlError, at_position
from barnabas.sql.result import Result
from barnabas.sql.table import TopicTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)|; line (\d+) pos (\d+)")


class SparkEngine:
    """One session of Spark; end it with `close`."""

    def __init__(self, client: Mapping[str, str], master: str) -> None:
        self._client = client
        # Spark's catalog creates a folder; the default is the current directory.
        self._warehouse = TemporaryDirectory(prefix="barnabas-sql-")
        try:
            self._spark = _start(master, self._warehouse.name)
        except BaseException:
            self._warehouse.cleanup()
            raise

    def run(self, query: str, table_of: Callable[[str], TopicTable], rows: int | None) -> Result:
        """Return the rows of a query, at most that many; `table_of` returns a topic's table."""
        from pyspark.errors import PySparkException

        try:
            frame = self._analysed(query, table_of)
            if rows is not None:
                frame = frame.limit(rows)
            found = apart(frame.toArrow)  # interrupted, PySpark would wait for the end of a job
        except PySparkException as failure:
            raise explained(str(failure), query) from None
        return Result(found.schema, iter(found.to_batches()))

    def close(self) -> None:
        """End the session."""
        close_session(self._spark)
        self._warehouse.cleanup()

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _analysed(self, query: str, table_of: Callable[[str], TopicTable]) -> DataFrame:
        from pyspark.errors import AnalysisException

        made: set[str] = set()
        while True:
            try:
                return self._spark.sql(query)
            except AnalysisException as failure:
                name = _missing_table(failure)
                if name is None or name in made:
                    raise
                made.add(name)
                view = "`" + name.replace("`", "``") + "`"
                self._frame(table_of(name)).createOrReplaceTempView(view)

    def _frame(self, table: TopicTable) -> DataFrame:
        """Return a topic with the columns of its table."""
        options = {
            "includeHeaders": "true",
            "failOnDataLoss": "false",
            "assign": json.dumps({table.topic: [each.partition for each in table.ranges]}),
        }
        for option, edge in (("startingOffsets", "start"), ("endingOffsets", "until")):
            offsets = {str(each.partition): getattr(each, edge) for each in table.ranges}
            options[option] = json.dumps({table.topic: offsets})
        for name, value in self._client.items():
            if name not in ("enable.auto.commit", "auto.offset.reset"):
                options[f"kafka.{name}"] = value
        if table.format.name in _READ_BY_SOURCE:
            options |= {"valueFormat": table.format.name, "valueSchema": table.schema or ""}
        frame = self._spark.read.format("barnabas").options(**options).load()
        return frame.select(*_columns(table))


_READ_BY_SOURCE = ("avro", "protobuf")
"""Formats that the source parses; JSON and CSV are parsed by Spark itself."""


def _columns(table: TopicTable) -> list[Any]:
    from pyspark.sql import functions as f

    value: Any = f.col("value")
    format = table.format
    in_source = format.name in _READ_BY_SOURCE
    columns = [
        *("partition", "offset", "timestamp"),
        _text(f.col("key"), table.text_keys).alias("key"),
        value if in_source else _text(value, table.text_values).alias("value"),
        "headers",
    ]
    if table.value_type() is None:
        return columns
    parsed = value
    if format.name == "json":
        parsed = f.from_json(value.cast("string"), format.schema)
    elif format.name == "csv":
        parsed = f.from_csv(value.cast("string"), format.schema)
    for name, column in table.names.items():
        columns.append((parsed.getField(name) if table.has_fields else parsed).alias(column))
    return [*columns, ERROR_COLUMN] if in_source else columns


def _text(column: Any, wanted: bool) -> Any:
    return column.cast("string") if wanted else column


def _missing_table(failure: Any) -> str | None:
    """Return the table that an analysis did not find; None if it failed for another reason."""
    if failure.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    relation = failure.getMessageParameters()["relationName"]
    parts = re.findall(r"`((?:[^`]|``)+)`", relation)
    return ".".join(part.replace("``", "`") for part in parts)


def explained(message: str, query: str) -> SqlError:
    """Return Spark's message as one line, with the position in the query."""
    first = message.strip().split("\n")[0]  # the plan, or the query, follows
    position = _POSITION.search(message)
    what = _POSITION.sub("", first)
    what = re.sub(r"^\[[A-Z_.0-9]+\] ", "", what)
    what = re.sub(r"\s*SQLSTATE: \w+\s*;?", "", what).rstrip(" .;")
    if position is None:
        return SqlError(what)
    line, column = (int(each) for each in position.groups() if each is not None)
    before = sum(len(each) + 1 for each in query.split("\n")[: line - 1])
    return at_position(query, before + column, what)


def _start(master: str, warehouse: str) -> SparkSession:
    from barnabas.spark import register

    # It writes each error of an analysis to stderr, even if we then retry.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    conf = {"spark.sql.session.timeZone": "UTC", "spark.sql.warehouse.dir": warehouse}
    if master.startswith("local"):
        # Spark's 200 are for clusters: each costs a task.
        conf["spark.sql.shuffle.partitions"] = str(cores())
    try:
        session = open_session(master, "barnabas sql", conf)
    except ConfigError as failure:
        raise SqlError(str(failure)) from failure
    register(session)
    return session
