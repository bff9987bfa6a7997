"""AlterReplicaLogDirs: move replicas between the log directories of this broker.

The response says that a move has started, not that it is done: DescribeLogDirs shows the copy as a
future replica, with its lag, until it replaces the original. Asking for the directory where a
replica already is cancels a pending move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(
    broker: Broker, request: Request[AlterReplicaLogDirsRequest]
) -> AlterReplicaLogDirsResponse:
    """Start each move, or return why not."""
    if not broker.allows_cluster(request.session, Operation.ALTER):
        return refuse(request.body, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.body.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = ErrorCode.NONE
                try:
                    _begin(broker, directory.path.rstrip("/"), topic.name, index)
                except RequestError as refusal:
                    code = refusal.code
                except StorageError as failure:
                    broker.log_failures.of_directory(directory.path.rstrip("/"), failure)
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                results.setdefault(topic.name, []).append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return _response(results)


def refuse(
    request: AlterReplicaLogDirsRequest, code: ErrorCode, message: str | None
) -> AlterReplicaLogDirsResponse:
    """Answer every partition with one error."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                for index in topic.partitions
            )
    return _response(results)


def _response(
    results: dict[str, list[AlterReplicaLogDirPartitionResult]],
) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _begin(broker: Broker, path: str, topic: str, index: int) -> None:
    if path in broker.logs.offline:
        raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR)
    if path not in broker.logs.paths:
        raise RequestError(ErrorCode.LOG_DIR_NOT_FOUND)
    partition = broker.partitions.get((topic, index))
    if partition is None:
        absent = broker.absent(topic, index)
        if absent.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise RequestError(ErrorCode.REPLICA_NOT_AVAILABLE)
        raise absent
    broker.relocations.begin(partition, path)
