"""The writers that Spark uses: Arrow batches in, a commit message per task out.

At least once by default: a task that fails or a batch that is replayed writes its rows again. With
`exactlyOnce=true` read_committed consumers get a stream's rows once; see `sink_task`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.model.errors import BarnabasError
from barnabas.producer.handle import TransactionHandle
from barnabas.spark.options import SinkOptions
from barnabas.spark.sink_rows import SinkRows
from barnabas.spark.sink_task import (
    SinkTaskId,
    TransactionEnder,
    send_rows,
    send_transaction,
)
from barnabas.spark.worker import freeze_modules

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass
class Written(WriterCommitMessage):
    """What a task has written, and the transaction that it left open."""

    rows: int
    transaction: TransactionHandle | None = None


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._sink_rows = SinkRows(to_arrow_schema(schema, timezone="UTC"), options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task."""
        written = Written(send_rows(self._options.client, self._sink_rows, iterator))
        freeze_modules()
        return written


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a stream, batch by batch."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._sink_rows = SinkRows(to_arrow_schema(schema, timezone="UTC"), options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task; for exactly once, in a transaction that stays open."""
        options = self._options
        if options.exactly_once:
            task, batch = self._task()
            sent = send_transaction(options.client, self._sink_rows, iterator, task, batch)
            written = Written(*sent)
        else:
            written = Written(send_rows(options.client, self._sink_rows, iterator))
        freeze_modules()
        return written

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit what the tasks have written."""
        transactions = _open(messages)
        if transactions:
            TransactionEnder(self._options.client).commit(transactions)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Abort what the tasks have written, unless it is committed."""
        transactions = _open(messages)
        if transactions:
            TransactionEnder(self._options.client).abort(transactions)

    def _task(self) -> tuple[SinkTaskId, int]:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        if context is None or query is None or batch is None:
            raise BarnabasError("exactlyOnce=true: this is not a task of a streaming query")
        task = SinkTaskId(self._options.transactional_id_prefix, query, context.partitionId())
        return task, int(batch)


def _open(messages: Sequence[WriterCommitMessage | None]) -> list[TransactionHandle]:
    return [
        message.transaction
        for message in messages
        if isinstance(message, Written) and message.transaction is not None
    ]
