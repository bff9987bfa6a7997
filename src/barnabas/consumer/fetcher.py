"""Fetch what the plan asks for, from all brokers concurrently, and deliver it to the buffer.

The edge between the plan and the network: no task and no future, only submitted requests and their
responses. `schedule` makes it check for work soon; a response, a change of the cluster or of a
connection, and the end of a back-off do so, too. Runs on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.client.metadata import BrokerAddress
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.consumer.fetch_plan import FetchChannel, FetchPlan
from barnabas.consumer.fetch_session import (
    SESSION_ERRORS,
    Plan,
    Wanted,
    fetch_topics,
    forgotten_topics,
)
from barnabas.consumer.partition_fetch_state import PartitionFetch
from barnabas.consumer.position_events import OffsetOutOfRange, PartitionFailed, PositionEvent
from barnabas.consumer.positions import Positions
from barnabas.consumer.session_closer import SessionCloser
from barnabas.consumer.subscription import Subscription
from barnabas.kernels import RecordCursor
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, CorruptRecordError
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.model.isolation import IsolationLevel
from barnabas.model.request_errors import RecordTooLargeError, request_error
from barnabas.records.bounded_decompression import unpack_chunks
from barnabas.records.bounds import Bounds
from barnabas.records.compression import TooLargeError
from barnabas.records.conversion import to_batches
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionData,
)

_UNPACKED_AHEAD = 4 << 20
_PREFER_MS = 300_000.0

_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors that a retry with newer metadata resolves."""


class FetchCounts:
    """Counts the fetches of one consumer, their latencies and bytes."""

    __slots__ = (
        "_response_bytes",
        "bytes",
        "bytes_max",
        "failures",
        "fetches",
        "latency_ms",
        "latency_ms_max",
        "parts",
        "responses",
        "throttled_ms",
        "throttled_ms_max",
        "topics",
    )

    def __init__(self) -> None:
        self.fetches = 0
        self.failures = 0
        self.parts = 0
        self.bytes = 0
        self.latency_ms = 0.0
        self.latency_ms_max = 0.0
        self.bytes_max = 0
        self.responses = 0
        self.throttled_ms = 0
        self.throttled_ms_max = 0
        self.topics: dict[str, int] = {}
        """Bytes by topic."""
        self._response_bytes = 0
        """Bytes of the response that is being read."""

    def answered(self, latency_ms: float) -> None:
        """Count a response."""
        self.fetches += 1
        self._response_bytes = 0
        self.latency_ms += latency_ms
        self.latency_ms_max = max(self.latency_ms_max, latency_ms)

    def throttled(self, throttle_ms: int) -> None:
        """Count how long a response asks the consumer to wait, mostly not at all."""
        self.responses += 1
        if throttle_ms > 0:
            self.throttled_ms += throttle_ms
            self.throttled_ms_max = max(self.throttled_ms_max, throttle_ms)

    def received(self, topic: str, size: int) -> None:
        """Count the bytes of one partition in the response that was counted last."""
        self.parts += 1
        self.bytes += size
        self.topics[topic] = self.topics.get(topic, 0) + size
        self._response_bytes += size
        if self._response_bytes > self.bytes_max:
            self.bytes_max = self._response_bytes

    def metrics(self, records: int, elapsed_s: float) -> dict[str, float]:
        """Return the counters under the names that Kafka's consumers use."""
        rate = 1 / elapsed_s if elapsed_s > 0 else 0.0
        return {
            "fetch-total": self.fetches,
            "fetch-rate": self.fetches * rate,
            "fetch-failed-total": self.failures,
            "fetch-latency-avg": self.latency_ms / self.fetches if self.fetches else 0.0,
            "fetch-latency-max": self.latency_ms_max,
            "fetch-size-avg": self.bytes / self.fetches if self.fetches else 0.0,
            "fetch-size-max": self.bytes_max,
            "fetch-throttle-time-avg": self.throttled_ms / max(self.responses, 1),
            "fetch-throttle-time-max": self.throttled_ms_max,
            "bytes-consumed-total": self.bytes,
            "bytes-consumed-rate": self.bytes * rate,
            "records-consumed-total": records,
            "records-consumed-rate": records * rate,
            "records-per-request-avg": records / self.fetches if self.fetches else 0.0,
        }


