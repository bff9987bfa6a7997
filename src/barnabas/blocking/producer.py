"""`KafkaProducer`: kafka-python's names and behaviour, on a loop in a thread of its own.

`send` encodes the record in the caller's thread and returns; the loop's thread sends, and runs
callbacks. `send` is inherited from a class that is compiled together with the accumulator: if a
producer has no serializer, interceptor or partitioner of its own, no Python code is in between.

Thread-safe. In a forked child every call raises `ClientForkedError`. Ctrl-C interrupts any wait.
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
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.client_id import producer_client_id
from barnabas.client.connection_stats import refuse_raw
from barnabas.client.errors import IllegalStateError, KafkaTimeoutError, ProducerClosed
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.errors import InvalidValueError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.model.serializer import close_serializers
from barnabas.producer.accumulator import PendingBatch, RecordFuture, RecordSender, Refusal, Segment
from barnabas.producer.appending import Appending, PartitionsOf, Room, Steps
from barnabas.producer.core import ProducerCore
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.many import Append, ManyFuture, rows_appender, table_appenders
from barnabas.producer.preparation import Arguments, follow_call, plain_size
from barnabas.producer.transaction_manager import TransactionManager, needs_transactions
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:
    import pyarrow

FutureRecordMetadata = RecordFuture

T = TypeVar("T")

_EXIT_S = 1.0
"""How long the interpreter's exit waits for records of a producer that was not closed."""


