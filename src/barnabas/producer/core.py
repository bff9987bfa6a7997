"""The producer behind the facades: machines, connections and timers on one event loop.

Records are appended to `accumulator`, from any thread. All else here runs on the loop; `post` calls
a function on the loop from the thread that appends. A step collects what is new, submits requests
to the leaders that can take one, and sets a timer for when to look again. It runs after an append,
an answer, a change of the cluster and the timer; requests need no task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import ceil
from random import Random
from typing import Any

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection_stats import with_count
from barnabas.client.errors import (
    KafkaTimeoutError,
    ProducerClosed,
    UnsupportedApiError,
)
from barnabas.client.retry import Backoff
from barnabas.client.tracing import installed
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.producer.accumulator import Accumulator, BufferPool, PendingBatch
from barnabas.producer.batch import ProducerBatch, describe_progress
from barnabas.producer.coordinator import Coordinator
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.identity import NOBODY, Identity
from barnabas.producer.memory_queue import MemoryQueue
from barnabas.producer.partitioner import StickyChoice
from barnabas.producer.preparation import Preparation
from barnabas.producer.produce_requests import ProduceRequests
from barnabas.producer.sender import NEVER_MS, Rules, Sender
from barnabas.producer.topics import Topics
from barnabas.producer.transaction_manager import TransactionManager

log = logging.getLogger(__name__)


class ProducerCore:
    """One producer, from appended records to acknowledged batches."""

    def __init__(
        self,
        options: ProducerOptions,
        *,
        post: Callable[[Callable[[], object]], object],
        wait: Callable[[ProducerCore, PendingBatch, float | None], object],
        cluster_client: ClusterClient | None = None,
        random: Random | None = None,
        clock: Callable[[], int] | None = None,
        client_id: str | None = None,
    ) -> None:
        """Prepare a producer on the running loop; nothing is opened yet.

        `post` calls a function on the loop, from any thread; `wait` blocks until a batch is done.
        """
        random = random or Random()
        self.options = options
        self.cluster_client = cluster_client or ClusterClient.from_options(
            options, client_id=client_id, random=random
        )
        cluster = self.cluster_client.cluster
        tracing = installed()
        self.preparation = Preparation(
            options,
            cluster,
            None
            if tracing is None
            else tracing.of_producer(
                client_id or "", options.bootstrap_servers, lambda: cluster.cluster_id
            ),
        )
        self.closing = False
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._started_s = self._loop.time()
        backoff = Backoff(
            random.random,
            initial_ms=options.retry_backoff_ms,
            max_ms=max(options.retry_backoff_ms, options.retry_backoff_max_ms),
        )
        self._backoff = backoff
        self.coordinator = self._coordinator(options.transactional_id)
        choice = StickyChoice(
            cluster,
            random,
            self._queued,
            self._slow_leaders,
            adaptive=options.partitioner_adaptive_partitioning_enable,
        )
        self.accumulator = Accumulator(
            BufferPool(options.buffer_memory, options.batch_size, options.batch_size_max),
            wake=partial(post, self._step),
            choose=choice.choose,
            wait=partial(wait, self),
            record_size_max=min(options.max_request_size, options.buffer_memory),
            ignore_keys=options.partitioner_ignore_keys,
            clock=clock,
        )
        self.transaction_manager = (
            None
            if options.transactional_id is None
            else TransactionManager(self, options.transactional_id)
        )
        self.sender = Sender(
            self.accumulator,
            Rules(
                linger_ms=options.linger_ms,
                delivery_timeout_ms=options.delivery_timeout_ms,
                request_size_max=options.max_request_size,
                retries_max=options.retries,
                idempotent=options.enable_idempotence,
                in_order=options.max_in_flight_requests_per_connection == 1,
            ),
            cluster.leader,
            backoff,
            None if self.transaction_manager is None else self.transaction_manager.transaction,
            blocked_by=self._blocked_by,
        )
        self.topics = Topics(
            self.cluster_client,
            self.accumulator,
            backoff,
            self._waits_for,
            auto_create=options.allow_auto_create_topics,
            idle_ms_max=options.metadata_max_idle_ms,
        )
        self._produce_requests = ProduceRequests(
            options, self.cluster_client, self.sender, self.now_ms, self._go_on
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER_MS
        self._expiry_ms = NEVER_MS
        self._slow_since_ms: dict[int, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._identifying = False
        self._unwatch: Callable[[], None] = lambda: None
        self.memory_queue = MemoryQueue(self.accumulator)
        self.accumulator.pool.on_room = self.memory_queue.freed
        if self.transaction_manager is not None:
            self.accumulator.closed = True

    async def start(self, timeout_ms: float) -> None:
        """Find a broker; raise NoBrokersAvailable when none answers in time."""
        await self.cluster_client.retrying(self.cluster_client.refresh, timeout_ms=timeout_ms)
        self.begin()

    def begin(self) -> None:
        """Start the background work, which finds the cluster when there is one."""
        self.topics.track()
        self._unwatch = self.cluster_client.watch(self._step)
        self.cluster_client.start()

    # Sending.

    def now_ms(self) -> float:
        """Return the loop's time."""
        return self._loop.time() * 1000

    def patience(self, timeout_ms: float) -> Callable[[], float]:
        """Return a function of the milliseconds left: the steps of one call share a timeout."""
        deadline_ms = self.now_ms() + timeout_ms
        return lambda: max(0.0, ceil(deadline_ms - self.now_ms()))

    def look_again(self, callback: Callable[[], object] | None = None) -> None:
        """Call a function (or do a step) in the next iteration of the loop."""
        self._loop.call_soon(callback or self._step)

    def _step(self, reached_ms: float = 0.0) -> None:
        """Do everything that is due now, or when the timer fired."""
        # Seconds to milliseconds and back may fall short of the time that was asked for.
        now_ms = max(self.now_ms(), reached_ms)
        sender = self.sender
        if self._ended:
            return
        self.topics.learn()
        sender.collect(now_ms)
        if now_ms >= self._expiry_ms:
            self._expiry_ms = sender.expire(now_ms)
        if (
            sender.rules.idempotent
            and sender.identity is NOBODY
            and self.transaction_manager is None
        ):
            self._identify()
        found = sender.ready(now_ms)
        if found.leaderless:
            self.cluster_client.request_refresh()
        for node_id, queues in found.nodes.items():
            connection = self.cluster_client.ready(node_id)
            if connection is None or not connection.can_submit:
                self._slow_since_ms.setdefault(node_id, now_ms)
                continue
            self._slow_since_ms.pop(node_id, None)
            while batches := sender.drain(node_id, queues, now_ms):
                for batch in batches:
                    self.topics.use(batch.partition.topic, now_ms)
                self._produce_requests.submit(node_id, connection, batches, now_ms)
                queues = sender.due(queues, now_ms)
                if not queues or not connection.can_submit:
                    break
        if self.transaction_manager is not None:
            self.transaction_manager.enlist()
        if sender.active:
            self._expiry_ms = min(self._expiry_ms, now_ms + sender.rules.delivery_timeout_ms)
            self._set_timer(min(found.next_ms, self._expiry_ms), now_ms)

    def _go_on(self) -> None:
        """Do a step after an answer, if something may have waited for it.

        What was appended meanwhile has asked for a step of its own. Doing nothing here lets a
        thread that waits for this answer alone go on sooner: it needs the interpreter.
        """
        if self.transaction_manager is not None or self.sender.waits:
            self._step()

    def _set_timer(self, at_ms: float, now_ms: float) -> None:
        if at_ms >= self._timer_ms or at_ms == NEVER_MS:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = at_ms
        self._timer = self._loop.call_at(max(at_ms, now_ms) / 1000, self._timed, at_ms)

    def _timed(self, at_ms: float) -> None:
        self._timer, self._timer_ms = None, NEVER_MS
        self._step(at_ms)

    # Who we are.

    def _identify(self) -> None:
        if not self._identifying and (self.sender.active or self.sender.identity_wanted):
            self._identifying = True
            self.background(self._init_producer_id())

    async def _init_producer_id(self) -> None:
        """Get a producer id; without one, batches wait until they expire."""
        try:
            while True:
                try:
                    identity = await self.coordinator.init_producer_id(
                        timeout_ms=self.options.request_timeout_ms
                    )
                except KafkaTimeoutError:
                    continue
                self.sender.become(identity)
                return
        except UnsupportedApiError as failure:
            if "enable.idempotence" in self.options.given:
                self.sender.abandon(failure, in_flight=False)
            else:  # nobody asked for it, and brokers before 0.11 do not have it
                self.sender.rules = replace(self.sender.rules, idempotent=False)
        except BarnabasError as failure:
            self.sender.abandon(failure, in_flight=False)
        finally:
            self._identifying = False
            self._loop.call_soon(self._step)

    def background(self, work: Any) -> asyncio.Task[None]:
        """Run a coroutine until it is done or the producer is closed."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The end.

    async def flush(self, timeout_ms: float | None = None) -> None:
        """Send everything that was appended so far, without lingering, and wait for the outcome."""
        sender = self.sender
        sender.flushing += 1
        began_ms = self.now_ms()
        try:
            sender.collect(began_ms)
            unfinished = sender.unfinished()
            self._step()
            await self._outcome(unfinished, timeout_ms)
        finally:
            sender.flushing -= 1
            sender.counts.flush_ms += self.now_ms() - began_ms

    async def settled(self, task: asyncio.Task[None], timeout_ms: float) -> None:
        """Wait for a task of the background."""
        await asyncio.wait([task], timeout=timeout_ms / 1000)

    async def landed(self, timeout_ms: float) -> None:
        """Wait for the outcome of all batches that were appended."""
        in_flight = [batch for queue in self.sender.queues.values() for batch in queue.in_flight]
        await self._outcome(in_flight, timeout_ms)

    async def _outcome(self, batches: list[ProducerBatch], timeout_ms: float | None) -> None:
        batches = [batch for batch in batches if not batch.records.done]
        if not batches:
            return
        left = len(batches)
        done = self._loop.create_future()

        def count_down() -> None:
            nonlocal left
            left -= 1
            if left == 0 and not done.done():
                done.set_result(None)

        for batch in batches:
            batch.records.watch(count_down)
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await done
        except TimeoutError:
            late = [batch for batch in batches if not batch.records.done]
            first = late[0]
            why = first.failure or self._blocked_by(first.partition)
            raise KafkaTimeoutError(
                f"{len(late)} of {len(batches)} batches have no outcome after {timeout_ms:g} ms, "
                f"the first one for {first.partition}{describe_progress(first.attempts, why)}"
            ) from why

    async def complete(self, handle: TransactionHandle, commit: bool) -> None:
        """End a transaction that another producer has handed over; repeating it is a no-op."""
        await self._coordinator(handle.transactional_id).end(
            Identity(handle.producer_id, handle.epoch),
            commit,
            timeout_ms=self.options.max_block_ms,
        )

    def _coordinator(self, transactional_id: str | None) -> Coordinator:
        return Coordinator(
            self.cluster_client,
            self._backoff,
            transactional_id,
            self.options.transaction_timeout_ms,
        )

    async def close(self, timeout_ms: float | None = None) -> None:
        """Accept no more records, send what is buffered within the timeout, and disconnect."""
        if self.closing:
            return
        self.closing = True
        self.accumulator.closed = True
        began_s = self._loop.time()
        left = None if timeout_ms is None else self.patience(timeout_ms)
        try:
            if self.transaction_manager is not None:
                await self.transaction_manager.close(timeout_ms)
            await self.flush(None if left is None else left())
        except BarnabasError as failure:
            elapsed_ms = (self._loop.time() - began_s) * 1000
            log.warning(
                "producer closed after %.0f ms, buffered records are dropped: %s",
                elapsed_ms,
                failure,
            )
        finally:
            self._ended = True
            self._unwatch()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.sender.collect(self.now_ms())
            self.sender.abandon(
                ProducerClosed("the producer was closed before the record was delivered"),
                in_flight=True,
            )
            if self._timer is not None:
                self._timer.cancel()
            self.memory_queue.freed()
            await self.cluster_client.close()
            self.preparation.close()

    def describe_progress(self, records: PendingBatch) -> str:
        """Return the progress of a batch and what blocks it; from any thread."""
        queue = self.sender.queues.get(records.partition)
        waiting = [] if queue is None else [*queue.in_flight, *queue.batches]
        known = next((batch for batch in waiting if batch.records is records), None)
        return describe_progress(
            0 if known is None else known.attempts, self._blocked_by(records.partition)
        )

    def _blocked_by(self, partition: TopicPartition) -> BarnabasError | None:
        """Return why nothing can be sent to the leader of a partition, or None."""
        leader = self.cluster_client.cluster.leader(partition)
        if leader is not None:
            return self.cluster_client.failure(leader)
        return self.cluster_client.refresh_failure or request_error(
            ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now"
        )

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return groups of metrics under the names of Kafka's clients."""
        groups = self.cluster_client.metrics("producer")
        own: Mapping[str, Mapping[str, float]] = self.sender.counts.metrics(
            self._loop.time() - self._started_s,
            self.accumulator.pool.memory,
            self.accumulator.pool.in_use,
        )
        for name, values in own.items():
            groups.setdefault(name, {}).update(values)
        return with_count(groups)

    def _waits_for(self, topic: str) -> bool:
        return any(
            partition.topic == topic and not queue.idle
            for partition, queue in self.sender.queues.items()
        )

    # For the choice of partitions.

    def _queued(self, topic: str, partition: int) -> int:
        queue = self.sender.queues.get(TopicPartition(topic, partition))
        return 0 if queue is None else len(queue.batches) + len(queue.slot.closed)

    def _slow_leaders(self) -> list[int]:
        limit_ms = self.options.partitioner_availability_timeout_ms
        if not limit_ms:
            return []
        now_ms = self.now_ms()
        return [
            node for node, since_ms in self._slow_since_ms.items() if now_ms - since_ms > limit_ms
        ]