class Fetcher:
    """The fetcher of one consumer."""

    def __init__(
        self,
        client: ClusterClient,
        subscription: Subscription,
        options: ConsumerOptions,
        buffer: FetchBuffer,
        positions: Positions,
        *,
        ahead_max: int,
        backoff: Backoff,
        delivered: Callable[[], None],
        refused: Callable[[BarnabasError], None],
        wall_ms: Callable[[], float],
    ) -> None:
        """`delivered` is called when something new is in the buffer, `refused` when a broker cannot
        be reached for a reason that no retry resolves (it does not accept our credentials)."""
        self.plan = FetchPlan(
            ahead_max=ahead_max,
            wait_ms=options.fetch_max_wait_ms,
            sessions=options.enable_incremental_fetch_sessions,
        )
        self.counts = FetchCounts()
        self._client = client
        self._subscription = subscription
        self._options = options
        self._committed = options.isolation_level == IsolationLevel.READ_COMMITTED
        self._buffer = buffer
        self._bounds = Bounds(options.barnabas_unpacked_record_max_bytes)
        self._positions = positions
        self._backoff = backoff
        self._delivered = delivered
        self._refused_by_broker = refused
        self._wall_ms = wall_ms
        self._arrived = 0
        self._loop = asyncio.get_running_loop()
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._session_closer = SessionCloser(client)
        self._unwatch = client.watch(self.schedule)
        self._closed = False

    @property
    def ahead(self) -> int:
        """How many fetched bytes the user has not taken yet."""
        return self._arrived - self._buffer.released

    def schedule(self) -> None:
        """Check for work soon; repeated calls are merged."""
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._fetch)

    def close(self) -> None:
        """Stop fetching, and close the sessions; later responses are dropped."""
        if self._closed:
            return
        self._closed = True
        self._unwatch()
        for node_id, channels in self.plan.channels.items():
            for channel in channels:
                self._session_closer.close(node_id, channel.session)
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None

    async def sessions_closed(self, timeout_ms: float) -> None:
        """Wait until the brokers have closed the sessions, at most that long."""
        await self._session_closer.wait(timeout_ms)

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    def _fetch(self) -> None:
        self._soon = None
        now_ms = self._now_ms()
        plan, cluster = self.plan, self._client.cluster
        plan.follow(self._subscription.assigned)
        self._positions.look()
        unvalidated = plan.unvalidated(cluster)
        if unvalidated:
            self._positions.check(unvalidated)
        for node_id, fetches in plan.ready(cluster, now_ms).items():
            if not self.ahead or self.ahead < self._options.fetch_max_bytes:
                self._fetch_from(node_id, fetches)
        for node_id, channel in plan.remove_unused_channels():
            self._session_closer.close(node_id, channel.session)
        due_ms = plan.next_ms(now_ms)
        if plan.leaderless():
            # Elections take a moment, and unchanged metadata triggers no notification.
            self._client.request_refresh()
            again_ms = now_ms + self._options.retry_backoff_max_ms / 2
            due_ms = again_ms if due_ms is None else min(due_ms, again_ms)
        self._set_timer(due_ms, now_ms)

    def _set_timer(self, due_ms: float | None, now_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ms is not None:
            self._timer = self._loop.call_later((due_ms - now_ms) / 1000, self.schedule)

    def _fetch_from(self, node_id: int, fetches: list[PartitionFetch]) -> None:
        """Send a fetch to a broker, if a connection is ready for it."""
        channel = self.plan.free_channel(node_id)
        if channel is None:
            return
        connection = self._client.ready(node_id, channel=channel.name)
        if connection is None:
            failure = self._client.failure(node_id, channel=channel.name)
            if failure is not None and verdict(failure) is Verdict.FAIL:
                self._refused_by_broker(failure)
            for fetch in fetches:
                fetch.failure = failure
                # The leader knows other replicas; one that cannot be reached is of no use.
                if failure is not None and fetch.preferred_id == node_id:
                    fetch.prefer_leader()
                    self.schedule()
        elif connection.can_submit:
            self._send(connection, node_id, channel, fetches)

    def _send(
        self,
        connection: Connection,
        node_id: int,
        channel: FetchChannel,
        fetches: list[PartitionFetch],
    ) -> None:
        cluster = self._client.cluster
        wanted = {
            fetch.partition: Wanted(
                fetch.partition,
                cluster.topic_id(fetch.partition.topic),
                fetch.offset or 0,
                cluster.leader_epoch(fetch.partition),
            )
            for fetch in fetches
        }
        by_id = all(want.topic_id != ZERO_UUID for want in wanted.values())
        version = connection.version_of(
            FetchRequest,
            at_least=4,  # the first that may carry batches of magic 2
            at_most=None if by_id else 12,  # from version 13 on, topics are named by id
        )
        plan = channel.session.plan(wanted, by_id=by_id and version >= 13)
        request = FetchRequest(
            max_wait_ms=channel.wait_ms,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=self._options.fetch_max_bytes,
            isolation_level=int(self._committed),
            session_id=plan.session_id if version >= 7 else 0,
            session_epoch=plan.epoch if version >= 7 else -1,
            topics=fetch_topics(plan.named, self._options.max_partition_fetch_bytes),
            forgotten_topics_data=forgotten_topics(plan.forgotten) if version >= 7 else [],
            rack_id=self._options.client_rack,
        )
        versions = {fetch.partition: (fetch, fetch.version) for fetch in fetches}
        for fetch in fetches:
            fetch.fetching = fetch.offset
        channel.busy_since_ms = self._now_ms()
        answered = partial(self._answered, node_id, channel, plan, wanted, versions)
        connection.submit(request, answered, version=version)

    def _answered(
        self,
        node_id: int,
        channel: FetchChannel,
        plan: Plan,
        wanted: dict[TopicPartition, Wanted],
        versions: dict[TopicPartition, tuple[PartitionFetch, int]],
        response: FetchResponse | None,
        failure: BarnabasError | None,
    ) -> None:
        if self._closed:
            return
        now_ms = self._now_ms()
        assert channel.busy_since_ms is not None
        self.counts.answered(now_ms - channel.busy_since_ms)
        channel.busy_since_ms = None
        for partition, (fetch, version) in versions.items():
            if fetch.version == version and fetch.fetching == wanted[partition].offset:
                fetch.fetching = None
        if response is None:
            assert failure is not None
            channel.session.failed()
            self._all_failed(versions, failure, now_ms, node_id)
        else:
            self.counts.throttled(response.throttle_time_ms)
            code = ErrorCode.of(response.error_code)
            channel.session.answered(plan, code, response.session_id)
            if code is ErrorCode.NONE:
                self._receive(response, wanted, versions, now_ms, node_id)
            elif (
                code not in SESSION_ERRORS or plan.is_full
            ):  # a lost session is opened again at once
                failure = request_error(code, f"Fetch{self._on_broker(node_id)}: {code.meaning}")
                self._all_failed(versions, failure, now_ms, node_id)
        self._fetch_now()

    def _fetch_now(self) -> None:
        """Check for work at once: the next fetch is sent before the user's thread wakes up."""
        if self._soon is not None:
            self._soon.cancel()
        self._fetch()

    def _all_failed(
        self,
        versions: dict[TopicPartition, tuple[PartitionFetch, int]],
        failure: BarnabasError,
        now_ms: float,
        node_id: int,
    ) -> None:
        self.counts.failures += 1
        self._client.request_refresh()
        for fetch, version in versions.values():
            if fetch.version == version:
                if fetch.preferred_id == node_id:
                    fetch.prefer_leader()
                self._back_off(fetch, failure, now_ms)

    def _back_off(self, fetch: PartitionFetch, failure: Exception, now_ms: float) -> None:
        fetch.failures += 1
        fetch.failed(failure, now_ms + self._backoff.delay_ms(fetch.failures))

    def _receive(
        self,
        response: FetchResponse,
        wanted: dict[TopicPartition, Wanted],
        versions: dict[TopicPartition, tuple[PartitionFetch, int]],
        now_ms: float,
        node_id: int,
    ) -> None:
        names = {want.topic_id: want.partition.topic for want in wanted.values()}
        received = False
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id)
            for data in topic.partitions:
                partition = TopicPartition(name or "", data.partition_index)
                want = wanted.get(partition)
                if want is None:
                    continue  # the partition was removed meanwhile
                fetch, version = versions[partition]
                # The user may have seeked, or another broker may have been faster.
                if fetch.version == version == fetch.state.version and fetch.offset == want.offset:
                    received = (
                        self._take_in(fetch, want, data, response, now_ms, node_id) or received
                    )
        if received:
            self._delivered()

    def _take_in(
        self,
        fetch: PartitionFetch,
        want: Wanted,
        data: PartitionData,
        response: FetchResponse,
        now_ms: float,
        node_id: int,
    ) -> bool:
        """Handle one partition's part of a response; return whether the user gets something."""
        code = ErrorCode.of(data.error_code)
        if code is not ErrorCode.NONE:
            return self._refused(fetch, want, code, data, response, now_ms, node_id)
        state = fetch.state
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        state.fetched_ms = self._wall_ms()
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node_id:
            fetch.prefer(
                data.preferred_read_replica, now_ms + min(_PREFER_MS, self._metadata_age_ms)
            )
        if not data.records:
            fetch.recovered()
            return False
        return self._deliver(fetch, want, data)

    @property
    def _metadata_age_ms(self) -> float:
        return float(self._options.metadata_max_age_ms)

    def _deliver(self, fetch: PartitionFetch, want: Wanted, data: PartitionData) -> bool:
        size = len(data.records or b"")
        aborted = None
        if self._committed:
            aborted = [
                (each.first_offset, each.producer_id) for each in data.aborted_transactions or ()
            ]
        try:
            cursor = RecordCursor(
                to_batches(data.records or b"", self._bounds.record),
                *want.partition,
                want.offset,
                unpack=partial(unpack_chunks, bounds=self._bounds),
                check_crcs=self._options.check_crcs,
                aborted=aborted,
                key_deserializer=self._options.key_deserializer,
                value_deserializer=self._options.value_deserializer,
            )
            next_offset, epoch = cursor.survey()
            cursor.prepare(_UNPACKED_AHEAD)
        except TooLargeError as failure:
            too_large = RecordTooLargeError(f"{want.partition}, offset {want.offset}: {failure}")
            too_large.__cause__ = failure
            return self._halt(fetch, PartitionFailed(fetch.state, fetch.version, too_large))
        except CorruptRecordError as failure:
            return self._halt(
                fetch, PartitionFailed(fetch.state, fetch.version, _at(want, failure))
            )
        fetch.received(size, next_offset, epoch, want.leader_epoch)
        if next_offset == want.offset:
            fetch.halted = True  # not one whole batch: the buffer raises it
        self._arrived += size
        self.counts.received(want.partition.topic, size)
        self._buffer.deliver(CompletedFetch(fetch, fetch.state, fetch.version, cursor, size))
        return True

    def _refused(
        self,
        fetch: PartitionFetch,
        want: Wanted,
        code: ErrorCode,
        data: PartitionData,
        response: FetchResponse,
        now_ms: float,
        node_id: int,
    ) -> bool:
        failure = request_error(
            code,
            f"{fetch.partition} at offset {want.offset}{self._on_broker(node_id)}: {code.meaning}",
        )
        self.counts.failures += 1
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if fetch.preferred_id >= 0:  # a follower may lag: its leader decides
                fetch.prefer_leader()
                return False
            return self._halt(fetch, OffsetOutOfRange(fetch.state, fetch.version, want.offset))
        if code in _MOVED:
            fetch.prefer_leader()
            if not self._learn_leader(fetch, data, response):
                self._client.request_refresh()
                self._back_off(fetch, failure, now_ms)
            return False
        if code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self._back_off(fetch, failure, now_ms)
            return False
        return self._halt(fetch, PartitionFailed(fetch.state, fetch.version, failure))

    def _on_broker(self, node_id: int) -> str:
        broker = self._client.cluster.brokers.get(node_id)
        address = f" ({Address(broker.host, broker.port)})" if broker is not None else ""
        return f" on broker {node_id}{address}"

    def _halt(self, fetch: PartitionFetch, event: PositionEvent) -> bool:
        """Stop fetching a partition until the user has got the event and moved."""
        fetch.halted = True
        self._buffer.deliver(event)
        return True

    def _learn_leader(
        self, fetch: PartitionFetch, data: PartitionData, response: FetchResponse
    ) -> bool:
        """Take the new leader from the response itself, if it names one (KIP-951)."""
        leader = data.current_leader
        if leader is None or leader.leader_id < 0:
            return False
        address = next(
            (
                BrokerAddress(node.node_id, node.host, node.port, node.rack)
                for node in response.node_endpoints
                if node.node_id == leader.leader_id
            ),
            None,
        )
        return self._client.cluster.update_leader(
            fetch.partition, leader.leader_id, leader.leader_epoch, address
        )


def _at(want: Wanted, failure: CorruptRecordError) -> CorruptRecordError:
    failure.add_note(f"in {want.partition}, fetched from offset {want.offset}")
    return failure
