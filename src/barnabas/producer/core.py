"""The producer behind the facades: machines, connections and timers on one event loop.

Records are appended to `accumulator`, from any thread. All else here runs on the loop; `post` says
how the loop is reached from where records are appended. A step collects what is new, submits
requests to the leaders that can take one, and sets a timer for when to look again. It runs after an
append, an answer, a change of the cluster and the timer; no task is made for a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from barnabas.client.cluster import BrokerAddress
from barnabas.client.connection import Connection
from barnabas.client.errors import (
    KafkaTimeoutError,
    NetworkError,
    ProducerClosed,
    UnsupportedApiError,
)
from barnabas.client.retry import Backoff
from barnabas.client.switchboard import Switchboard
from barnabas.config.clients.producer import ProducerOptions
from barnabas.kernels import Accumulator, PendingBatch
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnsupportedCompressionTypeError, request_error
from barnabas.producer.batch import SendingBatch
from barnabas.producer.coordinator import Coordinator
from barnabas.producer.identity import NOBODY
from barnabas.producer.packing import Packing
from barnabas.producer.partitioner import StickyChoice
from barnabas.producer.preparation import Preparation
from barnabas.producer.sender import NEVER_MS, Rules, Sender
from barnabas.producer.transacting import Transacting
from barnabas.records.compression import Codec
from barnabas.structs import RecordMetadata
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

log = logging.getLogger(__name__)

_ZSTD_FROM = 7
_NAMES_UP_TO = 12  # from 13 on topics go by their ids
_ENLISTED_UP_TO = 11  # from 12 on Produce enlists partitions itself (KIP-890)


class ProducerCore:
    """One producer, from appended records to acknowledged batches."""

    def __init__(
        self,
        options: ProducerOptions,
        *,
        post: Callable[[Callable[[], object]], object],
        wait: Callable[[PendingBatch, float | None], object],
        detour: Callable[..., Any],
        switchboard: Switchboard | None = None,
        random: Random | None = None,
        clock: Callable[[], int] | None = None,
        client_id: str | None = None,
    ) -> None:
        """Prepare a producer on the running loop; nothing is opened yet."""
        random = random or Random()
        self.options = options
        self.switchboard = switchboard or Switchboard.from_options(
            options, client_id=client_id, random=random
        )
        cluster = self.switchboard.cluster
        self.preparation = Preparation(options, cluster)
        self.closing = False
        self._loop = asyncio.get_running_loop()
        self._started_s = self._loop.time()
        backoff = Backoff(
            random.random,
            initial_ms=options.retry_backoff_ms,
            max_ms=max(options.retry_backoff_ms, options.retry_backoff_max_ms),
        )
        self.coordinator = Coordinator(
            self.switchboard, backoff, options.transactional_id, options.transaction_timeout_ms
        )
        choice = StickyChoice(
            cluster,
            random,
            self._queued,
            self._slow_leaders,
            adaptive=options.partitioner_adaptive_partitioning_enable,
        )
        self.accumulator = Accumulator(
            options.batch_size,
            options.buffer_memory,
            wake=partial(post, self._step),
            detour=detour,
            choose=choice.choose,
            wait=wait,
            report=_report,
            metadata=RecordMetadata,
            batch_size_max=options.batch_size_max,
            record_size_max=min(options.max_request_size, options.buffer_memory),
            ignore_keys=options.partitioner_ignore_keys,
            clock=clock,
        )
        self.transacting = (
            None
            if options.transactional_id is None
            else Transacting(self, options.transactional_id)
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
            None if self.transacting is None else self.transacting.transaction,
        )
        self._packing = Packing.of(options)
        self._acks = int(options.acks)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER_MS
        self._expiry_ms = NEVER_MS
        self._topics: dict[str, float] = {}
        self._room_waiters: list[Callable[[], object]] = []
        self._slow_since_ms: dict[int, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._identifying = False
        self._generation = -1
        self._unwatch: Callable[[], None] = lambda: None
        self.accumulator.on_room = self._room
        if self.transacting is not None:
            self.accumulator.closed = True

    async def start(self, timeout_ms: float) -> None:
        """Find a broker; raise NoBrokersAvailable when none answers in time."""
        await self.switchboard.retrying(self.switchboard.refresh, timeout_ms=timeout_ms)
        self.switchboard.track(self._tracked, auto_create=self.options.allow_auto_create_topics)
        self._unwatch = self.switchboard.watch(self._step)
        self.switchboard.start()

    # Topics.

    async def know(self, topic: str, timeout_ms: float) -> int:
        """Return the number of a topic's partitions, asking for as long as it takes."""
        check_topic(topic)
        begun_s = self._loop.time()
        self._topics[topic] = begun_s * 1000
        failures = 0
        last: BarnabasError | None = None
        while True:
            try:
                async with asyncio.timeout_at(begun_s + timeout_ms / 1000):
                    if failures or self.switchboard.cluster.partitions_for(topic) is None:
                        await self.switchboard.refresh(
                            [topic], auto_create=self.options.allow_auto_create_topics
                        )
                    self._learn_topics()
                    count = self.accumulator.partition_count(topic)
                    if count:
                        return int(count)
                    code = self.switchboard.cluster.error_of(topic)
                    if code is not ErrorCode.NONE:
                        last = request_error(code, f"topic {topic!r}: {code.meaning}")
                        if not code.retriable:
                            raise last
                    failures += 1
                    await asyncio.sleep(self.sender.backoff.delay_ms(failures) / 1000)
            except TimeoutError:
                why = f": {last}" if last is not None else ""
                raise KafkaTimeoutError(
                    f"the partitions of topic {topic!r} could not be found within "
                    f"max.block.ms={timeout_ms:g}{why}"
                ) from last
            except NetworkError as failure:
                last = failure
                failures += 1
                await asyncio.sleep(min(self.sender.backoff.delay_ms(failures), timeout_ms) / 1000)

    def _learn_topics(self) -> None:
        """Take over from the cluster view how many partitions topics have."""
        cluster = self.switchboard.cluster
        if self._generation == cluster.generation:
            return
        self._generation = cluster.generation
        for topic in self._topics:
            found = cluster.partitions_for(topic)
            if found is None:
                continue
            if self.accumulator.partition_count(topic) != len(found):
                self.accumulator.add_topic(topic, len(found))
            self.accumulator.unstick(topic)  # its partition may have lost its leader

    def _tracked(self) -> list[str]:
        """Return the topics that were written to lately, and forget the others."""
        now_ms = self.now_ms()
        for topic, used_ms in list(self._topics.items()):
            if now_ms - used_ms > self.options.metadata_max_idle_ms:
                busy = any(
                    partition.topic == topic and not queue.idle
                    for partition, queue in self.sender.queues.items()
                )
                if not busy:
                    self.accumulator.forget_topic(topic)
                    del self._topics[topic]
        return list(self._topics)

    # Memory.

    def when_room(self, size: int, callback: Callable[[], object]) -> None:
        """Call when a good part of the memory is free again; from any thread."""
        self._room_waiters.append(callback)
        if self._has_room(size):
            self._room()

    def _has_room(self, size: int = 0) -> bool:
        # Waiting for more than the next batch needs spares a switch of threads for each batch.
        accumulator = self.accumulator
        wanted = max(size, accumulator.memory // 8)
        return accumulator.in_use == 0 or bool(accumulator.has_room(wanted))

    def _room(self) -> None:
        if self._room_waiters and (self.accumulator.closed or self._has_room()):
            waiters, self._room_waiters = self._room_waiters, []
            for waiter in waiters:
                waiter()

    # Sending.

    def now_ms(self) -> float:
        """Return the loop's time."""
        return self._loop.time() * 1000

    def look_again(self, callback: Callable[[], object] | None = None) -> None:
        """Call a function (or do a step) in a moment."""
        self._loop.call_soon(callback or self._step)

    def _step(self) -> None:
        """Do all that can be done now."""
        now_ms = self.now_ms()
        sender = self.sender
        self._learn_topics()
        sender.collect(now_ms)
        if now_ms >= self._expiry_ms:
            self._expiry_ms = sender.expire(now_ms)
        if sender.rules.idempotent and sender.identity is NOBODY and self.transacting is None:
            self._identify()
        found = sender.ready(now_ms)
        if found.leaderless:
            self.switchboard.request_refresh()
        for node_id, queues in found.nodes.items():
            connection = self.switchboard.ready(node_id)
            if connection is None:
                self._slow_since_ms.setdefault(node_id, now_ms)
                continue
            if not connection.can_submit:
                self._slow_since_ms.setdefault(node_id, now_ms)
            while connection.can_submit:
                self._slow_since_ms.pop(node_id, None)
                batches = sender.drain(node_id, queues, now_ms)
                if not batches:
                    break
                self._submit(node_id, connection, batches, now_ms)
        if self.transacting is not None:
            self.transacting.enlist()
        if sender.active:
            self._expiry_ms = min(self._expiry_ms, now_ms + sender.rules.delivery_timeout_ms)
            self._set_timer(min(found.next_ms, self._expiry_ms), now_ms)

    def _set_timer(self, at_ms: float, now_ms: float) -> None:
        if at_ms >= self._timer_ms or at_ms == NEVER_MS:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = at_ms
        self._timer = self._loop.call_at(max(at_ms, now_ms) / 1000, self._timed)

    def _timed(self) -> None:
        self._timer, self._timer_ms = None, NEVER_MS
        self._step()

    def _submit(
        self, node_id: int, connection: Connection, batches: list[SendingBatch], now_ms: float
    ) -> None:
        highest = _NAMES_UP_TO if self.transacting is None else _ENLISTED_UP_TO
        try:
            version = connection.version_of(ProduceRequest, at_least=3, at_most=highest)
            if version < _ZSTD_FROM and self._packing.codec is Codec.ZSTD:
                raise UnsupportedCompressionTypeError(
                    f"{connection.address} has Produce v{version}; zstd needs v{_ZSTD_FROM}"
                )
        except BarnabasError as failure:
            for batch in batches:
                self.sender.lost(batch, failure, now_ms)
            return
        topics: dict[str, list[PartitionProduceData]] = {}
        counts = self.sender.counts
        for batch in batches:
            payload = self._packing.pack(batch)
            if batch.attempts == 1:
                counts.packed(batch, len(payload), now_ms)
            partition = batch.partition
            topics.setdefault(partition.topic, []).append(
                PartitionProduceData(index=partition.partition, records=payload)
            )
            self._topics[partition.topic] = now_ms
        counts.requests += 1
        request = ProduceRequest(
            transactional_id=self.options.transactional_id,
            acks=self._acks,
            timeout_ms=self.options.request_timeout_ms,
            topic_data=[
                TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
            ],
        )
        if self._acks == 0:
            self._post(connection, request, version, batches)
        else:
            connection.submit(
                request, partial(self._answered, node_id, connection, batches), version=version
            )

    def _post(
        self,
        connection: Connection,
        request: ProduceRequest,
        version: int,
        batches: list[SendingBatch],
    ) -> None:
        """Send what nobody answers: written to the socket counts as done."""
        try:
            connection.post_now(request, version=version)
        except NetworkError as failure:
            for batch in batches:
                self.sender.lost(batch, failure, self.now_ms())
            return
        for batch in batches:
            self.sender.settle(batch, self.now_ms(), ErrorCode.NONE)

    def _answered(
        self,
        node_id: int,
        connection: Connection,
        batches: list[SendingBatch],
        response: ProduceResponse | None,
        failure: BarnabasError | None,
    ) -> None:
        now_ms = self.now_ms()
        sender = self.sender
        if response is None:
            assert failure is not None
            for batch in batches:
                sender.lost(batch, failure, now_ms)
            self.switchboard.request_refresh()
        else:
            waiting = {batch.partition: batch for batch in batches}
            place = f" on broker {node_id} ({connection.address})"
            for topic in response.responses:
                for answer in topic.partition_responses:
                    asked = waiting.pop(TopicPartition(topic.name, answer.index), None)
                    if asked is None:
                        continue
                    code = sender.settle(
                        asked,
                        now_ms,
                        answer.error_code,
                        answer.base_offset,
                        answer.log_append_time_ms,
                        answer.log_start_offset,
                        answer.error_message,
                        [
                            (error.batch_index, error.batch_index_error_message)
                            for error in answer.record_errors
                        ],
                        place,
                    )
                    if code.stale_metadata and not self._heard_leader(asked, answer, response):
                        self.switchboard.request_refresh()
            for batch in waiting.values():
                sender.settle(
                    batch,
                    now_ms,
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    reason="the answer does not mention this partition",
                    place=place,
                )
        self._step()

    def _heard_leader(self, batch: SendingBatch, answer: Any, response: ProduceResponse) -> bool:
        """Go by what the broker says of the new leader (KIP-951); then there is no pause."""
        leader = answer.current_leader
        if leader is None:
            return False
        address = next(
            (
                BrokerAddress(node.node_id, node.host, node.port, node.rack)
                for node in response.node_endpoints
                if node.node_id == leader.leader_id
            ),
            None,
        )
        news = self.switchboard.cluster.hear_leader(
            batch.partition, leader.leader_id, leader.leader_epoch, address
        )
        if news:
            batch.not_before_ms = 0.0
        return news

    # Who we are.

    def _identify(self) -> None:
        if not self._identifying and (self.sender.active or self.sender.identity_wanted):
            self._identifying = True
            self.background(self._become_somebody())

    async def _become_somebody(self) -> None:
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
                self.sender.abandon(failure, flying=False)
            else:  # nobody asked for it, and brokers before 0.11 do not have it
                self.sender.rules = replace(self.sender.rules, idempotent=False)
        except BarnabasError as failure:
            self.sender.abandon(failure, flying=False)
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
        sender.hurried += 1
        try:
            sender.collect(self.now_ms())
            unfinished = sender.unfinished()
            self._step()
            await self._outcome(unfinished, timeout_ms)
        finally:
            sender.hurried -= 1

    async def settled(self, task: asyncio.Task[None], timeout_ms: float) -> None:
        """Wait for a task of the background."""
        await asyncio.wait([task], timeout=timeout_ms / 1000)

    async def landed(self, timeout_ms: float) -> None:
        """Wait for the outcome of all that is on its way."""
        flying = [batch for queue in self.sender.queues.values() for batch in queue.flying]
        await self._outcome(flying, timeout_ms)

    async def _outcome(self, batches: list[SendingBatch], timeout_ms: float | None) -> None:
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
            raise KafkaTimeoutError(
                f"{left} of {len(batches)} batches have no outcome after {timeout_ms:g} ms"
            ) from None

    async def close(self, timeout_ms: float | None = None) -> None:
        """Take no more records, send what waits within the time, and close the connections."""
        if self.closing:
            return
        self.closing = True
        self.accumulator.closed = True
        began_s = self._loop.time()
        try:
            if self.transacting is not None:
                await self.transacting.close(timeout_ms)
            await self.flush(timeout_ms)
        except BarnabasError as failure:
            elapsed_ms = (self._loop.time() - began_s) * 1000
            log.warning("closing: records are given up after %.0f ms: %s", elapsed_ms, failure)
        finally:
            self._unwatch()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self.sender.collect(self.now_ms())
            self.sender.abandon(
                ProducerClosed("the producer was closed before the record was delivered"),
                flying=True,
            )
            if self._timer is not None:
                self._timer.cancel()
            self._room()
            await self.switchboard.close()
            self.preparation.close()

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return groups of metrics under the names of Kafka's clients."""
        groups = self.switchboard.metrics("producer")
        own: Mapping[str, Mapping[str, float]] = self.sender.counts.metrics(
            self._loop.time() - self._started_s,
            self.accumulator.memory,
            self.accumulator.in_use,
        )
        for name, values in own.items():
            groups.setdefault(name, {}).update(values)
        return groups

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


def check_topic(topic: object) -> None:
    """Refuse what cannot be the name of a topic."""
    if not isinstance(topic, str):
        raise TypeError(f"topic {topic!r} must be a text")
    if not topic or len(topic) > 249 or topic in (".", ".."):
        raise InvalidValueError(f"topic {topic!r} must have 1 to 249 characters, not . or ..")
    if not all(c.isascii() and (c.isalnum() or c in "._-") for c in topic):
        raise InvalidValueError(f"topic {topic!r} may have a-z, A-Z, 0-9, '.', '_' and '-' alone")


def _report(failure: BaseException) -> None:
    log.error("a callback of a record failed", exc_info=failure)
