"""Log directories that a plan asks for: requested on each broker, and watched until done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.admin.log_dirs import alter_replica_log_dirs, describe_log_dirs_of
from barnabas.cli.reassign.file import Target
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.structs import TopicPartitionReplica

PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class DirectoryMove:
    """One replica that moves to another directory of its broker."""

    replica: TopicPartitionReplica
    present: str | None
    wanted: str
    is_moving: bool

    @property
    def is_done(self) -> bool:
        """Return whether the replica is in the wanted directory."""
        return not self.is_moving and self.present == self.wanted

    @property
    def state(self) -> str:
        """Return the state in one word."""
        return "done" if self.is_done else "moving" if self.is_moving else "elsewhere"


def wanted_directories(plan: Mapping[TopicPartition, Target]) -> dict[TopicPartitionReplica, str]:
    """Return the replicas for which a plan names a directory."""
    return {
        TopicPartitionReplica(key.topic, key.partition, broker): directory.rstrip("/")
        for key, target in plan.items()
        for broker in target.replicas
        if (directory := target.directory_on(broker)) is not None
    }


async def choose_directories(
    client: ClusterClient, wanted: Mapping[TopicPartitionReplica, str], timeout_s: float
) -> dict[TopicPartitionReplica, RequestError]:
    """Request directories; return failures. Retry replicas that do not exist yet."""
    open_ = dict(wanted)
    failures: dict[TopicPartitionReplica, RequestError] = {}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while open_:
        for replica, failure in (await alter_replica_log_dirs(client, open_)).items():
            awaited = failure is not None and failure.code is ErrorCode.REPLICA_NOT_AVAILABLE
            if awaited and loop.time() < deadline:
                continue
            del open_[replica]
            if failure is not None:
                failures[replica] = failure
        if open_:
            await asyncio.sleep(PAUSE_S)
    return failures


async def look_at_directories(
    client: ClusterClient, wanted: Mapping[TopicPartitionReplica, str]
) -> list[DirectoryMove]:
    """Return where each replica is, and whether it is moving."""
    if not wanted:
        return []
    partitions = {TopicPartition(each.topic, each.partition) for each in wanted}
    brokers = {each.broker_id for each in wanted}
    present: dict[TopicPartitionReplica, str] = {}
    moving: set[TopicPartitionReplica] = set()
    for broker, directories in (await describe_log_dirs_of(client, brokers, partitions)).items():
        if isinstance(directories, RequestError):
            raise directories
        for directory in directories:
            for held in directory.replicas:
                replica = TopicPartitionReplica(*held.partition, broker)
                if held.is_future:
                    moving.add(replica)
                else:
                    present[replica] = directory.path.rstrip("/")
    return [
        DirectoryMove(replica, present.get(replica), wanted[replica], replica in moving)
        for replica in sorted(wanted)
    ]
