"""The data source `barnabas-log` of Spark: segment files as tables, without a broker.

    spark.read.format("barnabas-log").load("data")

Files are planned on the driver and read by tasks, each of which must see the same paths. Nothing
is ever written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.spark.logfiles.files import Piece, plan_tasks
from barnabas.spark.logfiles.options import LogOptions, parse_log, parse_log_columns
from barnabas.spark.logfiles.reading import read_pieces
from barnabas.spark.logfiles.rows import check_log_columns, log_ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class BarnabasLogSource(DataSource):
    """Segment files of a data directory."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "barnabas-log"

    def schema(self) -> str:
        """Return the columns, which depend on the options alone."""
        return log_ddl(parse_log_columns(self.options))

    def reader(self, schema: StructType) -> LogReader:
        """Return a reader of files for a batch query."""
        check_log_columns(schema.names)
        return LogReader(parse_log(self.options), schema)


class PiecesPartition(InputPartition):
    """The pieces of files that a task reads."""

    def __init__(self, pieces: tuple[Piece, ...]) -> None:
        super().__init__(pieces)


class LogReader(DataSourceReader):
    """Reads segment files once."""

    def __init__(self, options: LogOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks of the query."""
        return [PiecesPartition(pieces) for pieces in plan_tasks(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        layout = to_arrow_schema(self._schema, timezone="UTC")
        return read_pieces(partition.value, self._options, layout)
