"""A task that another process runs for a mirror: copy some shards for a while.

A task is self-contained, so that any process that reaches both clusters can run it. It may be run
twice, even at the same time: the later run fences the earlier one, reads from the checkpoints what
that has committed, and continues from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.checkpoints import CheckpointError, read_checkpoints, transactional_id
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.clusters import SourceLogs, start_client
from barnabas.mirror.copier import PartitionCopier, now_ms
from barnabas.mirror.failures import TaskFailure
from barnabas.mirror.positions import MirrorPositions, Position
from barnabas.mirror.replication_policy import ReplicationFlow
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error


@dataclass(frozen=True, slots=True)
class PartitionCopy:
    """A source partition, the id of its topic, and the offset to copy it up to, at least."""

    partition: TopicPartition
    topic_id: str
    end: int


@dataclass(frozen=True, slots=True)
class CopyTask:
    """Copy shards from their checkpoints, on behalf of a session, for at most `time_ms`."""

    source: ClientOptions
    target: ClientOptions
    flow: ReplicationFlow
    session: int
    shards: Mapping[int, tuple[PartitionCopy, ...]]
    commit_interval_ms: float
    time_ms: float


@dataclass(slots=True)
class CopyResult:
    """What a task has copied, and how it failed."""

    records: int = 0
    skipped: int = 0
    transactions: int = 0
    read: dict[TopicPartition, int] = field(default_factory=dict)
    """The offsets that partitions were read up to, offsets without records included."""
    committed: dict[TopicPartition, Position] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    failures: list[TaskFailure] = field(default_factory=list)

    def add(self, records: int, skipped: int) -> None:
        """Count a transaction."""
        self.records += records
        self.skipped += skipped
        self.transactions += 1


def run_task(task: CopyTask) -> CopyResult:
    """Run a task on an event loop of its own."""
    return asyncio.run(copy_shards(task))


async def copy_shards(task: CopyTask) -> CopyResult:
    """Copy the shards of a task concurrently; failures of the clusters are part of the result."""
    result = CopyResult()
    try:
        async with (
            AIOKafkaAdminClient(**task.source.admin) as source,
            AIOKafkaAdminClient(**task.target.admin) as target,
        ):
            endings = await asyncio.gather(
                *(
                    _copy_shard(task, shard, source.client, target.client, result)
                    for shard in task.shards
                ),
                return_exceptions=True,
            )
        for each in endings:
            if each is not None:
                raise each
    except BarnabasError as failure:
        result.failures.append(TaskFailure.of(failure))
    return result


async def _copy_shard(
    task: CopyTask, shard: int, source: ClusterClient, target: ClusterClient, result: CopyResult
) -> None:
    flow, copies = task.flow, task.shards[shard]
    async with AsyncExitStack() as stack:
        name = transactional_id(flow.positions_topic, shard)
        # Once it has started, no earlier run of the shard can commit.
        producer = await start_client(stack, AIOKafkaProducer(**task.target.producer(name)))
        checkpoints = await read_checkpoints(target, flow, [each.partition for each in copies])
        if checkpoints.session != task.session:
            raise request_error(
                ErrorCode.PRODUCER_FENCED,
                f"the mirror is owned by session {checkpoints.session}, not {task.session}",
            )
        starts = _starts(copies, checkpoints.positions)
        result.read.update(starts)
        left = {each.partition: each for each in copies if starts[each.partition] < each.end}
        if not left:
            return
        positions = MirrorPositions()
        consumer = await start_client(stack, AIOKafkaConsumer(**task.source.consumer))
        copier = PartitionCopier(
            flow,
            SourceLogs(source, task.source),
            consumer,
            producer,
            positions,
            commit_interval_ms=task.commit_interval_ms,
            checkpointed=True,
            on_commit=result.add,
            notify=result.messages.append,
        )
        await copier.assign(
            {each: left[each].topic_id for each in left}, {each: starts[each] for each in left}
        )
        end_ms = now_ms() + task.time_ms  # connecting does not count
        while not await _is_done(copier, left.values()):
            await copier.step()
            if now_ms() >= end_ms:
                break
        result.committed.update(positions.known)
        for each in left:
            result.read[each] = await copier.position(each)


def _starts(
    copies: tuple[PartitionCopy, ...], checkpoints: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, int]:
    starts = {}
    for each in copies:
        checkpoint = checkpoints.get(each.partition)
        if checkpoint is None or checkpoint.topic_id != each.topic_id:
            raise CheckpointError(
                f"{each.partition} has no checkpoint for topic id {each.topic_id}"
            )
        starts[each.partition] = checkpoint.next_offset
    return starts


async def _is_done(copier: PartitionCopier, copies: Iterable[PartitionCopy]) -> bool:
    for each in copies:
        if await copier.position(each.partition) < each.end:
            return False
    return True
