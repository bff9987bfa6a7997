"""What one task of a query reads, and how: shared by batch queries and streams.

A worker process is given one task after another. `_worker` is what it keeps between them, and the
one thing here that outlives a call: Spark offers no other place for it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.spark.consumers import Consumers
from barnabas.spark.options import SourceOptions
from barnabas.spark.plan import Range
from barnabas.spark.reading import read_ranges
from barnabas.spark.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


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
        lend=_worker().lend,
    )
    for batch in polled:
        yield rows(batch)
    if TaskContext.get() is not None:
        _settle()


@cache
def _worker() -> Consumers:
    """Return the consumers of this process."""
    return Consumers()


@cache
def _settle() -> None:
    """Have the garbage collector pass over what is loaded by now, once in a process.

    PySpark collects after every task, which looks at all objects there are: tens of milliseconds
    for modules that stay anyway.
    """
    gc.collect()
    gc.freeze()
