"""The sinks as Spark sees them: Arrow batches in, a message per task out.

At least once by default: a task that fails or a batch that is replayed writes its rows again. With
`exactlyOnce=true` a stream's rows come once for readers of committed records; see `transactions`.
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
from barnabas.spark.outgoing import Outgoing
from barnabas.spark.sending import Ending, send_rows, send_transaction
from barnabas.spark.transactions import TaskName
from barnabas.spark.worker import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass
class Written(WriterCommitMessage):
    """What a task has written, and the transaction that waits for its end."""

    rows: int
    transaction: TransactionHandle | None = None


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._outgoing = Outgoing(to_arrow_schema(schema, timezone="UTC"), options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task."""
        written = Written(send_rows(self._options.client, self._outgoing, iterator))
        settle()
        return written


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a stream, batch by batch."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._outgoing = Outgoing(to_arrow_schema(schema, timezone="UTC"), options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task; exactly once: into a transaction that stays open."""
        options = self._options
        if options.exactly_once:
            name, batch = self._place()
            sent = send_transaction(options.client, self._outgoing, iterator, name, batch)
            written = Written(*sent)
        else:
            written = Written(send_rows(options.client, self._outgoing, iterator))
        settle()
        return written

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit what the tasks have written."""
        transactions = _open(messages)
        if transactions:
            Ending(self._options.client).commit(transactions)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Abort what the tasks have written, unless it is committed already."""
        transactions = _open(messages)
        if transactions:
            Ending(self._options.client).abort(transactions)

    def _place(self) -> tuple[TaskName, int]:
        task = TaskContext.get()
        query = None if task is None else task.getLocalProperty("sql.streaming.queryId")
        batch = None if task is None else task.getLocalProperty("streaming.sql.batchId")
        if task is None or query is None or batch is None:
            raise BarnabasError("exactlyOnce=true: this is no task of a streaming query")
        name = TaskName(self._options.transactional_id_prefix, query, task.partitionId())
        return name, int(batch)


def _open(messages: Sequence[WriterCommitMessage | None]) -> list[TransactionHandle]:
    return [
        message.transaction
        for message in messages
        if isinstance(message, Written) and message.transaction is not None
    ]
