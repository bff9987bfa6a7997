"""Progress of a reassignment: current replicas, and bytes copied so far."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.log_dirs import describe_log_dirs_of
from barnabas.admin.moves.plan import Holding
from barnabas.admin.reassignments import Reassignment, list_partition_reassignments
from barnabas.admin.topics import describe_topics
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

LOOKS_AGAIN = 5
PAUSE_S = 0.1

Sizes = Mapping[tuple[TopicPartition, int], int]
"""Size of a partition's replica on a broker, in bytes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one partition."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    is_moving: bool
    copied_bytes: int = 0
    total_bytes: int = 0
    adding: tuple[int, ...] = ()
    """Brokers that get a replica."""

    @property
    def is_done(self) -> bool:
        """Return whether the partition has its target replicas."""
        return not self.is_moving and self.replicas == self.target

    @property
    def may_be_late(self) -> bool:
        """Return whether it may just have ended: brokers learn of it at different times."""
        return not self.is_moving and not self.is_done and set(self.target) <= set(self.replicas)

    @property
    def state(self) -> str:
        """Return the state in one word."""
        return "done" if self.is_done else "moving" if self.is_moving else "elsewhere"

    @property
    def share_text(self) -> str | None:
        """Return the percentage copied, or None if the partition is not being reassigned."""
        if not self.is_moving:
            return None
        return f"{100 * self.copied_bytes // self.total_bytes}%" if self.total_bytes else "0%"


async def holdings(client: ClusterClient, topics: Iterable[str]) -> dict[TopicPartition, Holding]:
    """Return the current state of all partitions of topics; raise if a topic does not exist."""
    found: dict[TopicPartition, tuple[tuple[int, ...], int]] = {}
    for topic in await describe_topics(client, sorted(set(topics)), to=CONTROLLER):
        if topic.error is not ErrorCode.NONE:
            raise RequestError(topic.error, f"topic {topic.name!r}: {topic.error.meaning}")
        for index, view in topic.partitions.items():
            found[TopicPartition(topic.name, index)] = (view.replicas, view.leader_id)
    sizes = await _sizes(client, found)
    return {
        key: Holding(replicas, leader, sizes.get((key, leader)))
        for key, (replicas, leader) in found.items()
    }


async def look(
    client: ClusterClient, plan: Mapping[TopicPartition, tuple[int, ...]]
) -> list[Progress]:
    """Return the progress of each partition of a plan; look again if it may be out of date."""
    progress = await _look_once(client, plan)
    for _ in range(LOOKS_AGAIN):
        if not any(each.may_be_late for each in progress):
            break
        await asyncio.sleep(PAUSE_S)
        progress = await _look_once(client, plan)
    return progress


async def _look_once(
    client: ClusterClient, plan: Mapping[TopicPartition, tuple[int, ...]]
) -> list[Progress]:
    # Reassignments first: those that end before the replicas are read then show as done.
    moving = await list_partition_reassignments(client, plan)
    held = await holdings(client, {key.topic for key in plan})
    for key in plan:
        if key not in held:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {key} does not exist"
            )
    sizes = await _sizes(client, moving) if moving else {}
    return [
        _of_moving(key, moving[key], held[key].size_bytes or 0, sizes)
        if key in moving
        else Progress(key, held[key].replicas, plan[key], is_moving=False)
        for key in sorted(plan)
    ]


async def in_progress(client: ClusterClient) -> list[Progress]:
    """Return the progress of every partition that is being reassigned."""
    moving = await list_partition_reassignments(client)
    if not moving:
        return []
    held = await holdings(client, {key.topic for key in moving})
    sizes = await _sizes(client, moving)
    return [
        _of_moving(key, moving[key], held[key].size_bytes or 0, sizes)
        for key in sorted(moving)
        if key in held
    ]


def _of_moving(key: TopicPartition, moving: Reassignment, whole: int, sizes: Sizes) -> Progress:
    copies = [min(sizes.get((key, broker), 0), whole) for broker in moving.adding]
    target = tuple(each for each in moving.replicas if each not in moving.removing)
    total = whole * len(copies)
    return Progress(key, moving.replicas, target, True, sum(copies), total, moving.adding)


async def _sizes(client: ClusterClient, partitions: Iterable[TopicPartition]) -> Sizes:
    """Return the sizes on each broker; brokers that cannot be asked are skipped."""
    sizes: dict[tuple[TopicPartition, int], int] = {}
    for broker, directories in (await describe_log_dirs_of(client, None, partitions)).items():
        if isinstance(directories, RequestError):
            continue
        for directory in directories:
            for replica in directory.replicas:
                if not replica.is_future:
                    sizes[replica.partition, broker] = replica.size_bytes
    return sizes
