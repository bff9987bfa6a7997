"""One replica fetcher: a loop over one connection to the broker that leads what it copies.

`replication.pull` interprets the responses; this file does the network, the disk and the waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from barnabas.broker.cluster.dialer import Dialer
from barnabas.broker.loop import spawn
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.replication_quotas import follows_throttled
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.config.broker import BrokerOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition, Uuid
from barnabas.model.note import PartitionNote, unheard
from barnabas.quotas.sampled_rate import SampledRate, Windows
from barnabas.replication.follower_fetch import Action, FollowerFetch, Step, Wanted
from barnabas.replication.follower_fetch_session import FollowerFetchSession
from barnabas.replication.partition import Partition
from barnabas.timing.throttle import Throttle
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

logger = logging.getLogger("barnabas.replication")

FIRST_VERSION = 12
"""The first in which a leader's response includes where logs diverge."""


RATE_WINDOWS = Windows(6, 10_000)
"""The rate of fetches is that of the last minute."""

APPLIED = (Action.NOTHING, Action.APPENDED)

SESSION_ENDS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


def _socket_options(options: BrokerOptions) -> list[tuple[int, int, int]]:
    """Return the options of a follower's socket; a buffer that is not set grows by itself."""
    size_bytes = options.replica_socket_receive_buffer_bytes
    if size_bytes < 0 or "replica.socket.receive.buffer.bytes" not in options.given:
        return []
    return [(socket.SOL_SOCKET, socket.SO_RCVBUF, size_bytes)]


@dataclass(frozen=True, slots=True)
class FetcherContext:
    """What all fetchers of one broker use."""

    broker_id: int
    broker_epoch: Callable[[], int]
    options: Callable[[], BrokerOptions]
    clock_ms: Callable[[], int]
    now_ms: Callable[[], int]
    cluster: ClusterView
    partitions: HostedPartitions
    throttle: Throttle
    """The limit for replicas that their topics name as throttled."""
    address_of: Callable[[int], Address]
    dialer: Dialer
    topic_name: Callable[[Uuid], str | None]
    stop_compaction: Callable[[TopicPartition], Awaitable[None]]
    write_checkpoints: Callable[[], Awaitable[None]]
    on_fenced: Callable[[TopicPartition], None]
    """Called if a leader knows a newer epoch."""
    note: PartitionNote = unheard


