"""DescribeLogDirs: how large each replica is, directory by directory."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import StorageError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

logger = logging.getLogger("barnabas.logs")


def handle(broker: Broker, request: Request[DescribeLogDirsRequest]) -> DescribeLogDirsResponse:
    """Describe every directory; null topics ask for all replicas."""
    broker.check_cluster(request.session, Operation.DESCRIBE)
    wanted: set[tuple[str, int]] | None = None
    if request.body.topics is not None:
        wanted = {(topic.topic, p) for topic in request.body.topics for p in topic.partitions}
    return DescribeLogDirsResponse(
        results=[
            *(_directory(broker, path, wanted) for path in broker.logs.paths),
            *(
                DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
                for path in broker.logs.offline
            ),
        ]
    )


def refuse(
    request: DescribeLogDirsRequest, code: ErrorCode, message: str | None
) -> DescribeLogDirsResponse:
    """Answer with an error; before v3 only an empty list can express it."""
    return DescribeLogDirsResponse(error_code=code)


def _directory(
    broker: Broker, path: str, wanted: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    try:
        total_bytes, usable_bytes = broker.logs.space(path)
    except StorageError as failure:
        logger.error("log directory %s: could not be described: %s", path, failure)
        return DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for key, partition in broker.partitions.items():
        if wanted is not None and key not in wanted:
            continue
        if broker.logs.path_of(partition.topic_partition) != path:
            continue
        log = partition.log
        topics[key[0]].append(
            DescribeLogDirsPartition(
                partition_index=key[1],
                partition_size=log.size_bytes,
                offset_lag=max(0, log.high_watermark - log.log_end_offset),
            )
        )
    for key, move in broker.relocations.in_progress.items():
        if move.target_path == path and (wanted is None or key in wanted):
            topics[key.topic].append(
                DescribeLogDirsPartition(
                    partition_index=key.partition,
                    partition_size=move.size_bytes,
                    offset_lag=move.lag,
                    is_future_key=True,
                )
            )
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=name, partitions=topics[name]) for name in topics],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
