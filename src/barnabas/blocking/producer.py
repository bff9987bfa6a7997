"""`KafkaProducer`: kafka-python's names and behaviour, on a loop in a thread of its own.

`send` encodes the record in the caller's thread and returns; the loop's thread sends, and runs
callbacks. Where a producer has no serializer, interceptor or partitioner of its own, `send` is the
accumulator's method itself: one call, no Python code in between.

Thread-safe. In a forked child every call raises `ClientForkedError`. Waits end with Ctrl-C at once.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.client_id import producer_client_id
from barnabas.client.connection_stats import refuse_raw
from barnabas.client.errors import IllegalStateError, KafkaTimeoutError, ProducerClosed
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.kernels import PendingBatch, RecordFuture, Segment
from barnabas.kernels.accumulator_contract import Refusal
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.model.serializer import close_serializers
from barnabas.producer.core import ProducerCore
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.many import Append, ManyFuture, rows_appender, table_appenders
from barnabas.producer.memory_queue import MemoryTurn
from barnabas.producer.preparation import Arguments, plain_size
from barnabas.producer.refusals import memory_error, refusal_error
from barnabas.producer.transacting import Transacting, needs_transactions
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:
    import pyarrow

FutureRecordMetadata = RecordFuture

_EXIT_S = 1.0
"""How long the end of the program waits for records of a producer that was not closed."""


class KafkaProducer:
    """A producer for plain programs; options are keywords in Kafka's or kafka-python's spelling.

        with KafkaProducer(bootstrap_servers="broker:9092", linger_ms=5) as producer:
            future = producer.send("orders", b"two teapots", key=b"customer-7")
            print(future.get(timeout=10).offset)
            producer.send_many("orders", [(b"customer-8", b"a cup"), (b"customer-9", b"tea")])

    Closing sends what is queued. Callbacks of futures run on the producer's own thread.
    """

    def __init__(self, **configs: Any) -> None:
        """Find the cluster, or raise NoBrokersAvailable after bootstrap_timeout_ms."""
        self._closed = True
        self._options = parse_client_options(ProducerOptions, configs)
        self.config: dict[str, Any] = {
            option.attribute: getattr(self._options, option.attribute)
            for option in ProducerOptions.options.values()
        }
        client_id = producer_client_id(self._options)
        self.config["client_id"] = client_id
        self._thread = LoopThread(client_id)
        try:
            self._core = self._thread.call(self._start(client_id))
        except BaseException:
            self._thread.stop()
            raise
        self._thread.hold(self._core)
        self._closed = False
        if self._core.preparation.trivial and type(self).send is KafkaProducer.send:
            self.__dict__["send"] = self._core.accumulator.send
        os.register_at_fork(after_in_child=partial(_forked, weakref.ref(self)))
        self._at_exit = partial(_exit, weakref.ref(self))
        atexit.register(self._at_exit)

    async def _start(self, client_id: str) -> ProducerCore:
        core = ProducerCore(
            self._options,
            post=self._thread.post,
            wait=partial(_wait, weakref.ref(self)),
            detour=partial(_detour, weakref.ref(self)),
            client_id=client_id,
        )
        try:
            await core.start(self._options.bootstrap_timeout_ms)
        except BaseException:
            await core.cluster_client.close()
            raise
        return core

    # Records.

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordFuture:
        """Queue a record and return a future of its `RecordMetadata`.

        Blocks for at most max_block_ms while the topic's partitions are unknown or all memory is
        taken, then raises KafkaTimeoutError.

            producer.send("orders", b"two teapots", key=b"customer-7", headers=[("v", b"1")])
            producer.send("orders", b"a cup").add_callback(lambda place: print(place.offset))
        """
        preparation = self._core.preparation
        arguments: Arguments = (topic, value, key, headers, partition, timestamp_ms)
        if preparation.trivial:
            return self._core.accumulator.send(*arguments)  # type: ignore[no-any-return]
        arguments = preparation.intercept(arguments)
        try:
            if preparation.asks_partitioner:
                self._await_topic(arguments[0])
            future: RecordFuture = self._core.accumulator.send(*preparation.serialize(arguments))
        except Exception as failure:
            preparation.refused(failure)
            raise
        preparation.follow(future)
        return future

    def send_many(
        self, topic: str, rows: Sequence[Any], *, partition: int | None = None
    ) -> ManyFuture:
        """Queue many records in one call, and return one future for all.

        A row is a value, or (key, value[, headers[, timestamp_ms[, partition]]]). The future's
        `get` returns where the rows are: ranges of offsets by partition.

            producer.send_many("orders", [b"tea", (b"customer-7", b"a cup")]).get(timeout=10)
        """
        preparation = self._core.preparation
        if not preparation.trivial:
            if preparation.asks_partitioner:
                self._await_topic(topic)
            rows = [preparation.row(topic, row, partition) for row in rows]
        append = rows_appender(self._core.accumulator, topic, rows, partition)
        segments: list[Segment] = []
        try:
            self._append(topic, append, segments)
        finally:  # what was queued before a row was refused is on its way
            preparation.follow_many(segments)
        return ManyFuture(segments, self._core.accumulator.wait)

    def send_arrow(
        self,
        topic: str,
        table: pyarrow.Table | pyarrow.RecordBatch,
        *,
        partition: int | None = None,
    ) -> ManyFuture:
        """Queue the rows of a table: columns value and, as wanted, key, headers, partition and
        timestamp. Serializers, interceptors and partitioners are not asked.

            producer.send_arrow("orders", pyarrow.table({"value": [b"tea", b"a cup"]}))
        """
        accumulator = self._core.accumulator
        segments: list[Segment] = []
        for append in table_appenders(accumulator, topic, table, partition):
            self._append(topic, append, segments)
        return ManyFuture(segments, accumulator.wait)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything queued so far and wait for the outcome, at most `timeout` seconds.

        producer.flush(timeout=10)
        """
        self._check_open()
        timeout_ms = _milliseconds(timeout)
        self._thread.call(self._core.flush(timeout_ms))

    def partitions_for(self, topic: str) -> set[int]:
        """Return the partitions of a topic.

        producer.partitions_for("orders")     # {0, 1, 2}
        """
        self._check_open()
        self._await_topic(topic)
        return set(self._core.cluster_client.cluster.partitions_for(topic) or ())

    def bootstrap_connected(self) -> bool:
        """Tell whether a broker was found.

        assert producer.bootstrap_connected()
        """
        return bool(self._core.cluster_client.cluster.brokers)

    def metrics(self, raw: bool = False) -> dict[str, dict[str, float]]:
        """Return groups of metrics, under the names of Kafka's clients.

            producer.metrics()["producer-metrics"]["record-send-total"]

        They are plain numbers: there are no objects behind them that `raw` could ask for.
        """
        refuse_raw(raw)
        if self._closed:
            return {}

        async def read() -> dict[str, dict[str, float]]:
            return self._core.metrics()

        return self._thread.call(read())

    # Transactions.

    def init_transactions(self) -> None:
        """Get ready for transactions; ends what an earlier producer of this name left open.

        producer = KafkaProducer(transactional_id="orders-1", **options)
        producer.init_transactions()
        """
        self._thread.call(
            self._transactions("init_transactions").initialize(self._options.max_block_ms)
        )

    def begin_transaction(self) -> None:
        """Begin a transaction.

        producer.begin_transaction()
        producer.send("orders", b"two teapots")
        producer.commit_transaction()
        """
        transacting = self._transactions("begin_transaction")

        async def begin() -> None:
            transacting.begin()

        self._thread.call(begin())

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit a group's offsets as part of the transaction.

        offsets = {TopicPartition("orders", 0): OffsetAndMetadata(17, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        """
        transacting = self._transactions("send_offsets_to_transaction")
        self._thread.call(
            transacting.commit_offsets(offsets, group_metadata, self._options.max_block_ms)
        )

    def commit_transaction(self) -> None:
        """Deliver what was sent, then commit.

        producer.commit_transaction()
        """
        transacting = self._transactions("commit_transaction")
        self._thread.call(transacting.commit(self._options.max_block_ms))

    def abort_transaction(self) -> None:
        """Give up what was not yet delivered, then abort.

        except KafkaError:
            producer.abort_transaction()
        """
        transacting = self._transactions("abort_transaction")
        self._thread.call(transacting.abort(self._options.max_block_ms))

    def hand_over(self) -> TransactionHandle | None:
        """Deliver what was sent, and leave the transaction open: the handle's owner ends it.

        The producer can only be closed then. None if nothing was sent, as there is nothing to end.
        The broker aborts the transaction after transaction_timeout_ms, and when another producer
        of this transactional_id starts.

            handle = producer.hand_over()                             # in one process
            other_producer.complete_transaction(handle, commit=True)   # in another
        """
        transacting = self._transactions("hand_over")
        return self._thread.call(transacting.hand_over(self._options.max_block_ms))

    def complete_transaction(self, handle: TransactionHandle, *, commit: bool) -> None:
        """End a transaction that another producer has handed over; any producer can.

        The same again is nothing. Raises ProducerFencedError, InvalidProducerEpochError or
        InvalidTxnStateError if the transaction is no longer open, or was ended the other way.

            other_producer.complete_transaction(handle, commit=True)
        """
        self._check_open()
        self._thread.call(self._core.complete(handle, commit))

    # The end.

    def close(self, timeout: float | None = None) -> None:
        """Send what is queued, at most for `timeout` seconds, give up the rest, and end.

        producer.close(timeout=5)
        """
        timeout_ms = _milliseconds(timeout)
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        if self._thread.running:
            try:
                if self._thread.current:
                    self._thread.post(partial(_close_later, self._core, self._thread))
                    return
                self._thread.call(self._core.close(timeout_ms))
            finally:
                if not self._thread.current:
                    self._thread.stop()
        close_serializers(self._options.key_serializer, self._options.value_serializer)

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close(timeout=_EXIT_S)

    def __repr__(self) -> str:
        name = self.config.get("client_id")
        return f"<KafkaProducer client_id={name} transactional_id={self._options.transactional_id}>"

    # Inside.

    def _check_open(self) -> None:
        if self._closed:
            raise ProducerClosed("the producer is closed")

    def _transactions(self, wish: str) -> Transacting:
        self._check_open()
        return needs_transactions(self._core.transacting, wish)

    def _append(self, topic: str, append: Append, segments: list[Segment]) -> None:
        row = 0
        deadline_s: float | None = None
        bell = threading.Event()
        with MemoryTurn(self._core.memory_queue, bell.set) as turn:
            while True:
                taken, refusal = append(row, segments, turn.held)
                if not refusal:
                    return
                moved = taken > row
                if moved or deadline_s is None:  # what moves on has its time anew
                    deadline_s = time.monotonic() + self._options.max_block_ms / 1000
                row = taken
                if moved and turn.held:
                    turn.leave()
                    continue
                try:
                    if refusal == Refusal.MEMORY:
                        self._await_memory(turn, bell, topic, deadline_s)
                    else:
                        turn.leave()
                        arguments: Arguments = (topic, None, None, None, None, None)
                        self._make_way(refusal, arguments, deadline_s)
                except (TypeError, InvalidValueError, RequestError, KafkaTimeoutError) as failure:
                    failure.add_note(f"row {row}; the rows before it are queued")
                    raise

    def _await_topic(self, topic: str, timeout_ms: float | None = None) -> None:
        if self._core.accumulator.partition_count(topic):
            return
        if timeout_ms is None:
            timeout_ms = self._options.max_block_ms
        self._thread.call(self._core.topics.know(topic, timeout_ms))

    def _make_way(self, refusal: int, arguments: Arguments, deadline_s: float) -> None:
        """Wait for what a record lacks, or raise what stands against it."""
        if not self._thread.running:
            self._thread.post(_nothing)  # raises, and says why
        left_s = max(deadline_s - time.monotonic(), 0.0)
        if refusal == Refusal.TOPIC:
            self._await_topic(arguments[0], left_s * 1000)
        else:
            raise refusal_error(self._core, refusal, arguments)

    def _await_memory(
        self, turn: MemoryTurn, bell: threading.Event, topic: str, deadline_s: float
    ) -> None:
        """Wait until it is this caller's turn to take memory, and there may be enough."""
        if not self._thread.running:
            self._thread.post(_nothing)  # raises, and says why
        if self._thread.current:
            raise IllegalStateError(
                "all memory is taken, and a callback of the producer cannot wait for some"
            )
        turn.ask()
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not bell.wait(left_s):
            raise memory_error(self._options, topic, self._options.max_block_ms)
        bell.clear()

    def _sent_after_all(self, refusal: int, arguments: Arguments) -> RecordFuture:
        deadline_s = time.monotonic() + self._options.max_block_ms / 1000
        if self._closed:
            raise ProducerClosed("the producer is closed: it takes no more records")
        bell = threading.Event()
        with MemoryTurn(self._core.memory_queue, bell.set, plain_size(arguments)) as turn:
            while True:
                if refusal == Refusal.MEMORY:
                    self._await_memory(turn, bell, arguments[0], deadline_s)
                else:
                    turn.leave()
                    try:
                        self._make_way(refusal, arguments, deadline_s)
                    except RequestError as failure:
                        if refusal != Refusal.TOPIC:
                            raise
                        return self._failed_future(arguments, failure)
                taken = self._core.accumulator.append(*arguments, turn.held)
                if isinstance(taken, RecordFuture):
                    return taken
                refusal = taken

    def _failed_future(self, arguments: Arguments, failure: BaseException) -> RecordFuture:
        """Return a future that has failed: what brokers say of a topic is told that way."""
        place = TopicPartition(arguments[0], -1 if arguments[4] is None else arguments[4])
        batch = PendingBatch(self._core.accumulator, place)
        batch.fail(failure)
        return batch.future()


def _detour(reference: weakref.ref[KafkaProducer], refusal: int, *arguments: Any) -> RecordFuture:
    """Continue a `send` of the accumulator that could not be done at once."""
    producer = reference()
    if producer is None:
        raise ProducerClosed("the producer is gone: nobody holds it any more")
    return producer._sent_after_all(refusal, arguments)


def _wait(
    reference: weakref.ref[KafkaProducer], batch: PendingBatch, timeout: float | None
) -> None:
    """Block until a batch is done."""
    producer = reference()
    if producer is not None and not batch.done:
        thread = producer._thread
        if thread.current:
            raise IllegalStateError("a callback of the producer cannot wait for a record")
        if not thread.running:
            thread.post(_nothing)  # raises, and says why nobody would ever end the wait
    done = _latch()
    batch.watch(done.release)
    if not done.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
        plight = "" if producer is None else producer._core.plight(batch)
        raise KafkaTimeoutError(
            f"no outcome of a record for {batch.partition} in {timeout:g} s{plight}"
        )


def _latch() -> threading.Lock:
    """Return a lock that somebody else is going to release."""
    latch = threading.Lock()
    latch.acquire()
    return latch


def _nothing() -> None:
    pass


def _milliseconds(timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if not 0 <= timeout <= threading.TIMEOUT_MAX:
        raise InvalidValueError(
            f"timeout {timeout}: must be 0 to {threading.TIMEOUT_MAX:g} seconds"
        )
    return timeout * 1000


def _forked(reference: weakref.ref[KafkaProducer]) -> None:
    """Refuse records in a forked child, which has no thread that would send them."""
    producer = reference()
    if producer is not None and not producer._closed:
        producer._core.accumulator.closed = True


def _exit(reference: weakref.ref[KafkaProducer]) -> None:
    producer = reference()
    if producer is not None:
        producer.close(timeout=_EXIT_S)


def _close_later(core: ProducerCore, thread: LoopThread) -> None:
    """Close from within a callback, which cannot wait for itself."""
    task = core.background(core.close(0.0))
    task.add_done_callback(lambda _: thread.stop())
