"""What one task of a query reads, and how: shared by batch queries and streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.spark.options import SourceOptions
from barnabas.spark.plan import Range
from barnabas.spark.reading import read_ranges
from barnabas.spark.rows import Rows, check_columns
from barnabas.spark.worker import consumers, settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def check_query(options: SourceOptions, schema: StructType) -> None:
    """Raise ConfigError, on the driver, unless tasks can make the columns of a query."""
    layout = to_arrow_schema(schema, timezone="UTC")
    check_columns(layout, options.value_format, options.transform)


class RangesPartition(InputPartition):
    """The offsets that a task reads."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__(tuple(ranges))


def read_task(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task."""
    layout = to_arrow_schema(schema, timezone="UTC")
    rows = Rows(layout, options.value_format, options.transform)
    polled = read_ranges(
        options.client,
        partition.value,
        fails_on_loss=options.fails_on_loss,
        patience_ms=options.poll_timeout_ms,
        lend=consumers().lend,
    )
    for batch in polled:
        yield rows(batch)
    settle()
