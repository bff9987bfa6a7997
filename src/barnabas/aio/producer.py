"""`AIOKafkaProducer`: aiokafka's names and behaviour, natively on the caller's event loop.

`send` appends the record at once and awaits only what is missing (the topic's partitions, memory);
the asyncio future that it returns is set when the record's batch is complete. Unlike aiokafka,
and like every Kafka client since 3.0, the producer is idempotent by default.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.aio.running import running_loop
from barnabas.client.client_id import producer_client_id
from barnabas.client.errors import IllegalOperation, KafkaTimeoutError, ProducerClosed
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.kernels import BatchBuilder as RecordsBuilder
from barnabas.model.errors import InvalidValueError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.model.serializer import close_serializers
from barnabas.producer.accumulator import RecordFuture, Refusal, Segment
from barnabas.producer.appending import Appending, PartitionsOf, Room, Steps
from barnabas.producer.builder import BatchBuilder
from barnabas.producer.core import ProducerCore
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.many import Append, ManyFuture, rows_appender, table_appenders
from barnabas.producer.preparation import Arguments, follow_call, plain_size
from barnabas.producer.transaction import State
from barnabas.producer.transaction_manager import TransactionManager
from barnabas.structs import OffsetAndMetadata, RecordMetadata

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")


class AIOKafkaProducer:
    """A producer for asyncio programs; options in Kafka's or aiokafka's spelling.

        async with AIOKafkaProducer(bootstrap_servers="broker:9092") as producer:
            metadata = await producer.send_and_wait("orders", b"two teapots", key=b"customer-7")
            print(metadata.offset)

    Without `async with`, call `start` first and `stop` at the end, which sends queued records.
    """

    def __init__(self, *, loop: asyncio.AbstractEventLoop | None = None, **configs: Any) -> None:
        """Read the options; `start` connects, on `loop` if that is given."""
        self._options = parse_client_options(ProducerOptions, configs)
        self._client_id = producer_client_id(self._options)
        self._core: ProducerCore | None = None
        self._loop = loop
        self._closed = False

    async def start(self) -> None:
        """Connect, or raise NoBrokersAvailable after bootstrap_timeout_ms.

        producer = AIOKafkaProducer(bootstrap_servers="broker:9092")
        await producer.start()
        """
        if self._core is not None:
            return
        self._loop = running_loop(self._loop)
        core = ProducerCore(
            self._options,
            post=self._loop.call_soon,
            wait=_never_wait,
            client_id=self._client_id,
        )
        try:
            await core.start(self._options.bootstrap_timeout_ms)
            if core.transaction_manager is not None:
                await core.transaction_manager.initialize(self._options.max_block_ms)
        except BaseException:
            await core.cluster_client.close()
            raise
        self._core = core
        self._appending = Appending(core, self._loop.time)

    async def stop(self) -> None:
        """Send queued records, and close the connections.

        await producer.stop()
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._core is not None:
                await self._core.close()
        finally:
            close_serializers(self._options.key_serializer, self._options.value_serializer)

    async def flush(self) -> None:
        """Wait until everything that was sent is complete.

        async with asyncio.timeout(10):
            await producer.flush()
        """
        await self._running().flush()

    async def partitions_for(self, topic: str) -> set[int]:
        """Return the partitions of a topic.

        await producer.partitions_for("orders")     # {0, 1, 2}
        """
        core = self._running()
        await core.topics.know(topic, self._options.max_block_ms)
        return set(core.cluster_client.cluster.partitions_for(topic) or ())

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return groups of metrics, under the names of Kafka's clients.

        producer.metrics()["producer-metrics"]["record-send-total"]
        """
        return self._running().metrics()

    # Records.

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a record and return a future of its metadata.

        Raise KafkaTimeoutError when partitions or memory are not available within max_block_ms.

            outcome = await producer.send("orders", b"two teapots", key=b"customer-7")
            metadata = await outcome
        """
        core = self._running()
        if headers is not None and not isinstance(headers, list | tuple):
            headers = list(headers)
        arguments: Arguments = (topic, value, key, headers, partition, timestamp_ms)
        if core.preparation.trivial:
            taken = core.accumulator.append(*arguments)
            if not isinstance(taken, RecordFuture):  # comparing with an enum would take longer
                taken = await self._wait_and_append(core, taken, arguments)
        else:
            taken = await self._prepare_and_append(core, arguments)
        assert self._loop is not None
        outcome: asyncio.Future[RecordMetadata] = taken.resolve(self._loop.create_future())
        return outcome

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> RecordMetadata:
        """Queue a record and wait for its metadata.

        metadata = await producer.send_and_wait("orders", b"two teapots")
        print(metadata.partition, metadata.offset)
        """
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    async def send_many(
        self, topic: str, rows: Sequence[Any], *, partition: int | None = None
    ) -> ManyFuture:
        """Queue many records, and return one future for all.

        A row is a value, or (key, value[, headers[, timestamp_ms[, partition]]]).

            await (await producer.send_many("orders", [b"tea", (b"customer-7", b"a cup")]))
        """
        core = self._running()
        preparation = core.preparation
        trace = None
        if not preparation.trivial:
            if preparation.asks_partitioner:
                await core.topics.know(topic, self._options.max_block_ms)
            rows, trace = preparation.rows(topic, rows, partition)
        append = rows_appender(core.accumulator, topic, rows, partition)
        segments: list[Segment] = []
        try:
            await self._append_rows(topic, append, segments)
        except BaseException as failure:
            if trace is not None:
                trace.failed(failure)
            raise
        finally:  # rows before a rejected one are sent
            preparation.follow_many(segments)
        outcome = ManyFuture(segments, _never_wait)
        follow_call(outcome, trace)
        return outcome

    async def send_arrow(
        self,
        topic: str,
        table: pyarrow.Table | pyarrow.RecordBatch,
        *,
        partition: int | None = None,
    ) -> ManyFuture:
        """Queue the rows of a table: value and, as wanted, key, headers, partition, timestamp.

        await (await producer.send_arrow("orders", pyarrow.table({"value": [b"tea"]})))
        """
        core = self._running()
        segments: list[Segment] = []
        appenders = table_appenders(core.accumulator, topic, table, partition)
        trace = core.preparation.packed(topic, table.num_rows)
        try:
            for append in appenders:
                await self._append_rows(topic, append, segments)
        except BaseException as failure:
            if trace is not None:
                trace.failed(failure)
            raise
        outcome = ManyFuture(segments, _never_wait)
        follow_call(outcome, trace)
        return outcome

    def create_batch(self) -> BatchBuilder:
        """Return an empty batch to be filled manually and passed to `send_batch`.

        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=b"tea")
        """
        preparation = self._running().preparation
        return BatchBuilder(RecordsBuilder(self._options.batch_size), preparation)

    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a manually filled batch; the future has its first record's metadata.

        outcome = await producer.send_batch(batch, "orders", partition=0)
        print((await outcome).offset)
        """
        core = self._running()
        if partition is None:
            raise InvalidValueError("partition must be set: a batch is for one partition")
        await core.topics.know(topic, self._options.max_block_ms)
        records = batch.build()
        trace = core.preparation.packed(topic, batch.record_count())
        adopt = partial(core.accumulator.adopt, TopicPartition(topic, partition), records)
        taken = adopt()
        if isinstance(taken, Refusal):
            bell = asyncio.Event()
            arguments: Arguments = (topic, records, None, None, partition, None)
            steps = self._appending.one(adopt, taken, arguments, bell.set, len(records))
            try:
                taken = await self._drive(core, steps, bell)
            except BaseException as failure:
                if trace is not None:
                    trace.failed(failure)
                raise
        assert self._loop is not None
        future = taken.future()
        if trace is not None:
            future.add_callback(trace.written)
            future.add_errback(trace.failed)
        outcome: asyncio.Future[RecordMetadata] = future.resolve(self._loop.create_future())
        return outcome

    # Transactions.

    async def begin_transaction(self) -> None:
        """Begin a transaction.

        await producer.begin_transaction()
        await producer.send("orders", b"two teapots")
        await producer.commit_transaction()
        """
        self._transactions().begin()

    async def commit_transaction(self) -> None:
        """Deliver what was sent, then commit.

        await producer.commit_transaction()
        """
        await self._transactions().commit(self._options.max_block_ms)

    async def abort_transaction(self) -> None:
        """Drop what was not yet delivered, then abort.

        except KafkaError:
            await producer.abort_transaction()
        """
        await self._transactions().abort(self._options.max_block_ms)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, Any], group_id: ConsumerGroupMetadata | str
    ) -> None:
        """Commit a group's offsets as part of the transaction.

        offsets = {TopicPartition("orders", 0): 17}
        await producer.send_offsets_to_transaction(offsets, "shipping")
        """
        await self._transactions().commit_offsets(
            {partition: _offset(given) for partition, given in offsets.items()},
            group_id,
            self._options.max_block_ms,
        )

    async def hand_over(self) -> TransactionHandle | None:
        """Deliver what was sent, and leave the transaction open: the handle's owner ends it.

        The producer can only be stopped then. None if nothing was sent.

            handle = await producer.hand_over()
        """
        return await self._transactions().hand_over(self._options.max_block_ms)

    async def complete_transaction(self, handle: TransactionHandle, *, commit: bool) -> None:
        """End a transaction that another producer has handed over; repeating it is a no-op.

        await other_producer.complete_transaction(handle, commit=True)
        """
        await self._running().complete(handle, commit)

    def transaction(self) -> TransactionContext:
        """Return a context that commits at its end, and aborts when it is left by an exception.

        async with producer.transaction():
            await producer.send("orders", b"two teapots")
        """
        return TransactionContext(self)

    async def __aenter__(self) -> AIOKafkaProducer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None and not self._closed:
            warnings.warn(f"{self!r} was not stopped", ResourceWarning, source=self, stacklevel=2)

    # Internals.

    def _running(self) -> ProducerCore:
        if self._closed:
            raise ProducerClosed("the producer was stopped")
        if self._core is None:
            raise ProducerClosed("the producer was not started: await start() first")
        return self._core

    def _transactions(self) -> TransactionManager:
        manager = self._running().transaction_manager
        if manager is None:
            raise IllegalOperation("transactions need the option transactional_id")
        return manager

    async def _prepare_and_append(self, core: ProducerCore, arguments: Arguments) -> RecordFuture:
        """Queue a record that user code intercepts, serializes or partitions."""
        preparation = core.preparation
        arguments, trace = await preparation.begin_async(arguments)
        try:
            if preparation.asks_partitioner and not core.accumulator.partition_count(arguments[0]):
                await core.topics.know(arguments[0], self._options.max_block_ms)
            arguments = preparation.serialize(arguments)
            taken = core.accumulator.append(*arguments)
            if not isinstance(taken, RecordFuture):  # comparing with an enum would take longer
                taken = await self._wait_and_append(core, taken, arguments)
        except Exception as failure:
            preparation.refused(failure, trace)
            raise
        preparation.follow(taken, trace)
        return taken

    async def _wait_and_append(
        self, core: ProducerCore, refusal: Refusal, arguments: Arguments
    ) -> RecordFuture:
        bell = asyncio.Event()
        append = partial(core.accumulator.append, *arguments)
        steps = self._appending.one(append, refusal, arguments, bell.set, plain_size(arguments))
        return await self._drive(core, steps, bell)

    async def _append_rows(self, topic: str, append: Append, segments: list[Segment]) -> None:
        bell = asyncio.Event()
        steps = self._appending.rows(topic, append, segments, bell.set)
        await self._drive(self._running(), steps, bell)

    async def _drive(self, core: ProducerCore, steps: Steps[T], bell: asyncio.Event) -> T:
        """Wait for what is missing, step by step; return what was appended."""
        try:
            lacking = next(steps)
            while True:
                try:
                    found = await _await(core, lacking, bell)
                except BaseException as failure:  # noqa: BLE001  the steps raise it
                    lacking = steps.throw(failure)
                else:
                    lacking = steps.send(found)
        except StopIteration as done:
            appended: T = done.value
            return appended

    @property
    def _fatal(self) -> bool:
        return self._transactions().transaction.state is State.FATAL_ERROR


class TransactionContext:
    """A transaction as a context manager."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> TransactionContext:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self._producer.commit_transaction()
        elif not self._producer._fatal:  # after a fatal error nothing can be aborted: raise it
            await self._producer.abort_transaction()


async def _await(core: ProducerCore, lacking: PartitionsOf | Room, bell: asyncio.Event) -> bool:
    if isinstance(lacking, PartitionsOf):
        await core.topics.know(lacking.topic, lacking.timeout_ms)
        return True
    if not lacking.timeout_s:  # a timeout of 0 would not be noticed where there is room at once
        return False
    lacking.turn.ask()
    try:
        async with asyncio.timeout(lacking.timeout_s):
            await bell.wait()
    except TimeoutError:
        return False
    bell.clear()
    return True


def _never_wait(*_: object) -> Any:
    raise KafkaTimeoutError("a producer on asyncio does not block: await the future instead")


def _offset(given: Any) -> OffsetAndMetadata:
    """Parse an offset as aiokafka takes it: a number, a pair with a string, or the whole."""
    if isinstance(given, int):
        return OffsetAndMetadata(given)
    return OffsetAndMetadata(*given)
