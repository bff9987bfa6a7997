"""Which stream reads which partition, as every member computes it from the same facts.

Each consumer computes the whole group's assignment and takes its own part. Range cuts each topic's
partitions into consecutive runs; round robin deals all partitions, in the order of Java's hashes
of their names, over all streams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.metadata.partition_for import java_hash
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

Assignment = dict[TopicPartition, str]
"""The stream (thread id) that reads each partition."""


def assign_range(
    threads: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> Assignment:
    """Give each stream of a topic a run of its partitions, the first ones one more."""
    assigned: Assignment = {}
    for topic in sorted(threads):
        readers, numbers = sorted(threads[topic]), sorted(partitions.get(topic, ()))
        each, extra = divmod(len(numbers), len(readers))
        for position, reader in enumerate(readers):
            start = each * position + min(position, extra)
            for number in numbers[start : start + each + (position < extra)]:
                assigned[TopicPartition(topic, number)] = reader
    return assigned


def assign_round_robin(
    threads: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> Assignment:
    """Deal all partitions over the streams; every consumer must subscribe to all topics alike."""
    if not threads:
        return {}
    first, *others = sorted(threads)
    readers = sorted(threads[first])
    for topic in others:
        if sorted(threads[topic]) != readers:
            raise InvalidValueError(
                "partition.assignment.strategy=roundrobin: all consumers of the group must have "
                f"the same streams for all topics; {first!r} and {topic!r} differ"
            )
    dealt = sorted(
        (
            TopicPartition(topic, number)
            for topic in threads
            for number in partitions.get(topic, ())
        ),
        key=lambda each: (java_hash(f"[{each.topic},{each.partition}]"), each),
    )
    return {each: readers[turn % len(readers)] for turn, each in enumerate(dealt)}


def fetcher_of(topic: str, partition: int, fetchers: int) -> int:
    """Return which fetcher of a broker reads a partition."""
    mixed = _int32(31 * java_hash(topic) + partition)
    # Java's smallest int has no positive counterpart; Kafka uses 0 for it.
    return (0 if mixed == -(2**31) else abs(mixed)) % fetchers


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
