"""What a task of a sink does: send rows, at least once or as a transaction that it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.admin.group_offsets import list_group_offsets
from barnabas.admin.settling import settled_or_raise
from barnabas.blocking.loop_thread import LoopThread
from barnabas.blocking.producer import KafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.many import ManyFuture
from barnabas.spark.outgoing import Outgoing
from barnabas.spark.transactions import ENDED_ALREADY, TIMEOUT_MS, TaskName, was_written
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_BYTES = 512 * 1024
"""Of a producer's batch, unless options say else: tasks send much at once."""


def send_rows(
    client: Mapping[str, str], outgoing: Outgoing, batches: Iterable[pa.RecordBatch]
) -> int:
    """Send rows and wait until all are written; return how many there were."""
    with KafkaProducer(**{"batch.size": str(_BATCH_BYTES), **client}) as producer:
        return _send(producer, outgoing, batches)[0]


def send_transaction(
    client: Mapping[str, str],
    outgoing: Outgoing,
    batches: Iterable[pa.RecordBatch],
    name: TaskName,
    batch: int,
) -> tuple[int, TransactionHandle | None]:
    """Send rows in a transaction and leave it open; return how many there were, and which it is.

    A batch that the task has committed before is not sent again: then there is none.
    """
    options = {
        "batch.size": str(_BATCH_BYTES),
        "transaction.timeout.ms": str(TIMEOUT_MS),
        **client,
        "transactional.id": name.transactional_id,
    }
    with KafkaProducer(**options) as producer:
        producer.init_transactions()
        if was_written(markers(client, name.transactional_id), batch):
            return 0, None
        producer.begin_transaction()
        rows, topic = _send(producer, outgoing, batches)
        if topic is None:
            return 0, None
        marker = {TopicPartition(topic, 0): OffsetAndMetadata(batch + 1, "", -1)}
        producer.send_offsets_to_transaction(marker, name.transactional_id)
        return rows, producer.hand_over()


def _send(
    producer: KafkaProducer, outgoing: Outgoing, batches: Iterable[pa.RecordBatch]
) -> tuple[int, str | None]:
    """Send rows and wait for them; return how many, and the topic of the first."""
    sent: list[ManyFuture] = []
    rows, first = 0, None
    for batch in batches:
        if not batch.num_rows:
            continue
        rows += batch.num_rows
        for topic, part in outgoing.parts(batch):
            first = first or topic
            sent = [future for future in sent if not future.succeeded()]
            sent.append(producer.send_arrow(topic, part))
    producer.flush()
    for future in sent:
        future.get()
    return rows, first


def markers(client: Mapping[str, str], group: str) -> list[int]:
    """Return the offsets that a group has committed.

    One that a transaction is about to commit is waited for: its end is decided already.
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


class Ending:
    """Ends transactions that tasks left open; for the driver."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client

    def commit(self, transactions: Iterable[TransactionHandle]) -> None:
        """Commit; again is nothing."""
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
