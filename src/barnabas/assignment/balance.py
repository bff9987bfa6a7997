"""Balanced and sticky: the computation behind the sticky and the uniform assignors.

Given who owns what, find an assignment in which no partition could move to a member that has two
fewer, and which moves as little as it can for that.

When all members subscribe to the same topics this is arithmetic: each member has a quota, keeps
that much of what it owned, and the rest fills the gaps. Then nothing ever moves between two members
that stay. Otherwise partitions without an owner go to the least loaded subscriber, followed by
moves until none improves the balance: each move lowers the sum of the squared loads, so this
terminates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from barnabas.assignment.contract import Assignment, Member, PartitionCounts, subscribers
from barnabas.model.ids import TopicPartition


def balance(
    partition_counts: PartitionCounts,
    members: Sequence[Member],
    owned: Mapping[str, Sequence[TopicPartition]],
) -> Assignment:
    """Assign every partition; `owned` names each partition once at most, in order of members."""
    topics = subscribers(partition_counts, members)
    kept: list[list[TopicPartition]] = []
    taken: set[TopicPartition] = set()
    for member in members:
        subscribed = set(member.topics)
        mine = [
            partition
            for partition in owned.get(member.member_id, ())
            if partition.topic in subscribed
            and 0 <= partition.partition < partition_counts.get(partition.topic, 0)
        ]
        taken.update(mine)
        kept.append(mine)
    free = [
        partition
        for topic in topics
        for partition in (TopicPartition(topic, n) for n in range(partition_counts[topic]))
        if partition not in taken
    ]
    if all(len(positions) == len(members) for positions in topics.values()):
        _fill_quotas(kept, free)
    else:
        before = [frozenset(mine) for mine in kept]
        _fill_gaps(kept, free, topics)
        _level(kept, before, topics)
    return {member.member_id: sorted(mine) for member, mine in zip(members, kept, strict=True)}


def _fill_quotas(kept: list[list[TopicPartition]], free: list[TopicPartition]) -> None:
    """Trim each member to its quota and deal the rest, if all members subscribe to everything."""
    if not kept:
        return
    total = len(free) + sum(map(len, kept))
    share, larger = divmod(total, len(kept))
    # Members with more than the quota keep one above it, while there are such slots.
    quotas = [share] * len(kept)
    for position, mine in enumerate(kept):
        if len(mine) > share and larger:
            quotas[position] += 1
            larger -= 1
    for position in range(len(kept)):
        if larger and quotas[position] == share:
            quotas[position] += 1
            larger -= 1
    for position, mine in enumerate(kept):
        free += mine[quotas[position] :]
        del mine[quotas[position] :]
    # Dealt round by round, so that the partitions of one topic spread.
    free.sort(reverse=True)
    hungry = [position for position, mine in enumerate(kept) if len(mine) < quotas[position]]
    while hungry:
        for position in hungry:
            kept[position].append(free.pop())
        hungry = [position for position in hungry if len(kept[position]) < quotas[position]]


def _fill_gaps(
    kept: list[list[TopicPartition]],
    free: list[TopicPartition],
    topics: Mapping[str, Sequence[int]],
) -> None:
    """Give partitions without an owner to the least loaded, topics with fewest readers first."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for partition in free:
        by_topic.setdefault(partition.topic, []).append(partition)
    for topic in sorted(by_topic, key=lambda name: (len(topics[name]), name)):
        loads = [(len(kept[position]), position) for position in topics[topic]]
        heapify(loads)
        for partition in by_topic[topic]:
            load, position = heappop(loads)
            kept[position].append(partition)
            heappush(loads, (load + 1, position))


def _level(
    kept: list[list[TopicPartition]],
    before: Sequence[frozenset[TopicPartition]],
    topics: Mapping[str, Sequence[int]],
) -> None:
    """Move partitions from loaded members to others with two fewer, until there are none."""
    moved = True
    while moved:
        moved = False
        for position in sorted(range(len(kept)), key=lambda at: -len(kept[at])):
            while _give_one(position, kept, before, topics):
                moved = True


def _give_one(
    position: int,
    kept: list[list[TopicPartition]],
    before: Sequence[frozenset[TopicPartition]],
    topics: Mapping[str, Sequence[int]],
) -> bool:
    """Move one partition to a less loaded member, preferably one that was not owned before."""
    mine = kept[position]
    best: tuple[int, bool, int, TopicPartition] | None = None
    # One candidate per topic is enough: its partitions differ only in their previous owner.
    candidates: dict[str, TopicPartition] = {}
    for partition in mine:
        if partition.topic not in candidates or partition not in before[position]:
            candidates[partition.topic] = partition
    for topic, partition in candidates.items():
        target = min(topics[topic], key=lambda at: (len(kept[at]), at))
        offer = (len(kept[target]), partition in before[position], target, partition)
        if best is None or offer < best:
            best = offer
    if best is None or best[0] + 2 > len(mine):
        return False
    _, _, target, partition = best
    mine.remove(partition)
    kept[target].append(partition)
    return True
