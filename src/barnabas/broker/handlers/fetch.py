"""Fetch: read record batches, now or when enough of them are available.

v0-v1 get message format 0 and v2-v3 format 1, down-converted. v3 limits the whole response, v4
added transactions, v7 sessions, v9 leader epochs, v11 racks, v12 diverging epochs, v13 topic ids,
v16 the new leader with an error. A response takes bytes of one segment per partition, starts at a
batch boundary and may end inside a batch, as all clients expect. A replica id of -2 is a debugging
consumer, which any replica serves in every version, up to its high watermark.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from barnabas.broker.handlers.leader_hint import WRONG_LEADER, endpoints_of, leader_of
from barnabas.broker.network.client_quotas import MeteredRequest
from barnabas.broker.network.zero_copy import ranges_in, release
from barnabas.broker.partitions.fetch_sessions import LOOK_MS, Fetching, FetchItem
from barnabas.broker.replication.preferred_replica import RACK_AWARE, preferred_replica
from barnabas.broker.replication.replication_quotas import leads_throttled
from barnabas.broker.storage.down_conversion import read_converted
from barnabas.log.consumer_read import read_for_consumer
from barnabas.log.transaction_index import AbortedTransaction as Aborted
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    CorruptFileError,
    CorruptRecordError,
    RequestError,
    StorageError,
)
from barnabas.model.ids import NO_EPOCH, NO_LEADER, NO_OFFSET, TopicPartition, Uuid
from barnabas.model.isolation import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.replication.follower_progress import Follower
from barnabas.replication.partition import Partition
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.timing.purgatory import DelayedOperation
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

logger = logging.getLogger("barnabas.logs")

FIRST_TIMED_VERSION = 2
FIRST_BOUNDED_VERSION = 3
FIRST_UNCONVERTED_VERSION = 4
FIRST_FOLLOWER_READ_VERSION = 11
FIRST_ZSTD_VERSION = 10
FIRST_ID_VERSION = 13
FIRST_NEW_LEADER_VERSION = 16
DEBUGGING_REPLICA = -2

EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors that Kafka does not count as failed reads."""


def handle(broker: Broker, request: Request[FetchRequest]) -> FetchResponse | None:
    """Read each partition; respond when there is enough data, an error, or a timeout."""
    body = request.body
    now_ms = broker.timer.now_ms()
    follows = _follower(body) >= 0
    fetching = broker.partitions.fetch_sessions.resolve(
        body,
        request.version,
        now_ms,
        broker.topic_name,
        privileged=follows,
        # How precisely we know when an idle follower was last caught up.
        look_ms=broker.options.replica_lag_time_max_ms // 4 if follows else LOOK_MS,
    )
    if fetching.error:
        return FetchResponse(error_code=fetching.error)
    if follows:
        request.count_as_other()
    fetch = _Fetch(broker, request, fetching)
    fetch.note_follower()
    if body.max_wait_ms <= 0 or (fetching.session is None and not fetching.named):
        return fetch.read()
    request.park(fetch)
    keys: list[Hashable]
    if fetching.incremental:
        keys = [fetching.session]  # which is notified of its partitions
    else:
        # Plain tuples equal TopicPartitions, and a fetch may name thousands of them.
        keys = [(item.topic, item.partition) for item in fetching.named]
    if not broker.partitions.fetch_purgatory.watch(fetch, keys, now_ms + body.max_wait_ms):
        broker.timer.set()
    return None


