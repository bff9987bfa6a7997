"""DeleteRecords: move a partition's log start forward; -1 stands for the high watermark.

Followers delete what their leader has deleted. The response waits until every live replica has done
so, and contains the low watermark: the offset below which none of them keeps records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.replication.partition import Partition
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.timing.purgatory import DelayedOperation
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

HIGH_WATERMARK = -1
LIVE_BROKERS = "live brokers"
"""The key that is checked when a broker joins or leaves: dead brokers are not waited for."""

Waiting = tuple[Partition, int, DeleteRecordsPartitionResult]
"""A partition, the offset that its low watermark must reach, and its result."""


def handle(broker: Broker, request: Request[DeleteRecordsRequest]) -> DeleteRecordsResponse | None:
    """Delete up to the given offsets; respond now, or when all live replicas have."""
    response = DeleteRecordsResponse()
    waiting: list[Waiting] = []
    for topic in request.body.topics:
        results = []
        for wanted in topic.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=wanted.partition_index, low_watermark=-1
            )
            try:
                partition, target = _delete(
                    broker, request, topic.name, wanted.partition_index, wanted.offset
                )
            except RequestError as refusal:
                result.error_code = refusal.code
            except StorageError as failure:
                key = TopicPartition(topic.name, wanted.partition_index)
                broker.partitions.read_failed(key, failure)
                result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                waiting.append((partition, target, result))
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    operation = DelayedDeletion(request, response, waiting)
    if operation.try_complete():
        return response
    request.park(operation)
    keys = [partition.topic_partition for partition, _, _ in waiting]
    deadline_ms = broker.timer.now_ms() + max(request.body.timeout_ms, 0)
    broker.partitions.deletion_purgatory.watch(operation, [*keys, LIVE_BROKERS], deadline_ms)
    broker.timer.set()
    return None


def refuse(
    request: DeleteRecordsRequest, code: ErrorCode, message: str | None
) -> DeleteRecordsResponse:
    """Answer every partition with one error."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=each.partition_index, low_watermark=-1, error_code=code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


class DelayedDeletion(DelayedOperation):
    """A response that waits until every live replica has deleted the records."""

    __slots__ = ("_request", "_response", "_waiting")

    def __init__(
        self,
        request: Request[DeleteRecordsRequest],
        response: DeleteRecordsResponse,
        waiting: list[Waiting],
    ) -> None:
        super().__init__()
        self._request = request
        self._response = response
        self._waiting = waiting

    def try_complete(self) -> bool:
        """Respond once every partition is done or led by another broker."""
        still: list[Waiting] = []
        for partition, target, result in self._waiting:
            if not partition.is_leader:
                result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            low_watermark = partition.low_watermark
            if low_watermark >= target:
                result.low_watermark = low_watermark
            else:
                still.append((partition, target, result))
        self._waiting = still
        return not still

    def on_expire(self) -> None:
        """Report that not every replica is known to have deleted the records."""
        for _, _, result in self._waiting:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT

    def on_complete(self) -> None:
        """Send the response."""
        self._request.answer(self._response)


def _delete(
    broker: Broker, request: Request[DeleteRecordsRequest], topic: str, index: int, offset: int
) -> tuple[Partition, int]:
    """Delete in the leader's log; return the partition and its new log start offset."""
    if not broker.allows(request.session, Operation.DELETE, ResourceType.TOPIC, topic):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = broker.partitions.get((topic, index))
    if partition is None:
        raise broker.absent(topic, index)
    partition.check_leader()
    log = partition.log
    if "delete" not in log.options.cleanup_policy:
        raise RequestError(ErrorCode.POLICY_VIOLATION)
    target = log.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= target <= log.high_watermark:
        raise RequestError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.delete_records_before(target)
    broker.partitions.wake_readers(partition.topic_partition)
    return partition, target
