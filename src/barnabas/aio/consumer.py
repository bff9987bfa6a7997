"""`AIOKafkaConsumer`: the asyncio consumer, with aiokafka's names and behaviour.

Everything runs on the loop that `start` is awaited on. Records are decoded inside `getone`,
`getmany` and iteration; fetching, heartbeats and rebalances continue in the background while the
program awaits something else.
"""

from __future__ import annotations

import asyncio
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.aio.running import running_loop
from barnabas.client.client_id import consumer_client_id
from barnabas.client.tracing import ConsumerTracer, installed
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.arguments import (
    checked_count,
    checked_offset,
    checked_offsets,
    checked_partition,
    checked_partitions,
    checked_timestamps,
)
from barnabas.consumer.arrow import schema, to_record_batch
from barnabas.consumer.core import ConsumerCore
from barnabas.consumer.fetch_buffer import Run
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener, break_off
from barnabas.consumer.interceptors import Interceptors
from barnabas.consumer.reset import ResetPolicy, parse_reset
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.errors import ConsumerStoppedError, IllegalOperation, IllegalStateError
from barnabas.kernels import ColumnStore, ConsumerRecord
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.model.serializer import close_serializers
from barnabas.structs import OffsetAndMetadata, OffsetAndTimestamp

if TYPE_CHECKING:
    import pyarrow

Result = TypeVar("Result")

_LOOK_MS = 1000.0
_EVERYTHING = (1 << 31) - 2
_RUN = 500  # records that are decoded at once for `getone`