def refuse(request: FetchRequest, code: ErrorCode, message: str | None) -> FetchResponse:
    """Answer every partition, and from v7 the whole request, with one error."""
    return FetchResponse(
        error_code=code,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionData(
                        partition_index=wanted.partition, error_code=code, high_watermark=-1
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _follower(request: FetchRequest) -> int:
    """Return the id of the fetching broker, negative for a consumer."""
    state = request.replica_state
    return state.replica_id if state is not None else request.replica_id


class _Fetch(DelayedOperation):
    """One fetch, from its first look at the partitions to its response."""

    __slots__ = (
        "_broker",
        "_fetching",
        "_follower",
        "_isolation",
        "_max_bytes",
        "_min_bytes",
        "_rack",
        "_reads_followers",
        "_request",
        "_selects",
    )

    def __init__(self, broker: Broker, request: Request[FetchRequest], fetching: Fetching) -> None:
        super().__init__()
        self._broker = broker
        self._request = request
        self._fetching = fetching
        body = request.body
        self._isolation = body.isolation_level
        self._min_bytes = body.min_bytes
        self._max_bytes = min(body.max_bytes, broker.options.fetch_max_bytes)
        self._follower = _follower(body)
        self._reads_followers = self._follower < 0 and (
            request.version >= FIRST_FOLLOWER_READ_VERSION or self._follower == DEBUGGING_REPLICA
        )
        self._selects = broker.options.replica_selector_class == RACK_AWARE
        """Consumers may read from followers, which must learn of a higher watermark at once."""
        self._rack = body.rack_id if self._selects and self._follower < 0 else ""
        if request.metered and self._follower < 0:
            self._max_bytes = int(min(self._max_bytes, broker.quotas.fetch_bytes_max(request)))
            self._min_bytes = min(self._min_bytes, self._max_bytes)

    def note_follower(self) -> None:
        """Record a follower's position before it gets more: others may be waiting for that."""
        if self._follower < 0:
            return
        broker = self._broker
        state = self._request.body.replica_state
        epoch = state.replica_epoch if state is not None else NO_EPOCH
        for item in self._fetching.items:
            try:
                if self._denial(item.topic):
                    continue
                partition = self._partition(item)
                log = partition.log
                if not log.log_start_offset <= item.fetch_offset <= log.log_end_offset:
                    continue
                if item.last_fetched_epoch != NO_EPOCH and _divergence(partition, item) is not None:
                    continue  # what it has beyond is not ours
                rose = partition.follower_fetched(
                    self._follower, epoch, item.fetch_offset, item.log_start_offset
                )
            except RequestError:
                continue  # reading says so
            if rose:
                broker.partitions.watermark_rose(partition)
            broker.partitions.deletion_purgatory.check(partition.topic_partition)
            broker.isr_proposals.expand(partition, self._follower)

    def try_complete(self) -> bool:
        """Return whether a response would contain enough bytes, or an error."""
        gathered = 0
        min_bytes = self._min_bytes
        if min_bytes <= 0:
            return True
        partitions = self._broker.partitions
        by_id = self._request.version >= FIRST_ID_VERSION
        uncommitted = self._isolation == READ_UNCOMMITTED
        is_follower = self._follower >= 0
        broker_id = self._broker.broker_id
        reads_followers = self._reads_followers
        for item in self._fetching.items:
            partition = partitions.get((item.topic, item.partition))
            if partition is None:
                return True
            leader = partition.leader
            if leader != broker_id and (not reads_followers or leader == NO_LEADER):
                return True
            if by_id and partition.topic_id != item.topic_id:
                return True
            epoch = item.current_leader_epoch
            if epoch != NO_EPOCH and epoch != partition.leader_epoch:
                return True
            log = partition.log
            offset = item.fetch_offset
            if is_follower:
                end = log.log_end_offset
                if self._selects and self._watermark_is_news(partition):
                    return True
                if log.options.leader_replication_throttled_replicas and self._must_wait(partition):
                    continue
            else:
                end = log.high_watermark if uncommitted else log.last_stable_offset
            if offset < end:
                if offset < log.log_start_offset or item.last_fetched_epoch != NO_EPOCH:
                    return True  # an error, or a divergence that only reading can detect
                if min_bytes == 1:
                    return True
                try:
                    gathered += _readable_bytes(partition, offset, end, item.max_bytes)
                except (StorageError, CorruptRecordError):
                    return True  # reading says so, to this reader alone
                if gathered >= min_bytes:
                    return True
            elif offset > end and offset > log.log_end_offset:
                return True
            if self._rack and self._nearer(partition, offset) is not None:
                return True
        return False

    def _watermark_is_news(self, partition: Partition) -> bool:
        follower = self._follower_of(partition)
        return (
            follower is not None
            and follower.end_offset >= partition.log.high_watermark > follower.high_watermark_sent
        )

    def _must_wait(self, partition: Partition) -> bool:
        """Return whether the follower is throttled: the replication quota is used up.

        An in-sync follower is never throttled: it would fall out of the ISR.
        """
        broker = self._broker
        return (
            self._is_throttled(partition)
            and self._follower not in partition.maximal_isr
            and broker.replication_quotas.leader.is_exceeded(broker.timer.now_ms())
        )

    def _is_throttled(self, partition: Partition) -> bool:
        number = partition.topic_partition.partition
        return leads_throttled(partition.log.options, number, self._broker.broker_id)

    def _follower_of(self, partition: Partition) -> Follower | None:
        return next((f for f in partition.followers if f.broker_id == self._follower), None)

    def _nearer(self, partition: Partition, offset: int) -> int | None:
        """Return a replica in the consumer's rack that can serve it instead of this leader."""
        if not partition.is_leader:
            return None
        broker = self._broker
        return preferred_replica(
            partition, offset, self._rack, broker.broker_id, broker.cluster.brokers
        )

    def on_expire(self) -> None:
        """Count a fetch that did not get what it asked for."""
        self._broker.partitions.expirations.fetch(follows=self._follower >= 0)

    def on_complete(self) -> None:
        """Send what is available by now."""
        self._request.answer(self.read())

    def give_way(self) -> None:
        """Respond early to a follower that has sent another request: its partitions changed."""
        if self._follower >= 0:
            self.complete()

    def read(self) -> FetchResponse:
        """Read every partition within the limits of the request, and build the response."""
        version = self._request.version
        left = self._max_bytes
        results: list[tuple[FetchItem, PartitionData]] = []
        first = True
        topic, denial = None, ErrorCode.NONE
        for item in self._fetching.items:
            item.at_rest = False
            if item.topic != topic:  # partitions of one topic are adjacent
                topic = item.topic
                denial = self._denial(topic)
            try:
                if denial:
                    raise RequestError(denial)
                result = self._read_partition(item, left, first)
            except (RequestError, CorruptRecordError) as refusal:
                result = _failed(item, refusal.code)
                if not denial:
                    self._count_failure(item, refusal.code)
            except CorruptFileError as failure:
                logger.error(
                    "%s-%d: read failed: offset=%d: %s",
                    item.topic,
                    item.partition,
                    item.fetch_offset,
                    failure,
                )
                result = _failed(item, ErrorCode.UNKNOWN_SERVER_ERROR)
                self._count_failure(item, ErrorCode.UNKNOWN_SERVER_ERROR)
            except StorageError as failure:
                key = TopicPartition(item.topic, item.partition)
                self._broker.partitions.read_failed(key, failure)
                result = _failed(item, ErrorCode.KAFKA_STORAGE_ERROR)
            if result.records:
                first = False
                left -= len(result.records)
            results.append((item, result))
        response = FetchResponse(
            session_id=self._fetching.session_id,
            responses=_by_topic(self._fetching.select(results)),
        )
        if version >= FIRST_NEW_LEADER_VERSION:
            self._add_leader_hints(results, response)
        if isinstance(self._request, MeteredRequest):
            self._request.on_throttled = partial(self._withdraw, results, response)
        return response

    def _withdraw(
        self, results: list[tuple[FetchItem, PartitionData]], response: FetchResponse
    ) -> FetchResponse:
        """Take a response back that exceeds a quota; return one without topics."""
        release(ranges_in(response))
        for item, result in results:
            partition = self._broker.partitions.get((item.topic, item.partition))
            if result.records and partition is not None:
                self._broker.partitions.traffic.of(partition).bytes_out -= len(result.records)
        session_id = self._broker.partitions.fetch_sessions.withdraw(
            self._fetching, [item for item, _ in results]
        )
        return FetchResponse(session_id=session_id)

    def _add_leader_hints(
        self, results: list[tuple[FetchItem, PartitionData]], response: FetchResponse
    ) -> None:
        """Add the current leaders of partitions that this broker does not lead."""
        refused = [(item, result) for item, result in results if result.error_code in WRONG_LEADER]
        if not refused:
            return
        leaders: set[int] = set()
        for item, result in refused:
            leader = leader_of(self._broker, item.topic, item.partition)
            if leader is not None:
                result.current_leader = LeaderIdAndEpoch(
                    leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
                )
                leaders.add(leader.leader_id)
        response.node_endpoints = [
            NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
            for each in endpoints_of(self._broker, self._request.session, leaders)
        ]

    def _denial(self, topic: str) -> ErrorCode:
        """Return why a topic may not be read, NONE if it may."""
        broker, session = self._broker, self._request.session
        if not topic:
            by_id = self._request.version >= FIRST_ID_VERSION
            return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._follower >= 0:
            if not broker.allows_cluster(session, Operation.CLUSTER_ACTION):
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED  # as Kafka answers followers, too
        elif not broker.allows(session, Operation.READ, ResourceType.TOPIC, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return ErrorCode.NONE

    def _count_failure(self, item: FetchItem, code: ErrorCode) -> None:
        partitions = self._broker.partitions
        partition = partitions.get((item.topic, item.partition))
        if partition is not None and code not in EXPECTED:
            partitions.traffic.of(partition).failed_fetch += 1

    def _read_partition(self, item: FetchItem, left: int, at_least_one: bool) -> PartitionData:
        partition = self._partition(item)
        traffic = partition.traffic
        if traffic is None:
            traffic = self._broker.partitions.traffic.of(partition)
        traffic.fetch_requests += 1
        log = partition.log
        offset, log_start, log_end = item.fetch_offset, log.log_start_offset, log.log_end_offset
        if offset < log_start or offset > log_end:
            return _failed(item, ErrorCode.OFFSET_OUT_OF_RANGE)
        result = PartitionData()  # a keyword costs six times as much as setting the attribute
        result.partition_index = item.partition
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        result.log_start_offset = log_start
        result.aborted_transactions = [] if self._isolation == READ_COMMITTED else None
        result.records = b""
        if item.last_fetched_epoch != NO_EPOCH:
            diverging = _divergence(partition, item)
            if diverging is not None:
                result.diverging_epoch = diverging
                return result
        if self._rack:
            nearer = self._nearer(partition, offset)
            if nearer is not None:
                result.preferred_read_replica = nearer
                return result
        elif self._selects and self._follower >= 0:
            follower = self._follower_of(partition)
            if follower is not None:
                follower.high_watermark_sent = log.high_watermark
        if offset == log_end:
            item.at_rest = True
            return result  # the usual case of a consumer that has read everything
        follows = self._follower >= 0
        end = log_end if follows else partition.readable_end(self._isolation)
        item.at_rest = offset >= end
        limit = max(min(left, item.max_bytes), 0)
        if follows and self._must_wait(partition):
            return result
        if offset < end and (limit or at_least_one):
            self._read_records(partition, offset, end, limit, at_least_one, result)
            size = len(result.records)
            if not follows:
                traffic.bytes_out += size
            elif size:
                self._count_replicated(partition, size)
        return result

    def _count_replicated(self, partition: Partition, size: int) -> None:
        broker = self._broker
        broker.partitions.traffic.replicated_out(partition, size, self._follower)
        if self._is_throttled(partition):
            broker.replication_quotas.leader.record(size, broker.timer.now_ms())

    def _read_records(
        self,
        partition: Partition,
        offset: int,
        end: int,
        limit: int,
        at_least_one: bool,
        result: PartitionData,
    ) -> None:
        version = self._request.version
        log = partition.log
        if version < FIRST_ZSTD_VERSION and log.options.compression_type == "zstd":
            raise RequestError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if version < FIRST_UNCONVERTED_VERSION:
            # Before v3 every partition had its own limit: there each returns at least a batch.
            at_least_one = at_least_one or version < FIRST_BOUNDED_VERSION
            magic = 0 if version < FIRST_TIMED_VERSION else 1
            traffic = self._broker.partitions.traffic.of(partition)

            def count(records: int) -> None:
                traffic.fetch_conversions += records

            converted = read_converted(log, offset, end, limit, magic, at_least_one, count)
            result.records = cast(bytes, converted)
            return
        aborted: Sequence[Aborted] = ()
        committed = self._isolation == READ_COMMITTED
        if self._follower >= 0 or (self._follower == DEBUGGING_REPLICA and not committed):
            # Who debugs wants to see what a consumer skips: markers, and batches without records.
            piece = log.read(offset, limit, max_offset=end, at_least_one=at_least_one)
        else:
            piece, aborted = read_for_consumer(
                log, offset, limit, end, at_least_one=at_least_one, committed=committed
            )
        # The codec accepts anything with a length; the connection sends it from its file.
        as_it_is = cast(bytes, piece)
        try:
            if not piece.size or piece.first_batch_incomplete:  # a reader cannot use part of one
                return
            if aborted:
                result.aborted_transactions = [
                    AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                    for each in aborted
                ]
            if piece.size < self._broker.options.barnabas_sendfile_min_bytes:
                result.records = piece.read()
            else:
                result.records = as_it_is
        finally:
            if result.records is not as_it_is:
                piece.release()

    def _partition(self, item: FetchItem) -> Partition:
        broker = self._broker
        partition = broker.partitions.get((item.topic, item.partition))
        if partition is None:
            raise broker.absent(item.topic, item.partition)
        if self._request.version >= FIRST_ID_VERSION and partition.topic_id != item.topic_id:
            raise RequestError(
                ErrorCode.INCONSISTENT_TOPIC_ID
            )  # the name now belongs to another topic
        epoch = item.current_leader_epoch
        if partition.leader == broker.broker_id and (
            epoch == NO_EPOCH or epoch == partition.leader_epoch
        ):
            return partition
        if self._follower == DEBUGGING_REPLICA:
            partition.check_epoch(epoch)  # also while there is no leader
        elif self._reads_followers:
            partition.check_replica(epoch)
        else:
            partition.check_leader(epoch)
        return partition


def _by_topic(results: list[tuple[FetchItem, PartitionData]]) -> list[FetchableTopicResponse]:
    topics: dict[tuple[str, Uuid], list[PartitionData]] = {}
    last: FetchItem | None = None
    partitions: list[PartitionData] = []
    for item, result in results:
        if last is None or item.topic != last.topic or item.topic_id != last.topic_id:
            last = item
            partitions = topics.setdefault((item.topic, item.topic_id), [])
        partitions.append(result)
    return [
        FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in topics.items()
    ]


def _divergence(partition: Partition, item: FetchItem) -> EpochEndOffset | None:
    """Return where a reader's log diverges from ours, if its last epoch ends before its offset."""
    log = partition.log
    epoch, end_offset = log.leader_epochs.end_offset_of(item.last_fetched_epoch, log.log_end_offset)
    if epoch == NO_EPOCH or end_offset == NO_OFFSET:
        raise RequestError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < item.last_fetched_epoch or end_offset < item.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def _readable_bytes(partition: Partition, offset: int, end: int, max_bytes: int) -> int:
    """Count the bytes a read would return; it never goes beyond one segment."""
    log = partition.log
    piece = log.read(offset, max_bytes, max_offset=end)
    size = piece.size
    piece.release()
    return max_bytes if piece.segment_base_offset != log.segments[-1].base_offset else size


def _failed(item: FetchItem, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=item.partition, error_code=code, high_watermark=-1, records=b""
    )
