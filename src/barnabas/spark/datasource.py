"""The data source `barnabas` of Spark: creates readers and writers from the options.

Spark creates these objects in several processes and pickles readers to tasks, so they hold options
and nothing that is open; a task gets what it needs in its partition. Options are checked as soon
as Spark calls any method, on the driver's side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from barnabas.model.errors import ConfigError
from barnabas.spark.options import parse_columns, parse_sink, parse_source
from barnabas.spark.source_rows import source_ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from barnabas.spark.readers import BatchReader, StreamReader
    from barnabas.spark.writers import BatchWriter, StreamWriter


class BarnabasSource(DataSource):
    """Topics of a Kafka cluster."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "barnabas"

    def schema(self) -> str:
        """Return the columns, which depend on the options alone."""
        return source_ddl(*parse_columns(self.options))

    def reader(self, schema: StructType) -> BatchReader:
        """Return a reader of topics for a batch query."""
        from barnabas.spark.readers import BatchReader

        return BatchReader(parse_source(self.options, streaming=False), schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        """Return a reader of topics for a stream."""
        from barnabas.spark.readers import StreamReader

        return StreamReader(parse_source(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Return a writer of rows to topics; it appends to a topic, never replaces it."""
        from barnabas.spark.writers import BatchWriter

        options = parse_sink(self.options, streaming=False)
        if overwrite:
            raise ConfigError('mode("overwrite"): must be append, as a topic cannot be replaced')
        return BatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """Return a writer of a stream's rows to topics."""
        from barnabas.spark.writers import StreamWriter

        return StreamWriter(parse_sink(self.options, streaming=True), schema)
