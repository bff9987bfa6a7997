"""WriteTxnMarkers: end transactions on partitions led here, as their coordinator decided."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.coordinators.marker_writer import Ending
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[WriteTxnMarkersRequest]
) -> WriteTxnMarkersResponse | None:
    """Write every marker; respond when the last one is durable."""
    session = request.session
    if not broker.sees(session, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        broker.check_cluster_action(session)
    if not request.body.markers:
        return WriteTxnMarkersResponse()
    results: dict[int, WritableTxnMarkerResult] = {}

    def written(
        position: int, marker: WritableTxnMarker, errors: dict[TopicPartition, ErrorCode]
    ) -> None:
        results[position] = _result(marker, errors)
        if len(results) == len(request.body.markers):
            ordered = [results[number] for number in sorted(results)]
            request.answer(WriteTxnMarkersResponse(markers=ordered))

    for position, marker in enumerate(request.body.markers):
        ending = Ending(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
        )
        broker.marker_writer.write(ending, _partitions(marker), partial(written, position, marker))
    return None


def refuse(
    request: WriteTxnMarkersRequest, code: ErrorCode, message: str | None
) -> WriteTxnMarkersResponse:
    """Answer every partition with one error."""
    return WriteTxnMarkersResponse(
        markers=[
            _result(marker, dict.fromkeys(_partitions(marker), code)) for marker in request.markers
        ]
    )


def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, number)
        for topic in marker.topics
        for number in topic.partition_indexes
    ]


def _result(
    marker: WritableTxnMarker, errors: dict[TopicPartition, ErrorCode]
) -> WritableTxnMarkerResult:
    topics: dict[str, list[WritableTxnMarkerPartitionResult]] = defaultdict(list)
    for key, code in errors.items():
        topics[key.topic].append(
            WritableTxnMarkerPartitionResult(partition_index=key.partition, error_code=code)
        )
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(name=name, partitions=topics[name]) for name in topics
        ],
    )