class Fetcher:
    """One loop: fetch, append, fetch again."""

    def __init__(self, context: FetcherContext, source: int, on_idle: Callable[[], None]) -> None:
        """Fetch from broker `source`; `on_idle` is called when there is nothing left to do."""
        self._context = context
        self._source = source
        self._on_idle = on_idle
        self._pull = FollowerFetch(context.options().replica_fetch_backoff_ms)
        self._session = FollowerFetchSession()
        self._partitions: dict[TopicPartition, Partition] = {}
        self._wake = asyncio.Event()
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._steps: set[asyncio.Task[None]] = set()
        self._is_fetching = False
        self._is_called = False
        """Whether a fetch is in progress, and whether its leader was asked to end its wait."""
        self._rate = SampledRate(RATE_WINDOWS)
        self.failed: set[TopicPartition] = set()
        """Partitions whose last response could not be applied: records were rejected, the disk
        failed, or the leader has another epoch."""
        self.task = spawn(self._run(), f"replica fetcher from broker {source}")

    @property
    def is_busy(self) -> bool:
        """Return whether there is anything to follow, or a step in progress."""
        return len(self._pull) > 0 or bool(self._steps)

    @property
    def partitions(self) -> Iterable[Partition]:
        """Return the partitions that are followed."""
        return self._partitions.values()

    @property
    def fetches_per_second(self) -> float:
        """Return how often it has fetched, over the last minute."""
        return self._rate.per_second(self._now_ms())

    @property
    def has_crashed(self) -> bool:
        """Return whether its loop has ended by an unexpected error."""
        task = self.task
        return task.done() and not task.cancelled() and task.exception() is not None

    def lags(self) -> list[tuple[TopicPartition, int]]:
        """Return by how many records each partition is behind its leader's high watermark."""
        return self._pull.lags()

    def follow(self, partition: Partition) -> None:
        """Start to follow a partition."""
        key = partition.topic_partition
        self._partitions[key] = partition
        self._act(key, self._pull.follow(partition))
        self._hold_until_flushed(partition)
        self._call()

    def forget(self, key: TopicPartition) -> None:
        """Stop following a partition."""
        self._pull.forget(key)
        self._partitions.pop(key, None)
        self.failed.discard(key)

    def resume(self, key: TopicPartition) -> None:
        """Fetch a partition again that was held."""
        if key in self._partitions:
            self._pull.resume(key, self._now_ms())
            self._call()

    def _call(self) -> None:
        """Have a partition fetched at once that is not in the current fetch.

        The fetch in progress may wait at the leader for records of the others. A leader of ours
        ends that wait when another request arrives behind it; others respond in their time.
        """
        self._wake.set()
        if self._is_fetching and not self._is_called:
            self._is_called = True
            self._spawn(self._ask_behind())

    async def _ask_behind(self) -> None:
        connection = self._connection
        if connection is not None and not connection.closed:
            with contextlib.suppress(BarnabasError):  # the fetch before it fails too
                await connection.send(ApiVersionsRequest(), version=0)

    def wake(self) -> None:
        """Check again whether there is something to do: the source may be known now."""
        if self._connection is None or self._connection.closed:
            self._pull.hurry()
        self._wake.set()

    def end(self) -> None:
        """Stop for good."""
        self.task.cancel()
        for step in self._steps:
            step.cancel()
        if self._connection is not None:
            self._connection.close()

    def _now_ms(self) -> int:
        return self._context.clock_ms()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            for key, wanted in self._pull.changes(self._now_ms()).items():
                may_copy = wanted is not None and self._may_copy(wanted)
                self._session.want(key, wanted if may_copy else None)
            if self._session.is_empty:
                await self._rest()
                continue
            try:
                connection = await self._connected()
                response = await self._fetch(connection)
            except BarnabasError as failure:
                self._session.end()
                if isinstance(failure, RequestError) and failure.code in SESSION_ENDS:
                    continue  # the leader has dropped it, to make room or in a restart
                logger.info(
                    "replica fetch from broker %d failed, retrying: %s", self._source, failure
                )
                self._pull.back_off(self._now_ms())
                continue
            self._take(response)

    def _may_copy(self, wanted: Wanted) -> bool:
        """Return whether to fetch now: a throttled replica waits for the quota, unless in sync."""
        context, key, now_ms = self._context, wanted.key, self._now_ms()
        options = self._partitions[key].log.options
        if (
            follows_throttled(options, key.partition, context.broker_id)
            and not self._is_in_sync(key)
            and context.throttle.is_exceeded(now_ms)
        ):
            self._pull.resume(key, now_ms, after_pause=True)
            return False
        return True

    def _is_in_sync(self, key: TopicPartition) -> bool:
        """Return whether this broker's replica is in the ISR that the controller last sent."""
        view = self._context.cluster.topic(key.topic)
        if view is None or key.partition >= len(view.partitions):
            return False
        return self._context.broker_id in view.partitions[key.partition].isr

    async def _rest(self) -> None:
        """Wait until something is due, or until `wake`."""
        ready_ms = self._pull.next_ready_ms()
        pause = None if ready_ms is None else max(ready_ms - self._now_ms(), 1) / 1000
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _connected(self) -> Connection:
        async with self._connecting:  # a step may need it at the same time
            if self._connection is not None and not self._connection.closed:
                return self._connection
            context, options = self._context, self._context.options()
            self._session.end()
            self._connection = await context.dialer.open(
                options.endpoints.inter_broker,
                context.address_of(self._source),
                client_id=f"broker-{context.broker_id}-fetcher",
                request_timeout_ms=options.replica_socket_timeout_ms,
                socket_options=_socket_options(options),
            )
            return self._connection

    async def _fetch(self, connection: Connection) -> FetchResponse:
        context, options = self._context, self._context.options()
        asked = self._session.ask()
        topics: dict[str, FetchTopic] = {}
        for each in asked.changed:
            topic = topics.get(each.key.topic)
            if topic is None:
                topic = topics[each.key.topic] = FetchTopic(
                    topic=each.key.topic, topic_id=each.topic_id
                )
            topic.partitions.append(
                FetchPartition(
                    partition=each.key.partition,
                    current_leader_epoch=each.leader_epoch,
                    fetch_offset=each.offset,
                    last_fetched_epoch=each.last_fetched_epoch,
                    log_start_offset=each.log_start_offset,
                    partition_max_bytes=options.replica_fetch_max_bytes,
                )
            )
        forgotten = [
            ForgottenTopic(
                topic=each.key.topic, topic_id=each.topic_id, partitions=[each.key.partition]
            )
            for each in asked.forgotten
        ]
        version = connection.version_of(FetchRequest, at_least=FIRST_VERSION)
        wait_ms_max = options.replica_fetch_wait_max_ms
        patience_ms = self._pull.patience_ms(self._now_ms())
        request = FetchRequest(
            max_wait_ms=wait_ms_max if patience_ms is None else min(wait_ms_max, patience_ms),
            min_bytes=options.replica_fetch_min_bytes,
            max_bytes=options.replica_fetch_response_max_bytes,
            session_id=asked.session_id,
            session_epoch=asked.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=forgotten,
        )
        if version >= 15:
            request.replica_state = ReplicaState(
                replica_id=context.broker_id, replica_epoch=context.broker_epoch()
            )
        else:
            request.replica_id = context.broker_id
        self._is_fetching, self._is_called = True, False
        try:
            response: FetchResponse = await connection.send(request, version=version)
        finally:
            self._is_fetching = False
        if response.error_code:
            raise RequestError(ErrorCode.of(response.error_code))
        self._session.answered(response.session_id)
        self._rate.record(1, self._now_ms())
        return response

    def _take(self, response: FetchResponse) -> None:
        context = self._context
        now_ms, wall_ms = self._now_ms(), context.now_ms()
        refused: dict[ErrorCode, list[TopicPartition]] = {}
        for topic in response.responses:
            name = topic.topic or context.topic_name(topic.topic_id)
            if name is None:
                continue
            for data in topic.partitions:
                key = TopicPartition(name, data.partition_index)
                partition = self._partitions.get(key)
                if partition is None:
                    self._session.end()
                    continue
                log = partition.log
                watermark = log.high_watermark
                if data.records and follows_throttled(
                    log.options, key.partition, context.broker_id
                ):
                    context.throttle.record(len(data.records), now_ms)
                try:
                    step = self._pull.take(key, data, now_ms, wall_ms)
                except StorageError as failure:
                    self._refused(partition, failure)
                    continue
                except (RequestError, CorruptRecordError) as failure:
                    logger.error(
                        "%s: records from broker %d rejected, retrying: offset=%d: %s",
                        key,
                        self._source,
                        log.log_end_offset,
                        failure,
                    )
                    self._pull.resume(key, now_ms, after_pause=True)
                    self.failed.add(key)
                    continue
                if self.failed and step.action in APPLIED:
                    self.failed.discard(key)
                if step.action is Action.APPENDED and data.records:
                    context.partitions.traffic.replicated_in(
                        partition, len(data.records), context.broker_id
                    )
                if log.high_watermark != watermark and step.action is Action.NOTHING:
                    context.partitions.wake_readers(key)  # consumers may read from followers
                if step.action is Action.DROPPED:
                    # In this session the leader would not repeat what was dropped, such as a high
                    # watermark.
                    self._session.end()
                elif step.action in (Action.RETRY, Action.WAIT):
                    refused.setdefault(step.code, []).append(key)
                else:
                    self._act(key, step)
        for code, keys in refused.items():  # thousands at once when a leader has changed
            logger.info(
                "replica fetch from broker %d: %s: partitions=%d first=%s",
                self._source,
                code.name,
                len(keys),
                keys[0],
            )
            if code is ErrorCode.FENCED_LEADER_EPOCH:
                self.failed.update(keys)
                for key in keys:
                    context.on_fenced(key)

    def _act(self, key: TopicPartition, step: Step) -> None:
        if step.action is Action.NOTHING:
            return
        partition = self._partitions[key]
        if step.action is Action.APPENDED:
            self._context.partitions.followed(partition)
            self._hold_until_flushed(partition)
        elif step.action in (Action.TRUNCATE, Action.RESTART):
            self._spawn(self._truncate(partition, step, partition.leader_epoch))
        else:
            assert step.action is Action.FIND_BOUNDS
            self._spawn(self._find_bounds(partition, partition.leader_epoch))

    def _hold_until_flushed(self, partition: Partition) -> None:
        """Fetch on only after a flush, lest the leader counts records that a crash may lose."""
        log = partition.log
        if log.log_end_offset - log.recovery_point >= log.options.flush_messages:
            self._pull.hold(partition.topic_partition)
            self._context.partitions.flusher.request(partition)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn(work, f"a step of the replica fetcher from broker {self._source}")
        self._steps.add(task)
        task.add_done_callback(self._step_ended)

    def _step_ended(self, task: asyncio.Task[None]) -> None:
        self._steps.discard(task)
        if not self.is_busy:
            self._on_idle()

    def _follows(self, partition: Partition, epoch: int) -> bool:
        """Return whether a step still applies: it is void under the next leader."""
        return (
            self._partitions.get(partition.topic_partition) is partition
            and partition.leader_epoch == epoch
        )

    async def _truncate(self, partition: Partition, step: Step, epoch: int) -> None:
        """Truncate a log; compaction must not read what is removed."""
        context, key = self._context, partition.topic_partition
        await context.stop_compaction(key)
        if not self._follows(partition, epoch):
            return
        log = partition.log
        numbers = {
            "from": log.log_end_offset,
            "to": step.offset,
            "leader": self._source,
            "leader_epoch": epoch,
        }
        cause = "out-of-range" if step.action is Action.RESTART else "diverged"
        context.note("log.truncated", key, cause, numbers)
        try:
            if step.action is Action.RESTART:
                log.truncate_all(step.offset, context.now_ms())
            else:
                log.truncate_to(step.offset, context.now_ms())
            await context.write_checkpoints()
        except StorageError as failure:
            self._refused(partition, failure)
            return
        if self._follows(partition, epoch):
            self.resume(key)

    def _refused(self, partition: Partition, failure: StorageError) -> None:
        """Handle a disk error: retry later if the partition is still hosted, else forget it."""
        key = partition.topic_partition
        self._context.partitions.append_failed(partition, failure)
        if self._context.partitions.get(key) is partition:
            self._pull.resume(key, self._now_ms(), after_pause=True)
            self._wake.set()
            self.failed.add(key)
        else:
            self.forget(key)

    async def _find_bounds(self, partition: Partition, epoch: int) -> None:
        """Ask the leader for its log start and end offsets, and truncate to fit."""
        key = partition.topic_partition
        try:
            connection = await self._connected()
            start = await self._offset(connection, partition, EARLIEST)
            end = await self._offset(connection, partition, LATEST)
        except BarnabasError as failure:
            logger.info(
                "%s: could not get the offsets of leader %d, retrying: %s",
                key,
                self._source,
                failure,
            )
            if self._follows(partition, epoch):
                self._pull.resume(key, self._now_ms(), after_pause=True)
                self._wake.set()
            return
        if not self._follows(partition, epoch):
            return
        step = self._pull.bounds_found(key, start, end)
        if step.action is Action.NOTHING:
            self._wake.set()
        else:
            await self._truncate(partition, step, epoch)

    async def _offset(self, connection: Connection, partition: Partition, which: int) -> int:
        key = partition.topic_partition
        wanted = ListOffsetsPartition(
            partition_index=key.partition,
            current_leader_epoch=partition.leader_epoch,
            timestamp=which,
        )
        response: ListOffsetsResponse = await connection.send(
            ListOffsetsRequest(
                replica_id=self._context.broker_id,
                topics=[ListOffsetsTopic(name=key.topic, partitions=[wanted])],
            )
        )
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise RequestError(ErrorCode.of(found.error_code))
        return found.offset
