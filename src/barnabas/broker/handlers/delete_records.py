"""DeleteRecords: move a partition's log start forward; -1 stands for the high watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request

HIGH_WATERMARK = -1


def handle(broker: Broker, request: Request[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """Delete up to the given offsets."""
    response = DeleteRecordsResponse()
    for topic in request.body.topics:
        results = []
        for wanted in topic.partitions:
            result = DeleteRecordsPartitionResult(
                partition_index=wanted.partition_index, low_watermark=-1
            )
            try:
                result.low_watermark = _delete(
                    broker, request, topic.name, wanted.partition_index, wanted.offset
                )
            except RequestError as refusal:
                result.error_code = refusal.code
            except StorageError as failure:
                broker.storage_failed_reading(topic.name, wanted.partition_index, failure)
                result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            results.append(result)
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return response


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


def _delete(
    broker: Broker, request: Request[DeleteRecordsRequest], topic: str, index: int, offset: int
) -> int:
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
    return log.log_start_offset
