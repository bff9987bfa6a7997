"""ListOffsets: the earliest, the latest, or the first offset at or after a time.

v0 returns the base offsets of segments, newest first, as the oldest clients expect. v2 added
isolation levels, v4 leader epochs, v5 an error for a leader that has not caught up yet. Special
timestamps: -1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest on local
disk, -5 latest moved to remote storage. A replica id of -2 is a debugging consumer, which any
replica serves, up to its log end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import EARLIEST, LATEST, NO_EPOCH, TopicPartition
from barnabas.replication.partition import Partition
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -3, -4, -5
FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
FIRST_EPOCH_VERSION = 4
FIRST_NOT_AVAILABLE_VERSION = 5
DEBUGGING_REPLICA = -2
CONSUMER = -1


def handle(broker: Broker, request: Request[ListOffsetsRequest]) -> ListOffsetsResponse:
    """Look up each partition."""
    response = ListOffsetsResponse()
    seen: set[tuple[str, int]] = set()
    for topic in request.body.topics:
        results = []
        if not broker.allows(request.session, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            results = [_failed(wanted, denied) for wanted in topic.partitions]
            response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=results))
            continue
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            try:
                if key in seen:
                    raise RequestError(ErrorCode.INVALID_REQUEST)
                seen.add(key)
                results.append(_look_up(broker, request, topic.name, wanted))
            except (RequestError, CorruptRecordError) as refusal:
                results.append(_failed(wanted, refusal.code))
            except StorageError as failure:
                broker.partitions.read_failed(TopicPartition(*key), failure)
                results.append(_failed(wanted, ErrorCode.KAFKA_STORAGE_ERROR))
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=results))
    return response


def refuse(
    request: ListOffsetsRequest, code: ErrorCode, message: str | None
) -> ListOffsetsResponse:
    """Answer every partition with one error."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_failed(each, code) for each in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _look_up(
    broker: Broker, request: Request[ListOffsetsRequest], topic: str, wanted: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    partition = broker.partitions.get((topic, wanted.partition_index))
    if partition is None:
        raise broker.absent(topic, wanted.partition_index)
    if request.body.replica_id != DEBUGGING_REPLICA:
        partition.check_leader(wanted.current_leader_epoch)
    if request.version == 0:
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            old_style_offsets=_segment_bases(partition, wanted, broker.now_ms()),
        )
    if request.version < FIRST_VERSION_OF.get(wanted.timestamp, 0):
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION)
    timestamp, offset = _offset_at(partition, request, wanted.timestamp)
    epoch = NO_EPOCH
    if request.version >= FIRST_EPOCH_VERSION and offset >= 0:
        latest = wanted.timestamp == LATEST
        epochs = partition.log.leader_epochs
        epoch = partition.leader_epoch if latest else epochs.epoch_of(offset)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def _offset_at(
    partition: Partition, request: Request[ListOffsetsRequest], timestamp: int
) -> tuple[int, int]:
    log = partition.log
    end = log.log_end_offset
    if request.body.replica_id == CONSUMER:
        end = partition.readable_end(request.body.isolation_level)
        if timestamp not in (EARLIEST, EARLIEST_LOCAL) and not partition.knows_its_end:
            raise RequestError(
                ErrorCode.OFFSET_NOT_AVAILABLE
                if request.version >= FIRST_NOT_AVAILABLE_VERSION
                else ErrorCode.LEADER_NOT_AVAILABLE
            )
    if timestamp == LATEST:
        return -1, end
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset
    if timestamp == LATEST_TIERED:
        return -1, -1  # nothing is ever moved to remote storage
    if timestamp == MAX_TIMESTAMP:
        found = log.find_max_timestamp()
    elif timestamp < 0:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"timestamp {timestamp} is not a known special value"
        )
    else:
        found = log.find_timestamp(timestamp)
    if found is None or found.offset >= end:
        return -1, -1
    return found.timestamp, found.offset


def _segment_bases(partition: Partition, wanted: ListOffsetsPartition, now_ms: int) -> list[int]:
    """Return base offsets of segments, newest first, none above what consumers may read."""
    if wanted.max_num_offsets < 1:
        raise RequestError(ErrorCode.INVALID_REQUEST)
    log = partition.log
    bases = log.legacy_segment_offsets(wanted.timestamp, wanted.max_num_offsets, now_ms)
    if not any(base > log.high_watermark for base in bases):
        return bases
    return [log.high_watermark, *(base for base in bases if base < log.high_watermark)]


def _failed(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)
