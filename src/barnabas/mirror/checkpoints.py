"""Shards of a mirror, and the checkpoints that keep their writers apart.

Engines that copy in other processes divide a mirror's partitions among shards. Each shard has a
transactional id of its own. A partition belongs to the same shard forever, whichever process copies
it: a process that initializes the shard's transactional id fences every other writer of its
partitions. The number of shards is therefore fixed.

A checkpoint is read before a shard is copied, and written in the transaction that copies it.
Checkpoints are offsets of a group on the target (`ReplicationFlow.group`), as only these can be
part of a transaction and still be read, partition by partition, while other transactions are open:

    positions topic, 0      offset: the number of the session that owns the mirror
    target partition        offset: the source's offset to read next; metadata: the topic's id

A session takes the mirror over in this order: it fences the session before it (both use the
mirror's own transactional id), writes its own number, fences every shard, and then reads the
positions. A task first fences the shard, then reads the checkpoints. So a task of an earlier
session has either committed before it was fenced, and the positions include it, or it reads a
number that is not its own and writes nothing. Brokers expire offsets of groups, so the positions
topic is the authority: checkpoints that are gone are written again from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heapreplace
from zlib import crc32

from barnabas.admin.group_offsets import CommittedOffset, commit_offsets, list_group_offsets
from barnabas.admin.producers import fence_producers
from barnabas.admin.settling import settled_or_raise
from barnabas.aio import AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.positions import Position
from barnabas.mirror.replication_policy import ReplicationFlow
from barnabas.model.errors import RequestError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

SHARDS = 32
"""At most this many processes can share the work."""


def shard_of(partition: TopicPartition) -> int:
    """Return the shard of a source partition."""
    return (crc32(partition.topic.encode()) + partition.partition) % SHARDS


def transactional_id(positions_topic: str, shard: int) -> str:
    """Return a shard's transactional id."""
    return f"{positions_topic}.{shard}"


def divide_shards(backlog: Mapping[TopicPartition, int], tasks: int) -> list[list[int]]:
    """Return the shards of each of at most `tasks` tasks, with about equal work."""
    loads: dict[int, int] = {}
    for partition, count in backlog.items():
        shard = shard_of(partition)
        loads[shard] = loads.get(shard, 0) + count
    shares: list[list[int]] = [[] for _ in range(min(tasks, len(loads)))]
    heap = [(0, number) for number in range(len(shares))]
    for shard in sorted(loads, key=lambda each: (-loads[each], each)):
        load, number = heap[0]
        shares[number].append(shard)
        heapreplace(heap, (load + loads[shard], number))
    return shares


class CheckpointError(RetriableError):
    """A checkpoint cannot be written, or is gone; the next session writes them all."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The number of the session that owns the mirror (None: there was none), and positions."""

    session: int | None
    positions: Mapping[TopicPartition, Position]


def as_group_offsets(
    flow: ReplicationFlow, positions: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return positions as the group offsets that checkpoint them."""
    return {
        flow.target_of(each): OffsetAndMetadata(at.next_offset, at.topic_id, -1)
        for each, at in positions.items()
    }


async def read_checkpoints(
    target: ClusterClient, flow: ReplicationFlow, partitions: Iterable[TopicPartition]
) -> Checkpoints:
    """Read the checkpoints of source partitions, after waiting for transactions that are ending."""
    owner = TopicPartition(flow.positions_topic, 0)
    wanted = [owner, *(flow.target_of(each) for each in partitions)]
    answer = await list_group_offsets(target, {flow.group: wanted}, require_stable=True)
    committed: dict[TopicPartition, CommittedOffset] = settled_or_raise(
        settled_or_raise(answer)[flow.group]
    )
    found = {each: offset for each, offset in committed.items() if offset.offset >= 0}
    session = found.pop(owner, None)
    positions = {
        source: Position(offset.offset, offset.metadata)
        for each, offset in found.items()
        if (source := flow.source_of(each)) is not None
    }
    return Checkpoints(None if session is None else session.offset, positions)


async def write_checkpoints(
    target: ClusterClient, flow: ReplicationFlow, positions: Mapping[TopicPartition, Position]
) -> None:
    """Write checkpoints while no task is running."""
    if not positions:
        return
    answers = await commit_offsets(target, flow.group, as_group_offsets(flow, positions))
    for partition, failure in answers.items():
        if failure is not None:
            raise CheckpointError(
                f"the checkpoint of {partition} in group {flow.group} could not be written: "
                f"{failure}"
            ) from failure


async def take_over(
    target: ClusterClient, flow: ReplicationFlow, producer: AIOKafkaProducer, *, shared: bool
) -> int:
    """Fence the shards of earlier sessions; return the number of the session that starts.

    `producer` has the mirror's own transactional id, and has fenced earlier sessions. If shards
    were never used, and are not going to be (`shared`), nothing is written.
    """
    before = (await read_checkpoints(target, flow, ())).session
    if before is None and not shared:
        return 0
    session = 1 if before is None else before + 1
    await write_session(flow, producer, session)
    shards = [transactional_id(flow.positions_topic, shard) for shard in range(SHARDS)]
    for outcome in (await fence_producers(target, shards)).values():
        if isinstance(outcome, RequestError):
            raise outcome
    return session


async def write_session(flow: ReplicationFlow, producer: AIOKafkaProducer, session: int) -> None:
    """Write which session owns the mirror; only the mirror's own producer can."""
    await producer.begin_transaction()
    owner = {TopicPartition(flow.positions_topic, 0): OffsetAndMetadata(session, "", -1)}
    await producer.send_offsets_to_transaction(owner, flow.group)
    await producer.commit_transaction()
