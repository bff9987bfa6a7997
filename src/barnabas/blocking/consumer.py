"""`KafkaConsumer`: the blocking consumer, with kafka-python's names and behaviour.

The network runs on a thread of its own; fetched records are decoded in the caller's thread, so that
a poll that finds records needs no thread switch. User callbacks (rebalance listeners, commit
callbacks) run in the thread that polls. A consumer is for one thread at a time: a call from a
second one raises instead of interleaving with the first. Only `wakeup`, `metrics` and `health` may
be called from any thread.
"""

from __future__ import annotations

import inspect
import re
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.blocking.loop_thread import LoopThread
from barnabas.blocking.user_callbacks import UserCallbacks
from barnabas.blocking.wake_event import WakeEvent
from barnabas.client.client_id import consumer_client_id
from barnabas.client.connection_stats import refuse_raw
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
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener
from barnabas.consumer.interceptors import Interceptors
from barnabas.consumer.reset import ResetPolicy, parse_reset
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.errors import ConcurrentUseError, IllegalStateError
from barnabas.kernels import ColumnStore, ConsumerRecord
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.model.serializer import close_serializers
from barnabas.structs import OffsetAndMetadata, OffsetAndTimestamp

if TYPE_CHECKING:
    import pyarrow

Result = TypeVar("Result")

_GIVE_S = 0.1
"""How long iteration yields taken records before it polls its group again."""

_LOOK_S = 1.0
"""How long a poll waits at most before it polls its group again."""