class AIOKafkaConsumer:
    """Reads records of topics, alone or as a member of a group.

    Options are keywords (`group_id="g"`) or, under Kafka's names, a dict: `**{"group.id": "g"}`.

        options = {"bootstrap_servers": "broker:9092", "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer("orders", group_id="shipping", **options) as consumer:
            async for record in consumer:
                print(record.key, record.value)
                break

    `getmany` returns lists by partition instead, `poll_arrow` a table. Without `async with`, call
    `start` first and `stop` at the end.
    """

    def __init__(
        self, *topics: str, loop: asyncio.AbstractEventLoop | None = None, **options: Any
    ) -> None:
        """Create a consumer; `start` connects it, on `loop` if that is given."""
        self._loop = loop
        self._closed: bool | None = None  # not started
        self._options = parse_client_options(ConsumerOptions, options)
        self._client_id = consumer_client_id(self._options)
        self._tracer: ConsumerTracer | None = None
        tracing = installed()
        if tracing is not None:
            self._tracer = tracing.of_consumer(
                self._client_id,
                self._options.group_id,
                self._options.bootstrap_servers,
                lambda: self._core.client.cluster.cluster_id,
            )
        given = "max.poll.records" in self._options.given
        self._count = (self._options.max_poll_records if given else None) or _EVERYTHING
        self._subscription = Subscription(
            parse_reset(self._options.auto_offset_reset),
            Interceptors(self._options.interceptor_classes),
        )
        self._started: ConsumerCore | None = None
        self._group_poller: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._run: Run | None = None  # the records of `getone`, and how many were returned
        self._given = 0
        self._store: ColumnStore | None = None
        self._schema: pyarrow.Schema | None = None
        if topics:
            self._subscription.subscribe(topics)

    def __del__(self, _warn: Any = warnings.warn) -> None:
        if getattr(self, "_closed", None) is False:
            _warn(f"Unclosed AIOKafkaConsumer {self!r}", ResourceWarning, source=self)

    @property
    def _core(self) -> ConsumerCore:
        if self._closed:
            raise ConsumerStoppedError("this consumer was stopped")
        if self._started is None:
            raise IllegalStateError("this consumer was not started: await start() first")
        return self._started

    # Start and stop.

    async def start(self) -> None:
        """Connect; with a subscription, wait until the group has assigned partitions.

        consumer = AIOKafkaConsumer("orders", group_id="shipping", **options)
        await consumer.start()
        """
        assert self._closed is None, "start() was called twice"
        self._loop = running_loop(self._loop)
        core = ConsumerCore(
            self._options,
            self._subscription,
            wake=_no_other_waiters,
            wall_ms=lambda: time.time() * 1000,
            client_id=self._client_id,
        )
        await core.start(self._options.bootstrap_timeout_ms)
        self._started, self._closed = core, False
        try:
            while core.member.needs_poll:
                await core.poll_group(_LOOK_MS)
        except BaseException:
            await self.stop()
            raise
        self._group_poller = self._loop.create_task(self._poll_group())

    async def stop(self) -> None:
        """Commit (with auto-commit), leave the group and close; a second call does nothing.

        await consumer.stop()
        """
        if self._closed or self._started is None:
            self._closed = True
            return
        self._closed = True
        if self._group_poller is not None:
            break_off(self._group_poller)
            await asyncio.gather(self._group_poller, return_exceptions=True)
        self._started.wake()
        try:
            await self._started.close(timeout_ms=self._options.request_timeout_ms)
        finally:
            close_serializers(self._options.key_deserializer, self._options.value_deserializer)

    async def __aenter__(self) -> AIOKafkaConsumer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _poll_group(self) -> None:
        """Poll the group while the program awaits something else."""
        core = self._core
        while True:
            await core.wait_for_group_poll()
            try:
                await core.poll_group(_LOOK_MS, polled=False)
            except Exception as failure:  # noqa: BLE001  # raised from the next call of the user
                self._failure = failure
                core.wake()
                # The same may fail again at once and forever (a fenced member).
                await asyncio.sleep(self._options.retry_backoff_ms / 1000)

    # Reading.

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """Return the next record (of these partitions, or of any), waiting for it.

        record = await consumer.getone()
        print(record.key, record.value)
        """
        record = None if partitions else self._following()
        if record is None:
            record = await self._getone(self._selection(partitions) if partitions else None)
        if self._tracer is not None:
            await self._tracer.one(record)
        return record

    async def _getone(self, only: set[TopicPartition] | None) -> ConsumerRecord:
        run = await self._next(float("inf"), lambda core: core.buffer.take(_RUN, only))
        assert run is not None
        self._run, self._given = run, 0
        record = self._following(just_taken=True)
        assert record is not None
        return record

    def _following(self, *, just_taken: bool = False) -> ConsumerRecord | None:
        """Return the next record of those that were taken last, and advance past it."""
        run = self._run
        if run is None:
            return None
        state, given = run.state, self._given
        if not just_taken:
            if state.version != run.version or state.paused or self._closed or self._failure:
                return None
            core = self._core
            if core.needs_group_poll(core.now_ms()):
                return None
        record = run.records[given]
        self._given = given + 1
        if given + 1 == len(run.records):
            self._run = None
            run.finish()
        else:
            state.position = record.offset + 1
            state.leader_epoch = record.leader_epoch
        return record

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records by partition, waiting up to `timeout_ms` for the first.

        found = await consumer.getmany(timeout_ms=1000, max_records=500)
        for partition, records in found.items():
            print(partition, len(records))
        """
        only = self._selection(partitions)
        count = self._count
        if max_records is not None:
            try:
                count = checked_count(max_records, "max_records")
            except TypeError as failure:
                raise ValueError(str(failure)) from None
        tracer = self._tracer
        began = 0 if tracer is None else tracer.now()
        found = await self._next(timeout_ms, lambda core: core.buffer.collect(count, only)) or {}
        if tracer is not None:
            await tracer.polled_async(found, began)
        return found

    async def poll_arrow(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> pyarrow.RecordBatch:
        """Return records as one Arrow record batch, straight from the fetched bytes.

        Columns: topic, partition, offset, timestamp, timestamp_type, key, value, headers. The
        batch may be empty; deserializers are not used.

            batch = await consumer.poll_arrow(timeout_ms=1000)
        """
        count = _EVERYTHING if max_records is None else checked_count(max_records, "max_records")
        if self._store is None:
            self._schema, self._store = schema(), ColumnStore()
        store = self._store
        began = 0 if self._tracer is None else self._tracer.now()
        await self._next(timeout_ms, lambda core: core.buffer.fill(store, count))
        batch = to_record_batch(store.finish(), self._schema)
        if self._tracer is not None:
            self._tracer.polled_columns(batch, began)
        return batch

    def __aiter__(self) -> AIOKafkaConsumer:
        if self._closed:
            raise ConsumerStoppedError("this consumer was stopped")
        return self

    async def __anext__(self) -> ConsumerRecord:
        try:
            return await self.getone()
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    async def _next(
        self, timeout_ms: float, take: Callable[[ConsumerCore], Result]
    ) -> Result | None:
        """Take records until there are some or the time is up; poll the group meanwhile."""
        core = self._core
        if self._run is not None:
            core.buffer.give_back(self._run, self._given)
            self._run = None
        deadline_ms = core.now_ms() + timeout_ms
        while True:
            core.clear_wakes()
            self._raise_failure()
            left_ms = deadline_ms - core.now_ms()
            if core.needs_group_poll(core.now_ms()):
                await core.poll_group(max(0.0, min(left_ms, _LOOK_MS)))
            found = take(self._core)
            if found:
                return found
            left_ms = deadline_ms - core.now_ms()
            if left_ms <= 0:
                return None
            await core.wait(min(left_ms, _LOOK_MS))

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _selection(self, partitions: tuple[TopicPartition, ...]) -> set[TopicPartition] | None:
        return set(checked_partitions(partitions)) or None

    # Subscription.

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics, or to all topics that match a pattern, replacing earlier ones.

        consumer.subscribe(["orders", "returns"])
        consumer.subscribe(pattern="orders-.*", listener=MyListener())
        """
        if not topics and pattern is None:
            raise TypeError("subscribe needs topics or a pattern")
        if topics and pattern is not None:
            raise TypeError("subscribe takes topics or a pattern, not both")
        if self._started is not None:
            self._core.subscribe(topics, pattern, listener)
        else:
            self._subscription.subscribe(topics, pattern, listener)

    def subscription(self) -> frozenset[str]:
        """Return the subscribed topics.

        consumer.subscription()               # frozenset({"orders"})
        """
        return frozenset(self._subscription.topics)

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group.

        consumer.unsubscribe()
        """
        if self._started is not None:
            self._core.unsubscribe()
        else:
            self._subscription.unsubscribe()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without a group's assignment.

        consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
        """
        wanted = checked_partitions(partitions)
        if self._started is not None:
            self._core.assign(wanted)
        else:
            self._subscription.assign(wanted)

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions.

        consumer.pause(*consumer.assignment())
        """
        return self._subscription.assigned_partitions()

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop reading these partitions until `resume`.

        consumer.pause(TopicPartition("orders", 0))
        """
        self._core.pause(checked_partitions(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Read these partitions again.

        consumer.resume(*consumer.paused())
        """
        self._core.resume(checked_partitions(partitions))

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions.

        consumer.resume(*consumer.paused())
        """
        return self._subscription.paused()

    # Positions.

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue from an offset.

        consumer.seek(TopicPartition("orders", 0), 1000)
        """
        self._core.seek(checked_partition(partition), checked_offset(offset))

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Continue from the first records of these partitions, or of all assigned ones.

        await consumer.seek_to_beginning()
        """
        return await self._seek_to(partitions, ResetPolicy.EARLIEST)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Continue after the last records of these partitions, or of all assigned ones.

        await consumer.seek_to_end(TopicPartition("orders", 0))
        """
        return await self._seek_to(partitions, ResetPolicy.LATEST)

    async def _seek_to(self, partitions: tuple[TopicPartition, ...], policy: ResetPolicy) -> bool:
        wanted = self._assigned(partitions)
        self._core.reset(wanted, policy)
        for partition in wanted:
            await self._core.position(partition, self._options.request_timeout_ms)
        return True

    async def seek_to_committed(
        self, *partitions: TopicPartition
    ) -> dict[TopicPartition, int | None]:
        """Continue from the committed offsets; return them (None: nothing committed, no seek).

        await consumer.seek_to_committed()
        """
        wanted = self._assigned(partitions)
        self._need_group()
        committed = await self._core.committed(wanted)
        offsets = {each: _offset(committed.get(each)) for each in wanted}
        for partition, offset in offsets.items():
            if offset is not None:
                self._core.seek(partition, offset, committed[partition].leader_epoch)
        return offsets

    def _assigned(self, partitions: tuple[TopicPartition, ...]) -> list[TopicPartition]:
        """Return these partitions, or all; each must be assigned."""
        wanted = checked_partitions(partitions) or list(self._subscription.assigned)
        for partition in wanted:
            self._subscription.state(partition)
        if not wanted:
            raise IllegalStateError("no partitions are assigned")
        return wanted

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record of a partition.

        await consumer.position(TopicPartition("orders", 0))
        """
        return await self._core.position(checked_partition(partition))

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a partition as of the last fetch; None before the first.

        consumer.highwater(TopicPartition("orders", 0))
        """
        return self._subscription.state(checked_partition(partition)).high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Return the last stable offset as of the last fetch; None before the first.

        consumer.last_stable_offset(TopicPartition("orders", 0))
        """
        return self._subscription.state(checked_partition(partition)).last_stable_offset

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """Return when a partition was last fetched, in milliseconds since 1970.

        consumer.last_poll_timestamp(TopicPartition("orders", 0))
        """
        fetched_ms = self._subscription.state(checked_partition(partition)).fetched_ms
        return None if fetched_ms is None else int(fetched_ms)

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the lag of the position behind the end; None before it is known.

        {each: consumer.current_lag(each) for each in consumer.assignment()}
        """
        return self._core.lag(checked_partition(partition))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offsets at or after these timestamps; None if there is none.

        partition = TopicPartition("orders", 0)
        found = (await consumer.offsets_for_times({partition: 1_700_000_000_000}))[partition]
        if found is not None:
            consumer.seek(partition, found.offset)
        """
        found = await self._core.offsets_for_times(checked_timestamps(timestamps))
        return {
            partition: None
            if each.offset < 0
            else OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
            for partition, each in found.items()
        }

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the first offsets of partitions.

        await consumer.beginning_offsets([TopicPartition("orders", 0)])
        """
        return await self._core.ends(checked_partitions(partitions), beginning=True)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets after the last records of partitions.

        await consumer.end_offsets([TopicPartition("orders", 0)])
        """
        return await self._core.ends(checked_partitions(partitions), beginning=False)

    # Groups.

    async def commit(self, offsets: Mapping[TopicPartition, Any] | None = None) -> None:
        """Commit offsets (an offset, or offset and metadata), or all positions.

        await consumer.commit()
        await consumer.commit({TopicPartition("orders", 0): 17})
        """
        self._need_group()
        if self._subscription.mode is Mode.NONE:
            raise IllegalStateError("not subscribed to any topics")
        checked = None if offsets is None else checked_offsets(offsets)
        for partition in checked or ():
            self._subscription.state(partition)
        if self._tracer is None:
            await self._core.commit(checked)
            return
        with self._tracer.commit(each.topic for each in checked or self._subscription.assigned):
            await self._core.commit(checked)

    async def committed(self, partition: TopicPartition) -> int | None:
        """Return the committed offset of a partition, or None.

        await consumer.committed(TopicPartition("orders", 0))
        """
        self._need_group()
        partition = checked_partition(partition)
        return _offset((await self._core.committed([partition])).get(partition))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return this consumer's group membership, for a producer's transactions.

        await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        """
        return self._core.member.group_metadata()

    def _need_group(self) -> None:
        if self._options.group_id is None:
            raise IllegalOperation("this call needs a group: set group_id")

    # The cluster, and this consumer itself.

    async def topics(self) -> set[str]:
        """Return the topics that this client may see, as the cluster has them now.

        if "orders" in await consumer.topics():
            consumer.subscribe(["orders"])
        """
        return await self._core.topics()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None while it is unknown.

        consumer.partitions_for_topic("orders")     # {0, 1, 2}
        """
        known = self._core.client.cluster.partitions_for(topic)
        return None if known is None else set(known)

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return counters and averages, by group and name.

        consumer.metrics()["consumer-fetch-manager-metrics"]["records-lag-max"]
        """
        return self._core.metrics()

    def health(self) -> dict[str, Any]:
        """Return what this consumer is doing and why: group, partitions, brokers, last errors.

        consumer.health()["partitions"]["orders-0"]["doing"]     # "fetching"
        """
        return self._core.health()


def _offset(committed: OffsetAndMetadata | None) -> int | None:
    return None if committed is None or committed.offset < 0 else committed.offset


def _no_other_waiters() -> None:
    """Do nothing: only tasks on the loop wait."""
