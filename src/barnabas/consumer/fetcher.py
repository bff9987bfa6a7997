"""Fetch what the plan says, from all brokers side by side, and put what comes on the shelf.

The edge between the plan and the network: no task and no future, only submitted requests and their
answers. `stir` makes it look again soon; it does so by itself when an answer comes, when the
cluster or a connection changes, and when a pause ends. Runs on the loop.
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
from barnabas.config.clients.consumer import READ_COMMITTED, ConsumerOptions
from barnabas.consumer.fetch_counts import FetchCounts
from barnabas.consumer.fetch_plan import FetchChannel, FetchPlan
from barnabas.consumer.fetch_session import SESSION_ERRORS, Plan, Wanted
from barnabas.consumer.flow import Flow
from barnabas.consumer.news import News, OutOfRange, Refused
from barnabas.consumer.partings import Partings
from barnabas.consumer.positions import Positions
from barnabas.consumer.shelf import Chunk, Shelf
from barnabas.consumer.subscription import Subscription
from barnabas.kernels import RecordCursor
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, CorruptRecordError
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.records.bounds import Bounds
from barnabas.records.chunks import unpack_chunks
from barnabas.records.conversion import to_batches
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
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
"""What another attempt with newer metadata mends."""


class Fetcher:
    """The fetching of one consumer."""

    def __init__(
        self,
        client: ClusterClient,
        subscription: Subscription,
        options: ConsumerOptions,
        shelf: Shelf,
        positions: Positions,
        *,
        ahead_max: int,
        backoff: Backoff,
        delivered: Callable[[], None],
        refused: Callable[[BarnabasError], None],
        wall_ms: Callable[[], float],
    ) -> None:
        """`delivered` is called when something new is on the shelf, `refused` when a broker is
        not to be reached for a reason that no attempt mends (it does not take our credentials)."""
        self.plan = FetchPlan(
            ahead_max=ahead_max,
            wait_ms=options.fetch_max_wait_ms,
            sessions=options.enable_incremental_fetch_sessions,
        )
        self.counts = FetchCounts()
        self._client = client
        self._subscription = subscription
        self._options = options
        self._committed = options.isolation_level == READ_COMMITTED
        self._shelf = shelf
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
        self._partings = Partings(client)
        self._unwatch = client.watch(self.stir)
        self._closed = False

    @property
    def ahead(self) -> int:
        """How many bytes were fetched that the user has not taken."""
        return self._arrived - self._shelf.released

    def stir(self) -> None:
        """Look soon at what is to be done."""
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._look)

    def close(self) -> None:
        """Fetch no more, and end the sessions; answers that still come are dropped."""
        if self._closed:
            return
        self._closed = True
        self._unwatch()
        for node_id, channels in self.plan.channels.items():
            for channel in channels:
                self._partings.part(node_id, channel.session)
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None

    async def parted(self, timeout_ms: float) -> None:
        """Wait until the brokers have heard of the end, but no longer than that."""
        await self._partings.heard(timeout_ms)

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    def _look(self) -> None:
        self._soon = None
        now_ms = self._now_ms()
        plan, cluster = self.plan, self._client.cluster
        plan.follow(self._subscription.assigned)
        self._positions.look()
        unproven = plan.unproven(cluster)
        if unproven:
            self._positions.check(unproven)
        for node_id, flows in plan.hungry(cluster, now_ms).items():
            if not self.ahead or self.ahead < self._options.fetch_max_bytes:
                self._approach(node_id, flows)
        for node_id, channel in plan.deserted():
            self._partings.part(node_id, channel.session)
        due_ms = plan.next_ms(now_ms)
        if plan.leaderless():
            # Elections take a moment, and metadata that did not change calls nobody.
            self._client.request_refresh()
            again_ms = now_ms + self._options.retry_backoff_max_ms / 2
            due_ms = again_ms if due_ms is None else min(due_ms, again_ms)
        self._set_timer(due_ms, now_ms)

    def _set_timer(self, due_ms: float | None, now_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ms is not None:
            self._timer = self._loop.call_later((due_ms - now_ms) / 1000, self.stir)

    def _approach(self, node_id: int, flows: list[Flow]) -> None:
        """Send a fetch to a broker, if there is a way to it now."""
        channel = self.plan.free_channel(node_id)
        if channel is None:
            return
        connection = self._client.ready(node_id, channel=channel.name)
        if connection is None:
            failure = self._client.failure(node_id, channel=channel.name)
            if failure is not None and verdict(failure) is Verdict.FAIL:
                self._refused_by_broker(failure)
            for flow in flows:
                flow.failure = failure
                # The leader knows of other replicas; one that cannot be reached is no good.
                if failure is not None and flow.preferred_id == node_id:
                    flow.prefer_leader()
                    self.stir()
        elif connection.can_submit:
            self._send(connection, node_id, channel, flows)

    def _send(
        self, connection: Connection, node_id: int, channel: FetchChannel, flows: list[Flow]
    ) -> None:
        cluster = self._client.cluster
        wanted = {
            flow.partition: Wanted(
                flow.partition,
                cluster.topic_id(flow.partition.topic),
                flow.offset or 0,
                cluster.leader_epoch(flow.partition),
            )
            for flow in flows
        }
        by_id = all(want.topic_id != ZERO_UUID for want in wanted.values())
        version = connection.version_of(
            FetchRequest,
            at_least=4,  # the first that may carry batches of magic 2
            at_most=None if by_id else 12,  # from 13 on topics go by id
        )
        plan = channel.session.plan(wanted, by_id=by_id and version >= 13)
        request = FetchRequest(
            max_wait_ms=channel.wait_ms,
            min_bytes=self._options.fetch_min_bytes,
            max_bytes=self._options.fetch_max_bytes,
            isolation_level=int(self._committed),
            session_id=plan.session_id if version >= 7 else 0,
            session_epoch=plan.epoch if version >= 7 else -1,
            topics=self._topics(plan.named),
            forgotten_topics_data=_forgotten(plan.forgotten) if version >= 7 else [],
            rack_id=self._options.client_rack,
        )
        versions = {flow.partition: (flow, flow.version) for flow in flows}
        for flow in flows:
            flow.fetching = flow.offset
        channel.busy_since_ms = self._now_ms()
        answered = partial(self._answered, node_id, channel, plan, wanted, versions)
        connection.submit(request, answered, version=version)

    def _topics(self, wants: list[Wanted]) -> list[FetchTopic]:
        topics: dict[str, FetchTopic] = {}
        for want in wants:
            name, index = want.partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(topic=name, topic_id=want.topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=want.leader_epoch,
                    fetch_offset=want.offset,
                    partition_max_bytes=self._options.max_partition_fetch_bytes,
                )
            )
        return list(topics.values())

    def _answered(
        self,
        node_id: int,
        channel: FetchChannel,
        plan: Plan,
        wanted: dict[TopicPartition, Wanted],
        versions: dict[TopicPartition, tuple[Flow, int]],
        response: FetchResponse | None,
        failure: BarnabasError | None,
    ) -> None:
        if self._closed:
            return
        now_ms = self._now_ms()
        assert channel.busy_since_ms is not None
        self.counts.answered(now_ms - channel.busy_since_ms)
        channel.busy_since_ms = None
        for partition, (flow, version) in versions.items():
            if flow.version == version and flow.fetching == wanted[partition].offset:
                flow.fetching = None
        if response is None:
            assert failure is not None
            channel.session.failed()
            self._all_failed(versions, failure, now_ms, node_id)
        else:
            code = ErrorCode.of(response.error_code)
            channel.session.answered(plan, code, response.session_id)
            if code is ErrorCode.NONE:
                self._receive(response, wanted, versions, now_ms, node_id)
            elif code not in SESSION_ERRORS or plan.is_full:  # a lost session is begun anew at once
                failure = request_error(code, f"Fetch{self._place(node_id)}: {code.meaning}")
                self._all_failed(versions, failure, now_ms, node_id)
        self._look_now()

    def _look_now(self) -> None:
        """Look at once, so that the next fetch is on its way before the user's thread wakes up."""
        if self._soon is not None:
            self._soon.cancel()
        self._look()

    def _all_failed(
        self,
        versions: dict[TopicPartition, tuple[Flow, int]],
        failure: BarnabasError,
        now_ms: float,
        node_id: int,
    ) -> None:
        self.counts.failures += 1
        self._client.request_refresh()
        for flow, version in versions.values():
            if flow.version == version:
                if flow.preferred_id == node_id:
                    flow.prefer_leader()
                self._back_off(flow, failure, now_ms)

    def _back_off(self, flow: Flow, failure: Exception, now_ms: float) -> None:
        flow.failures += 1
        flow.failed(failure, now_ms + self._backoff.delay_ms(flow.failures))

    def _receive(
        self,
        response: FetchResponse,
        wanted: dict[TopicPartition, Wanted],
        versions: dict[TopicPartition, tuple[Flow, int]],
        now_ms: float,
        node_id: int,
    ) -> None:
        names = {want.topic_id: want.partition.topic for want in wanted.values()}
        came = False
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id)
            for data in topic.partitions:
                partition = TopicPartition(name or "", data.partition_index)
                want = wanted.get(partition)
                if want is None:
                    continue  # a partition that was forgotten meanwhile
                flow, version = versions[partition]
                # The user may have moved, or another broker may have been faster.
                if flow.version == version == flow.state.version and flow.offset == want.offset:
                    came = self._take_in(flow, want, data, response, now_ms, node_id) or came
        if came:
            self._delivered()

    def _take_in(
        self,
        flow: Flow,
        want: Wanted,
        data: PartitionData,
        response: FetchResponse,
        now_ms: float,
        node_id: int,
    ) -> bool:
        """Take one partition's part of an answer; tell whether the user's side gets something."""
        code = ErrorCode.of(data.error_code)
        if code is not ErrorCode.NONE:
            return self._refused(flow, want, code, data, response, now_ms, node_id)
        state = flow.state
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        state.fetched_ms = self._wall_ms()
        if data.preferred_read_replica >= 0 and data.preferred_read_replica != node_id:
            flow.prefer(
                data.preferred_read_replica, now_ms + min(_PREFER_MS, self._metadata_age_ms)
            )
        if not data.records:
            flow.recovered()
            return False
        return self._shelve(flow, want, data)

    @property
    def _metadata_age_ms(self) -> float:
        return float(self._options.metadata_max_age_ms)

    def _shelve(self, flow: Flow, want: Wanted, data: PartitionData) -> bool:
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
        except CorruptRecordError as failure:
            return self._halt(flow, Refused(flow.state, flow.version, _at(want, failure)))
        flow.received(size, next_offset, epoch, want.leader_epoch)
        if next_offset == want.offset:
            flow.halted = True  # not one whole batch: the shelf tells the user
        self._arrived += size
        self.counts.received(size)
        self._shelf.deliver(Chunk(flow, flow.state, flow.version, cursor, size))
        return True

    def _refused(
        self,
        flow: Flow,
        want: Wanted,
        code: ErrorCode,
        data: PartitionData,
        response: FetchResponse,
        now_ms: float,
        node_id: int,
    ) -> bool:
        failure = request_error(
            code,
            f"{flow.partition} at offset {want.offset}{self._place(node_id)}: {code.meaning}",
        )
        self.counts.failures += 1
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if flow.preferred_id >= 0:  # a follower may lag behind: its leader has the last word
                flow.prefer_leader()
                return False
            return self._halt(flow, OutOfRange(flow.state, flow.version, want.offset))
        if code in _MOVED:
            flow.prefer_leader()
            if not self._hear_leader(flow, data, response):
                self._client.request_refresh()
                self._back_off(flow, failure, now_ms)
            return False
        if code is ErrorCode.UNKNOWN_SERVER_ERROR:
            self._back_off(flow, failure, now_ms)
            return False
        return self._halt(flow, Refused(flow.state, flow.version, failure))

    def _place(self, node_id: int) -> str:
        broker = self._client.cluster.brokers.get(node_id)
        address = f" ({Address(broker.host, broker.port)})" if broker is not None else ""
        return f" on broker {node_id}{address}"

    def _halt(self, flow: Flow, news: News) -> bool:
        """Fetch no more of a partition until the user has heard the news and moved."""
        flow.halted = True
        self._shelf.deliver(news)
        return True

    def _hear_leader(self, flow: Flow, data: PartitionData, response: FetchResponse) -> bool:
        """Learn the new leader from the answer itself, if it tells (KIP-951)."""
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
            flow.partition, leader.leader_id, leader.leader_epoch, address
        )


def _forgotten(wants: list[Wanted]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for want in wants:
        name, index = want.partition
        topic = topics.get((name, want.topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=name, topic_id=want.topic_id, partitions=[])
            topics[name, want.topic_id] = topic
        topic.partitions.append(index)
    return list(topics.values())


def _at(want: Wanted, failure: CorruptRecordError) -> CorruptRecordError:
    failure.add_note(f"in {want.partition}, fetched from offset {want.offset}")
    return failure