class KafkaConsumer:
    """Reads records of topics, alone or as a member of a group.

    Options are keywords (`group_id="g"`) or, under Kafka's names, a dict: `**{"group.id": "g"}`.

        with KafkaConsumer(
            "orders",
            bootstrap_servers="broker:9092",
            group_id="shipping",
            auto_offset_reset="earliest",
            consumer_timeout_ms=5000,
        ) as consumer:
            for record in consumer:
                print(record.key, record.value)

    `poll` returns lists by partition instead, `consume` one list, `poll_arrow` a table.
    """

    def __init__(self, *topics: str, **options: Any) -> None:
        """Connect, and subscribe to topics if some are given."""
        self._options = parse_client_options(ConsumerOptions, options)
        self._subscription = Subscription(
            parse_reset(self._options.auto_offset_reset),
            Interceptors(self._options.interceptor_classes),
        )
        if topics:
            self._subscription.subscribe(topics)
        self._closed = False
        self._wake_event = WakeEvent()
        self._user: int | None = None
        self._depth = 0
        self._claim_lock = threading.Lock()
        self._run: Run | None = None  # the records of iteration, and how many were yielded
        self._given = 0
        self._store: ColumnStore | None = None
        self._schema: pyarrow.Schema | None = None
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
        timeout_ms = self._options.consumer_timeout_ms
        self._iteration_ms = float("inf") if timeout_ms is None or timeout_ms < 0 else timeout_ms
        self._records = self._iterate()
        self._thread = LoopThread(f"KafkaConsumer {self._client_id}")
        self._callbacks = UserCallbacks(self._thread)
        try:
            self._core = self._thread.call(self._open())
        except BaseException:
            self._closed = True
            self._thread.stop()
            raise
        self._thread.hold(self._core)

    async def _open(self) -> ConsumerCore:
        core = ConsumerCore(
            self._options,
            self._subscription,
            wake=self._wake_event.set,
            run_on_loop=self._thread.post,
            invoke=self._callbacks.invoke,
            wall_ms=lambda: time.time() * 1000,
            client_id=self._client_id,
        )
        await self._start(core)
        return core

    async def _start(self, core: ConsumerCore) -> None:
        await core.start(self._options.bootstrap_timeout_ms)

    # Thread ownership.

    def _enter(self) -> None:
        """Claim the consumer for this thread; raise if another one is using it."""
        me = threading.get_ident()
        if not self._thread.running and not self._closed:
            self._thread.post(self._wake_event.set)  # raises if this process was forked
        with self._claim_lock:
            if self._user not in (None, me):
                raise ConcurrentUseError(
                    f"thread {me} calls a consumer that thread {self._user} is using: "
                    "a consumer is for one thread at a time (only wakeup() is for others)"
                )
            if self._closed:
                raise IllegalStateError("this consumer is closed")
            self._user = me
            self._depth += 1

    def _leave(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._user = None

    def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run a function of the core on the loop while this thread waits."""

        async def work() -> Result:
            return function(*arguments)

        return self._do(work())

    def _look_at(self, function: Callable[[], Result]) -> Result:
        """Run a read-only function of the core, whichever thread uses the consumer."""

        async def work() -> Result:
            return function()

        if self._closed:
            raise IllegalStateError("this consumer is closed")
        return self._thread.call(work())

    def _await(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine of the core as `_do` does; `wakeup` interrupts it."""
        return self._do(work, interruptible=True)

    def _do(self, work: Coroutine[Any, Any, Result], *, interruptible: bool = False) -> Result:
        """Run a coroutine of the core while this thread waits and runs its callbacks."""
        try:
            self._enter()
        except BaseException:
            work.close()
            raise
        try:
            return self._callbacks.run(work, interruptible=interruptible)
        finally:
            self._leave()

    # Reading.

    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records by partition, waiting up to `timeout_ms` for the first.

        At most `max_records` (or max.poll.records) are returned. With `update_offsets=False` the
        positions stay, and the same records are returned again.

            for partition, records in consumer.poll(timeout_ms=1000, max_records=500).items():
                print(partition, len(records))
        """
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms={timeout_ms}: must be at least 0")
        count = self._count(max_records)
        before = {}
        if not update_offsets:
            before = {
                state: (state.position, state.leader_epoch)
                for state in self._subscription.assigned.values()
            }
        found = self._collect(timeout_ms, count)
        if before and found:
            self._call(self._step_back, before)
        return found

    def _collect(self, timeout_ms: float, count: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        tracer = self._tracer
        began = 0 if tracer is None else tracer.now()
        found = self._poll(timeout_ms, lambda: self._core.buffer.collect(count)) or {}
        if tracer is not None:
            tracer.polled(found, began)
        return found

    def poll_arrow(
        self, timeout_ms: float = 0, max_records: int | None = None
    ) -> pyarrow.RecordBatch:
        """Return records as one Arrow record batch, straight from the fetched bytes.

        Columns: topic, partition, offset, timestamp, timestamp_type, key, value, headers. Without
        `max_records` everything that was fetched is returned; deserializers are not used. The
        batch may be empty.

            batch = consumer.poll_arrow(timeout_ms=1000)
            values = batch.column("value").to_pylist()
        """
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms={timeout_ms}: must be at least 0")
        count = (1 << 31) - 2 if max_records is None else checked_count(max_records, "max_records")
        if self._store is None:
            self._schema, self._store = schema(), ColumnStore()
        store = self._store
        began = 0 if self._tracer is None else self._tracer.now()
        self._poll(timeout_ms, lambda: self._core.buffer.fill(store, count))
        batch = to_record_batch(store.finish(), self._schema)
        if self._tracer is not None:
            self._tracer.polled_columns(batch, began)
        return batch

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[ConsumerRecord]:
        """Return at most this many records as one list; wait `timeout` seconds for the first.

        As in confluent-kafka, -1 waits forever.

            for record in consumer.consume(num_messages=100, timeout=1.0):
                print(record.value)
        """
        count = checked_count(num_messages, "num_messages")
        timeout_ms = float("inf") if timeout < 0 else timeout * 1000
        found = self._collect(timeout_ms, count)
        return [record for records in found.values() for record in records]

    def __iter__(self) -> Iterator[ConsumerRecord]:
        # It ends when no record arrives for consumer.timeout.ms, and may be resumed.
        if inspect.getgeneratorstate(self._records) == inspect.GEN_CLOSED:
            self._records = self._iterate()
        return self._records

    def __next__(self) -> ConsumerRecord:
        return next(iter(self))

    def _iterate(self) -> Generator[ConsumerRecord, None, None]:
        records = self._untraced()
        return records if self._tracer is None else self._tracer.each(records)

    def _untraced(self) -> Generator[ConsumerRecord, None, None]:
        """Yield records; end when none arrives in time (consumer.timeout.ms), or when closed."""
        count, monotonic = self._count(None), time.monotonic
        while not self._closed:
            run = self._poll(self._iteration_ms, lambda: self._core.buffer.take(count))
            if run is None:
                return
            state, version = run.state, run.version
            self._run, self._given = run, 0
            look_s = monotonic() + _GIVE_S
            for given, record in enumerate(run.records, 1):
                # The user may have seeked, paused or polled, or taken so long that the group waits.
                if (
                    self._run is not run
                    or state.version != version
                    or state.paused
                    or monotonic() > look_s
                ):
                    break
                self._given = given
                state.position = record.offset + 1
                state.leader_epoch = record.leader_epoch
                yield record
            if self._run is run:
                self._end_run()

    def _end_run(self) -> None:
        """Put back records that iteration took and did not yield; or advance past all of them."""
        run, self._run = self._run, None
        assert run is not None
        if self._given < len(run.records):
            self._core.buffer.give_back(run, self._given)
        elif run.state.version == run.version:
            run.finish()

    def _poll(self, timeout_ms: float, take: Callable[[], Result]) -> Result | None:
        """Take records until there are some or the time is up; poll the group meanwhile."""
        self._enter()
        try:
            if self._run is not None:
                self._end_run()
            core, wake_event = self._core, self._wake_event
            deadline_s: float | None = None
            while True:
                self._callbacks.raise_interrupt()
                if core.needs_group_poll(time.monotonic() * 1000):
                    left_ms = timeout_ms
                    if deadline_s is not None:
                        left_ms = max(0.0, (deadline_s - time.monotonic()) * 1000)
                    elif timeout_ms:
                        deadline_s = time.monotonic() + timeout_ms / 1000
                    poll = core.poll_group(min(left_ms, 1000.0 * _LOOK_S))
                    self._callbacks.run(poll, interruptible=True)
                wake_event.clear()
                # What woke it before is handled below; a later interrupt sets the event again.
                self._callbacks.raise_interrupt()
                found = take()
                if found:
                    return found
                if not timeout_ms:
                    return None
                now_s = time.monotonic()
                if deadline_s is None:
                    deadline_s = now_s + timeout_ms / 1000
                if now_s >= deadline_s:
                    return None
                wake_event.wait(min(deadline_s - now_s, _LOOK_S))
        finally:
            self._leave()

    def wakeup(self) -> None:
        """Interrupt a wait with WakeupError: the current one, else the next; once.

            signal.signal(signal.SIGTERM, lambda *_: consumer.wakeup())

        May be called from any thread, and from a signal handler. `poll` and iteration, `commit`,
        `committed`, `position`, `offsets_for_times`, `beginning_offsets`, `end_offsets`, `topics`
        and `partitions_for_topic` can be interrupted; `close` cannot. The commit may have succeeded
        or not; a rebalance continues in the next poll.
        """
        self._callbacks.interrupt()
        self._wake_event.set()

    def _step_back(self, before: Mapping[Any, tuple[int | None, int]]) -> None:
        for state, (offset, leader_epoch) in before.items():
            if offset is not None and state.owned and state.position != offset:
                state.seek(offset, leader_epoch)
        self._core.fetcher.schedule()

    def _count(self, max_records: int | None) -> int:
        if max_records is not None:
            return checked_count(max_records, "max_records")
        return self._options.max_poll_records or (1 << 31) - 2

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
        self._call(self._core.subscribe, topics, pattern, listener)

    def subscription(self) -> set[str] | None:
        """Return the subscribed topics; None without a subscription.

        consumer.subscription()               # {"orders"}
        """
        if self._subscription.mode is Mode.NONE:
            return None
        return set(self._subscription.topics)

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group.

        consumer.unsubscribe()
        """
        self._call(self._core.unsubscribe)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without a group's assignment.

        consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
        """
        self._call(self._core.assign, checked_partitions(partitions))

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions.

        consumer.pause(*consumer.assignment())
        """
        return self._subscription.assigned_partitions()

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop reading these partitions until `resume`.

        consumer.pause(TopicPartition("orders", 0))
        """
        self._call(self._core.pause, checked_partitions(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Read these partitions again.

        consumer.resume(*consumer.paused())
        """
        self._call(self._core.resume, checked_partitions(partitions))

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions.

        consumer.resume(*consumer.paused())
        """
        return self._subscription.paused()

    # Positions.

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from an offset.

        consumer.seek(TopicPartition("orders", 0), 1000)
        """
        leader_epoch = offset.leader_epoch if isinstance(offset, OffsetAndMetadata) else -1
        offset = offset.offset if isinstance(offset, OffsetAndMetadata) else offset
        partition = self._assigned([partition])[0]
        self._call(self._core.seek, partition, checked_offset(offset), leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue from the first records of these partitions, or of all assigned ones.

        consumer.seek_to_beginning()
        """
        self._call(self._core.reset, self._assigned(partitions), ResetPolicy.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue after the last records of these partitions, or of all assigned ones.

        consumer.seek_to_end(TopicPartition("orders", 0))
        """
        self._call(self._core.reset, self._assigned(partitions), ResetPolicy.LATEST)

    def _assigned(self, partitions: Iterable[Any]) -> list[TopicPartition]:
        """Return these partitions, or all; each must be assigned."""
        wanted = checked_partitions(partitions)
        for partition in wanted:
            if not self._subscription.is_assigned(partition):
                raise ValueError(f"partition {partition} is not assigned")
        wanted = wanted or list(self._subscription.assigned)
        if not wanted:
            raise ValueError("no partitions are assigned")
        return wanted

    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """Return the offset of the next record of a partition.

        consumer.position(TopicPartition("orders", 0), timeout_ms=5000)
        """
        partition = checked_partition(partition)
        position = self._subscription.state(partition).position
        if position is not None:
            return position
        return self._await(self._core.position(partition, timeout_ms))

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return the high watermark of a partition as of the last fetch; None before the first.

        consumer.highwater(partition) - consumer.position(partition)
        """
        return self._subscription.state(checked_partition(partition)).high_watermark

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the lag of the position behind the end; None before it is known.

        {each: consumer.current_lag(each) for each in consumer.assignment()}
        """
        return self._core.lag(checked_partition(partition))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offsets at or after these timestamps; None if there is none.

        partition = TopicPartition("orders", 0)
        found = consumer.offsets_for_times({partition: 1_700_000_000_000})[partition]
        if found is not None:
            consumer.seek(partition, found.offset)
        """
        asked = checked_timestamps(timestamps)
        found = self._await(self._core.offsets_for_times(asked, timeout_ms))
        return {
            partition: None
            if each.offset < 0
            else OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
            for partition, each in found.items()
        }

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offsets of partitions.

        consumer.beginning_offsets([TopicPartition("orders", 0)])
        """
        wanted = checked_partitions(partitions)
        return self._await(self._core.ends(wanted, beginning=True, timeout_ms=timeout_ms))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offsets after the last records of partitions.

        consumer.end_offsets([TopicPartition("orders", 0)], timeout_ms=5000)
        """
        wanted = checked_partitions(partitions)
        return self._await(self._core.ends(wanted, beginning=False, timeout_ms=timeout_ms))

    # Groups.

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets (or the positions of all partitions) and wait.

        consumer.commit()
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(17, "", -1)})
        """
        self._need_group()
        if offsets is not None and not offsets:
            return  # programs for kafka-python may pass an empty dict
        checked = None if offsets is None else checked_offsets(offsets)
        if self._tracer is None:
            self._await(self._core.commit(checked, timeout_ms))
            return
        with self._tracer.commit(each.topic for each in checked or self._subscription.assigned):
            self._await(self._core.commit(checked, timeout_ms))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: Callable[..., object] | None = None,
    ) -> Future[None]:
        """Commit without waiting; `callback(offsets, failure or None)` runs in a later poll.

        consumer.commit_async(callback=lambda offsets, failure: print(offsets, failure))
        """
        self._need_group()
        checked = None if offsets is None else checked_offsets(offsets)
        outcome: Future[None] = Future()
        also = self._options.default_offset_commit_callback

        def ended(committed: Any, failure: Exception | None) -> None:
            if failure is None:
                outcome.set_result(None)
            else:
                outcome.set_exception(failure)
            for function in (callback, also):
                if function is not None:
                    function(committed, failure)

        self._call(self._commit_soon, checked, ended)
        return outcome

    def _commit_soon(
        self, offsets: dict[TopicPartition, OffsetAndMetadata] | None, ended: Callable[..., object]
    ) -> None:
        core = self._core
        core.member.commit_soon(
            core.subscription.all_consumed() if offsets is None else offsets, ended
        )

    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: float | None = None
    ) -> int | OffsetAndMetadata | None:
        """Return the committed offset of a partition or None; with `metadata`, OffsetAndMetadata.

        consumer.committed(TopicPartition("orders", 0))
        """
        self._need_group()
        partition = checked_partition(partition)
        found = self._await(self._core.committed([partition], timeout_ms)).get(partition)
        if found is None or found.offset < 0:
            return None
        return found if metadata else found.offset

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return this consumer's group membership, for a producer's transactions.

        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        """
        return self._core.member.group_metadata()

    def _need_group(self) -> None:
        if self._options.group_id is None:
            raise IllegalStateError("this call needs a group: set group_id")

    # The cluster, and this consumer itself.

    def topics(self) -> set[str]:
        """Return the topics that this client may see, as the cluster has them now.

        if "orders" in consumer.topics():
            consumer.subscribe(["orders"])
        """
        return self._await(self._core.topics())

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partitions of a topic; none if it does not exist.

        numbers = consumer.partitions_for_topic("orders")
        consumer.assign([TopicPartition("orders", number) for number in numbers])
        """
        return self._await(self._core.partitions_for_topic(topic))

    def bootstrap_connected(self) -> bool:
        """Return whether the cluster's metadata is known.

        assert consumer.bootstrap_connected()
        """
        return bool(self._core.client.cluster.brokers)

    def metrics(self, raw: bool = False) -> dict[str, dict[str, float]]:
        """Return counters and averages, by group and name; for any thread.

            consumer.metrics()["consumer-fetch-manager-metrics"]["records-lag-max"]

        They are plain numbers: there are no objects behind them for `raw`.
        """
        refuse_raw(raw)
        return self._look_at(self._core.metrics)

    def health(self) -> dict[str, Any]:
        """Return what this consumer is doing and why: group, partitions, brokers, last errors.

        Like `metrics`, it may be called from any thread, also while another one polls.

            consumer.health()["partitions"]["orders-0"]["doing"]     # "fetching"
        """
        return self._look_at(self._core.health)

    @property
    def config(self) -> dict[str, Any]:
        """The options by their names in snake case."""
        config = {
            option.attribute: getattr(self._options, option.attribute)
            for option in type(self._options).options.values()
        }
        return config | {"client_id": self._client_id}

    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit (with auto-commit), leave the group and close; a second call does nothing.

        consumer.close(autocommit=False, timeout_ms=5000)
        """
        if self._closed:
            return
        self._enter()
        try:
            self._run = None  # ends iteration; records not yielded count as unread
            if timeout_ms is None:
                timeout_ms = self._options.request_timeout_ms
            self._callbacks.run(self._core.close(commit=autocommit, timeout_ms=timeout_ms))
        finally:
            self._closed = True
            self._leave()
            self._thread.stop()
            close_serializers(self._options.key_deserializer, self._options.value_deserializer)

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After an exception it is unknown whether the last records were processed.
        self.close(autocommit=kind is None)