class KafkaProducer(RecordSender):
    """A blocking producer; options are keywords in Kafka's or kafka-python's spelling.

        with KafkaProducer(bootstrap_servers="broker:9092", linger_ms=5) as producer:
            future = producer.send("orders", b"two teapots", key=b"customer-7")
            print(future.get(timeout=10).offset)
            producer.send_many("orders", [(b"customer-8", b"a cup"), (b"customer-9", b"tea")])

    Closing sends queued records. Callbacks of futures run on the producer's own thread.
    """

    def __init__(self, **configs: Any) -> None:
        """Connect, or raise NoBrokersAvailable after bootstrap_timeout_ms."""
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
        if self._core.preparation.trivial:
            self._direct = self._core.accumulator
        self._appending = Appending(
            self._core, time.monotonic, partial(_check_running, self._thread)
        )
        os.register_at_fork(after_in_child=partial(_forked, weakref.ref(self)))
        self._at_exit = partial(_exit, weakref.ref(self))
        atexit.register(self._at_exit)

    async def _start(self, client_id: str) -> ProducerCore:
        core = ProducerCore(
            self._options,
            post=self._thread.post,
            wait=partial(_wait, self._thread),
            client_id=client_id,
        )
        try:
            await core.start(self._options.bootstrap_timeout_ms)
        except BaseException:
            await core.cluster_client.close()
            raise
        return core

    # Records.

    def send_many(
        self, topic: str, rows: Sequence[Any], *, partition: int | None = None
    ) -> ManyFuture:
        """Queue many records in one call, and return one future for all.

        A row is a value, or (key, value[, headers[, timestamp_ms[, partition]]]). The future's
        `get` returns the offsets of the rows: ranges by partition.

            producer.send_many("orders", [b"tea", (b"customer-7", b"a cup")]).get(timeout=10)
        """
        preparation = self._core.preparation
        trace = None
        if not preparation.trivial:
            if preparation.asks_partitioner:
                self._await_topic(topic)
            rows, trace = preparation.rows(topic, rows, partition)
        append = rows_appender(self._core.accumulator, topic, rows, partition)
        segments: list[Segment] = []
        try:
            self._append_rows(topic, append, segments)
        except BaseException as failure:
            if trace is not None:
                trace.failed(failure)
            raise
        finally:  # rows before a rejected one are sent
            preparation.follow_many(segments)
        outcome = ManyFuture(segments, self._core.accumulator.wait)
        follow_call(outcome, trace)
        return outcome

    def send_arrow(
        self,
        topic: str,
        table: pyarrow.Table | pyarrow.RecordBatch,
        *,
        partition: int | None = None,
    ) -> ManyFuture:
        """Queue the rows of a table: columns value and, as wanted, key, headers, partition and
        timestamp. Serializers, interceptors and partitioners are not called.

            producer.send_arrow("orders", pyarrow.table({"value": [b"tea", b"a cup"]}))
        """
        accumulator = self._core.accumulator
        segments: list[Segment] = []
        appenders = table_appenders(accumulator, topic, table, partition)
        trace = self._core.preparation.packed(topic, table.num_rows)
        try:
            for append in appenders:
                self._append_rows(topic, append, segments)
        except BaseException as failure:
            if trace is not None:
                trace.failed(failure)
            raise
        outcome = ManyFuture(segments, accumulator.wait)
        follow_call(outcome, trace)
        return outcome

    def flush(self, timeout: float | None = None) -> None:
        """Send everything queued so far and wait for the results, at most `timeout` seconds.

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
        """Return whether the cluster's metadata is known.

        assert producer.bootstrap_connected()
        """
        return bool(self._core.cluster_client.cluster.brokers)

    def metrics(self, raw: bool = False) -> dict[str, dict[str, float]]:
        """Return groups of metrics, under the names of Kafka's clients.

            producer.metrics()["producer-metrics"]["record-send-total"]

        They are plain numbers: there are no objects behind them for `raw`.
        """
        refuse_raw(raw)
        if self._closed:
            return {}

        async def read() -> dict[str, dict[str, float]]:
            return self._core.metrics()

        return self._thread.call(read())

    # Transactions.

    def init_transactions(self) -> None:
        """Prepare for transactions; aborts what an earlier producer of this id left open.

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
        manager = self._transactions("begin_transaction")

        async def begin() -> None:
            manager.begin()

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
        manager = self._transactions("send_offsets_to_transaction")
        self._thread.call(
            manager.commit_offsets(offsets, group_metadata, self._options.max_block_ms)
        )

    def commit_transaction(self) -> None:
        """Deliver what was sent, then commit.

        producer.commit_transaction()
        """
        manager = self._transactions("commit_transaction")
        self._thread.call(manager.commit(self._options.max_block_ms))

    def abort_transaction(self) -> None:
        """Drop what was not yet delivered, then abort.

        except KafkaError:
            producer.abort_transaction()
        """
        manager = self._transactions("abort_transaction")
        self._thread.call(manager.abort(self._options.max_block_ms))

    def hand_over(self) -> TransactionHandle | None:
        """Deliver what was sent, and leave the transaction open: the handle's owner ends it.

        The producer can only be closed then. None if nothing was sent, as there is nothing to end.
        The broker aborts the transaction after transaction_timeout_ms, and when another producer
        of this transactional_id starts.

            handle = producer.hand_over()                             # in one process
            other_producer.complete_transaction(handle, commit=True)   # in another
        """
        manager = self._transactions("hand_over")
        return self._thread.call(manager.hand_over(self._options.max_block_ms))

    def complete_transaction(self, handle: TransactionHandle, *, commit: bool) -> None:
        """End a transaction that another producer has handed over; any producer can.

        Repeating the same call is a no-op. Raises ProducerFencedError, InvalidProducerEpochError or
        InvalidTxnStateError if the transaction is no longer open, or was ended the other way.

            other_producer.complete_transaction(handle, commit=True)
        """
        self._check_open()
        self._thread.call(self._core.complete(handle, commit))

    # Closing.

    def close(self, timeout: float | None = None) -> None:
        """Send queued records for at most `timeout` seconds, fail the rest, and close.

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

    # Internals.

    def _check_open(self) -> None:
        if self._closed:
            raise ProducerClosed("the producer is closed")

    def _transactions(self, wish: str) -> TransactionManager:
        self._check_open()
        return needs_transactions(self._core.transaction_manager, wish)

    def _prepare_and_send(self, arguments: Arguments) -> RecordFuture:
        preparation = self._core.preparation
        arguments, trace = preparation.begin(arguments)
        try:
            if preparation.asks_partitioner:
                self._await_topic(arguments[0])
            arguments = preparation.serialize(arguments)
            taken = self._core.accumulator.append(*arguments)
            if not isinstance(taken, RecordFuture):  # comparing with an enum would take longer
                taken = self._wait_and_send(taken, arguments)
        except Exception as failure:
            preparation.refused(failure, trace)
            raise
        preparation.follow(taken, trace)
        return taken

    def _wait_and_send(self, refusal: Refusal, arguments: Arguments) -> RecordFuture:
        if self._closed:
            raise ProducerClosed("the producer is closed and accepts no records")
        bell = threading.Event()
        append = partial(self._core.accumulator.append, *arguments)
        failed = partial(self._failed_future, arguments)
        size = plain_size(arguments)
        steps = self._appending.one(append, refusal, arguments, bell.set, size, failed)
        return self._drive(steps, bell)

    def _failed_future(self, arguments: Arguments, failure: BaseException) -> RecordFuture:
        """Return a failed future: that is how callers get a topic's errors."""
        partition = TopicPartition(arguments[0], -1 if arguments[4] is None else arguments[4])
        accumulator = self._core.accumulator
        batch = PendingBatch(accumulator.pool, accumulator.wait, partition)
        batch.fail(failure)
        return batch.future()

    def _append_rows(self, topic: str, append: Append, segments: list[Segment]) -> None:
        bell = threading.Event()
        self._drive(self._appending.rows(topic, append, segments, bell.set), bell)

    def _drive(self, steps: Steps[T], bell: threading.Event) -> T:
        """Wait for what is missing, step by step; return what was appended."""
        try:
            lacking = next(steps)
            while True:
                try:
                    found = self._await(lacking, bell)
                except BaseException as failure:  # noqa: BLE001  the steps raise it
                    lacking = steps.throw(failure)
                else:
                    lacking = steps.send(found)
        except StopIteration as done:
            appended: T = done.value
            return appended

    def _await(self, lacking: PartitionsOf | Room, bell: threading.Event) -> bool:
        if isinstance(lacking, PartitionsOf):
            self._await_topic(lacking.topic, lacking.timeout_ms)
            return True
        if self._thread.current:
            raise IllegalStateError(
                "buffer.memory is exhausted, and a callback of the producer cannot wait"
            )
        lacking.turn.ask()
        rung = lacking.timeout_s > 0 and bell.wait(lacking.timeout_s)
        bell.clear()
        return rung

    def _await_topic(self, topic: str, timeout_ms: float | None = None) -> None:
        if self._core.accumulator.partition_count(topic):
            return
        if timeout_ms is None:
            timeout_ms = self._options.max_block_ms
        self._thread.call(self._core.topics.know(topic, timeout_ms))


def _wait(
    thread: LoopThread, core: ProducerCore, batch: PendingBatch, timeout: float | None
) -> None:
    """Block until a batch is complete."""
    if not batch.done:
        if thread.current:
            raise IllegalStateError("a callback of the producer cannot wait for a record")
        _check_running(thread)
    done = _latch()
    batch.watch(done.release)
    if not done.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
        raise KafkaTimeoutError(
            f"record for {batch.partition} not completed within {timeout:g} s"
            f"{core.describe_progress(batch)}"
        )


def _check_running(thread: LoopThread) -> None:
    """Raise if nothing would ever end a wait."""
    if not thread.running:
        thread.post(_nothing)  # raises the reason


def _latch() -> threading.Lock:
    """Return a lock that another thread is going to release."""
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
    """Reject records in a forked child, which has no thread that would send them."""
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
