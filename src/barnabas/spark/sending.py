"""What a task of a sink does: send rows, at least once or as a transaction that it leaves open."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.admin.group_offsets import group_offsets
from barnabas.blocking.loop_thread import LoopThread
from barnabas.blocking.producer import KafkaProducer
from barnabas.client.retry import Backoff
from barnabas.client.switchboard import Switchboard
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.producer.coordinator import Coordinator
from barnabas.producer.identity import Identity
from barnabas.producer.many import ManyFuture
from barnabas.producer.transaction import State
from barnabas.spark.outgoing import Outgoing
from barnabas.spark.transactions import ENDED_ALREADY, TIMEOUT_MS, Open, TaskName, was_written
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")

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
) -> tuple[int, Open | None]:
    """Send rows in a transaction and leave it open; return how many there were, and which it is.

    A batch that the task has committed before is not sent again: then there is none.
    """
    options = {
        "batch.size": str(_BATCH_BYTES),
        "transaction.timeout.ms": str(TIMEOUT_MS),
        **client,
        "transactional.id": name.transactional_id,
    }
    with closing(HandingProducer(**options)) as producer:
        producer.init_transactions()
        if was_written(producer.markers(name.transactional_id), batch):
            return 0, None
        producer.begin_transaction()
        rows, topic = _send(producer, outgoing, batches)
        if topic is None:
            return 0, None
        marker = {TopicPartition(topic, 0): OffsetAndMetadata(batch + 1, "", -1)}
        producer.send_offsets_to_transaction(marker, name.transactional_id)
        return rows, Open(name.transactional_id, producer.hand_over())


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


class HandingProducer(KafkaProducer):
    """A producer whose transaction somebody else ends."""

    def markers(self, group: str) -> list[int]:
        """Return the offsets that a group has committed."""
        found = self._thread.call(group_offsets(self._core.switchboard, group))
        return [each.offset for each in found.values()]

    def hand_over(self) -> Identity:
        """Forget the transaction without ending it; return whose it is."""

        async def forget() -> Identity:
            transaction = self._transactions("hand_over").transaction
            transaction.check_usable("hand the transaction over")
            transaction.become(State.COMMITTING)
            transaction.ended()
            return self._core.sender.identity

        return self._thread.call(forget())


class Ending:
    """Ends transactions that tasks left open; for the driver."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._options = parse_client_options(ProducerOptions, client)

    def commit(self, transactions: Iterable[Open]) -> None:
        """Commit; again is nothing."""
        self._run(self._end(list(transactions), commit=True))

    def abort(self, transactions: Iterable[Open]) -> None:
        """Abort what is still open."""
        self._run(self._end(list(transactions), commit=False))

    async def _end(self, transactions: list[Open], *, commit: bool) -> None:
        board = Switchboard.from_options(self._options)
        try:
            await board.retrying(board.refresh, timeout_ms=self._options.bootstrap_timeout_ms)
            for each in transactions:
                coordinator = Coordinator(board, Backoff(_even), each.transactional_id, TIMEOUT_MS)
                try:
                    await coordinator.end(
                        each.identity, commit, timeout_ms=self._options.max_block_ms
                    )
                except RequestError as failure:
                    if failure.code not in ENDED_ALREADY:
                        raise
                    if commit:
                        failure.add_note(
                            f"the transaction of {each.transactional_id} is no longer open: its "
                            "transaction.timeout.ms passed, or another run of the query took over"
                        )
                        raise
        finally:
            await board.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        thread = LoopThread("barnabas-spark-sink")
        try:
            return thread.call(work)
        finally:
            thread.stop()


def _even() -> float:
    """Stand in for a random number: one driver has nobody to keep out of step with."""
    return 0.5
