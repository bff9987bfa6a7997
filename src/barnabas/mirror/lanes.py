"""Lanes: parts of a mirror that work beside each other, each with transactions of its own.

A partition is always in the same lane, whoever runs it and with how many others: so whoever takes
a lane over shuts out all who could write to its partitions. Their number is therefore fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapreplace
from zlib import crc32

from barnabas.model.ids import TopicPartition

LANES = 32
"""As many processes can share the work; a mirror's partitions are spread over them evenly."""


def lane_of(partition: TopicPartition) -> int:
    """Return the lane of a partition of the source."""
    return (crc32(partition.topic.encode()) + partition.partition) % LANES


def transactional_id(positions_topic: str, lane: int) -> str:
    """Return the name of a lane's transactions."""
    return f"{positions_topic}.{lane}"


def shared_out(backlog: Mapping[TopicPartition, int], tasks: int) -> list[list[int]]:
    """Return which lanes each of at most `tasks` tasks runs, so that all have about as much."""
    loads: dict[int, int] = {}
    for partition, count in backlog.items():
        lane = lane_of(partition)
        loads[lane] = loads.get(lane, 0) + count
    shares: list[list[int]] = [[] for _ in range(min(tasks, len(loads)))]
    heap = [(0, number) for number in range(len(shares))]
    for lane in sorted(loads, key=lambda each: (-loads[each], each)):
        load, number = heap[0]
        shares[number].append(lane)
        heapreplace(heap, (load + loads[lane], number))
    return shares
