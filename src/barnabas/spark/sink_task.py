"""A task of a sink: send rows, at least once or in a transaction that it leaves open.

Exactly once: each task of a micro-batch writes one transaction, which the driver commits.

A task uses the transactional id of its partition in the query (`SinkTaskId`), which aborts what an
earlier attempt left open. It reads its marker: the number of the last batch that it committed,
stored as an offset of a group of the same name. A batch that is not newer was written before:
nothing is sent. Otherwise rows and the new marker are written in one transaction, which the task
leaves open and describes in a `Written`. When all tasks are complete the driver commits them one
after the other; if it dies in between, Spark replays the batch: tasks that were committed skip it,
the others write it again.

That relies on a replay giving the same rows to the same task (see `offset_ranges`), on transactions
that outlive a batch, and on markers that outlive a dead driver: brokers keep a group's offsets for
offsets.retention.minutes, a week by default, in which a query that died between two commits must be
restarted. Transactions are atomic task by task, not across tasks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.admin.group_offsets import list_group_offsets
from barnabas.admin.settling import settled_or_raise
from barnabas.blocking.loop_thread import LoopThread
from barnabas.blocking.producer import KafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.query_progress import QueryProgress
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.many import ManyFuture
from barnabas.spark.sink_rows import SinkRows
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 512 * 1024
"""The default batch.size: tasks send large amounts."""

TIMEOUT_MS = 900_000
"""The default transaction.timeout.ms: the maximum that brokers allow by default."""

ENDED_ALREADY = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""Errors of an abort that mean that there is nothing left to abort.

Spark aborts after a failed commit, which may have taken effect all the same.
"""


@dataclass(frozen=True, slots=True)
class SinkTaskId:
    """A task of a query: the same in every run and every attempt."""

    prefix: str
    query: str
    task: int

    @property
    def transactional_id(self) -> str:
        """Its transactional id, and the group of its marker."""
        return f"{self.prefix}-{self.query}-{self.task}"


def was_written(markers: Iterable[int], batch: int) -> bool:
    """Return whether a task has committed a batch; markers are batch numbers plus one."""
    return max(markers, default=0) > batch


def send_rows(
    client: Mapping[str, str], sink_rows: SinkRows, batches: Iterable[pa.RecordBatch]
) -> int:
    """Send rows and wait until all are written; return their number."""
    with KafkaProducer(**{"batch.size": str(_BATCH_BYTES), **client}) as producer:
        return _send(producer, sink_rows, batches)[0]


def send_transaction(
    client: Mapping[str, str],
    sink_rows: SinkRows,
    batches: Iterable[pa.RecordBatch],
    task: SinkTaskId,
    batch: int,
) -> tuple[int, TransactionHandle | None]:
    """Send rows in a transaction and leave it open; return their number and its handle.

    A batch that the task has committed before is not sent again: then the handle is None.
    """
    options = {
        "batch.size": str(_BATCH_BYTES),
        "transaction.timeout.ms": str(TIMEOUT_MS),
        **client,
        "transactional.id": task.transactional_id,
    }
    with KafkaProducer(**options) as producer:
        producer.init_transactions()
        if was_written(read_markers(client, task.transactional_id), batch):
            return 0, None
        producer.begin_transaction()
        rows, topic = _send(producer, sink_rows, batches)
        if topic is None:
            return 0, None
        progress = QueryProgress(
            batch, time.time_ns() // 1_000_000, query=task.query, task=task.task
        )
        marker = {TopicPartition(topic, 0): OffsetAndMetadata(batch + 1, progress.text(), -1)}
        producer.send_offsets_to_transaction(marker, task.transactional_id)
        return rows, producer.hand_over()


def _send(
    producer: KafkaProducer, sink_rows: SinkRows, batches: Iterable[pa.RecordBatch]
) -> tuple[int, str | None]:
    """Send rows and wait for them; return their number, and the topic of the first."""
    sent: list[ManyFuture] = []
    rows, first = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows += batch.num_rows
        for topic, part in sink_rows.parts(batch):
            first = first or topic
            sent = [future for future in sent if not future.succeeded()]
            sent.append(producer.send_arrow(topic, part))
    producer.flush()
    for future in sent:
        future.get()
    return rows, first


def read_markers(client: Mapping[str, str], group: str) -> list[int]:
    """Return the committed offsets of a group.

    Waits for a transaction that is being committed: its outcome is already decided.
    """
    options = parse_client_options(ProducerOptions, client)

    async def ask() -> list[int]:
        async with ClusterClient.from_options(options) as cluster_client:
            await cluster_client.retrying(
                cluster_client.refresh, timeout_ms=options.bootstrap_timeout_ms
            )
            found = await list_group_offsets(
                cluster_client, {group: None}, require_stable=True, timeout_ms=options.max_block_ms
            )
            committed = settled_or_raise(settled_or_raise(found)[group])
            return [each.offset for each in committed.values()]

    thread = LoopThread("barnabas-spark-markers")
    try:
        return thread.call(ask())
    finally:
        thread.stop()


class TransactionEnder:
    """Ends, on the driver, the transactions that tasks left open."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client

    def commit(self, transactions: Iterable[TransactionHandle]) -> None:
        """Commit; repeating it is a no-op."""
        with KafkaProducer(**self._client) as producer:
            for each in transactions:
                try:
                    producer.complete_transaction(each, commit=True)
                except RequestError as failure:
                    if failure.code in ENDED_ALREADY:
                        failure.add_note(
                            f"the transaction of {each.transactional_id} is no longer open: its "
                            "transaction.timeout.ms passed, or another run of the query took over"
                        )
                    raise

    def abort(self, transactions: Iterable[TransactionHandle]) -> None:
        """Abort what is still open."""
        with KafkaProducer(**self._client) as producer:
            for each in transactions:
                try:
                    producer.complete_transaction(each, commit=False)
                except RequestError as failure:
                    if failure.code not in ENDED_ALREADY:
                        raise
