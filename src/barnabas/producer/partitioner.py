"""Choosing a partition for a record.

By default that happens in the accumulator: keys are hashed as every Kafka client hashes them, and
records without a key go to one partition until it got a batch's bytes. `StickyChoice` then chooses
the next one: any with a leader, more likely one with a short queue (KIP-794).

A custom partitioner is called for each record instead. It is an object with kafka-python's
`partition(topic, key, serialized_key, value, serialized_value, cluster)`, or a function of
`(serialized_key, all_partitions, available_partitions)`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from random import Random
from typing import Any, Protocol

from barnabas.client.metadata import ClientMetadata
from barnabas.kernels import murmur2
from barnabas.model.errors import ConfigError


class Cluster:
    """The cluster as partitioners see it, with kafka-python's methods."""

    def __init__(self, view: ClientMetadata) -> None:
        self._view = view

    def topics(self) -> set[str]:
        """Return the topics that are known."""
        return set(self._view.topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None if it is not known."""
        found = self._view.partitions_for(topic)
        return None if found is None else set(found)

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic that have a leader; None if it is not known."""
        return None if topic not in self._view.topics else set(available(self._view, topic))


class Partitioner(Protocol):
    """A way to choose partitions."""

    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: Cluster,
    ) -> int:
        """Return the partition for a record."""


class RoundRobinPartitioner:
    """One partition after the other, whatever the key."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: Cluster,
    ) -> int:
        """Return the next partition that has a leader, or the next of all."""
        partitions = sorted(
            cluster.available_partitions_for_topic(topic)
            or cluster.partitions_for_topic(topic)
            or ()
        )
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + 1
        return partitions[turn % len(partitions)]


class DefaultPartitioner:
    """kafka-python's default: keys by their hash, a random partition without a key."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random or Random()

    def partition(
        self,
        topic: str,
        key: Any,
        serialized_key: bytes | None,
        value: Any,
        serialized_value: bytes | None,
        cluster: Cluster,
    ) -> int:
        """Return the partition of the key, or any that has a leader."""
        partitions = sorted(cluster.partitions_for_topic(topic) or ())
        if serialized_key is not None:
            return partitions[(murmur2(serialized_key) & 0x7FFFFFFF) % len(partitions)]
        return self._random.choice(
            sorted(cluster.available_partitions_for_topic(topic) or ()) or partitions
        )


Ask = Callable[[str, Any, bytes | None, Any, bytes | None], int]

_BY_NAME: dict[str, Callable[[], Any]] = {
    "default": lambda: None,
    "sticky": lambda: None,
    "murmur2_random": lambda: None,
    "round_robin": RoundRobinPartitioner,
    "random": DefaultPartitioner,
    "RoundRobinPartitioner": RoundRobinPartitioner,
    "UniformStickyPartitioner": lambda: None,
    "DefaultPartitioner": lambda: None,
}


def partitioner_of(given: Any, view: ClientMetadata) -> Ask | None:
    """Return how to call a custom partitioner; None if the accumulator chooses."""
    if isinstance(given, str):
        made = _BY_NAME.get(given.rpartition(".")[2] if "." in given else given)
        if made is None:
            raise ConfigError(f"partitioner={given}: must be {', '.join(_BY_NAME)} or an object")
        given = made()
    if given is None:
        return None
    if isinstance(given, type):
        given = given()
    cluster = Cluster(view)
    method = getattr(given, "partition", None)
    if callable(method):
        return lambda topic, key, packed_key, value, packed_value: int(
            method(topic, key, packed_key, value, packed_value, cluster)
        )
    if not callable(given):
        raise ConfigError(f"partitioner={given!r}: must be a function or have partition()")
    choose: Callable[[Any, Sequence[int], Sequence[int]], int] = given
    return lambda topic, key, packed_key, value, packed_value: int(
        choose(packed_key, list(view.partitions_for(topic) or ()), available(view, topic))
    )


def available(view: ClientMetadata, topic: str) -> list[int]:
    """Return the partitions of a topic that have a leader."""
    found = view.topics.get(topic)
    if found is None:
        return []
    return [
        index
        for index, partition in sorted(found.partitions.items())
        if partition.leader_id in view.brokers
    ]


class StickyChoice:
    """Chooses the partition of the next records without a key."""

    def __init__(
        self,
        view: ClientMetadata,
        random: Random,
        queued: Callable[[str, int], int],
        slow: Callable[[], Collection[int]],
        *,
        adaptive: bool,
    ) -> None:
        """`queued` counts a partition's waiting batches, `slow` returns leaders to avoid."""
        self._view = view
        self._random = random
        self._queued = queued
        self._slow = slow
        self._adaptive = adaptive

    def choose(self, topic: str) -> int:
        """Return a partition: one with a leader if there is one."""
        partitions = available(self._view, topic)
        if not partitions:
            partitions = list(self._view.partitions_for(topic) or (0,))
        slow = self._slow()
        if slow:
            leaders = self._view.topics[topic].partitions
            quick = [index for index in partitions if leaders[index].leader_id not in slow]
            partitions = quick or partitions
        if not self._adaptive or len(partitions) == 1:
            return self._random.choice(partitions)
        queued = [self._queued(topic, index) for index in partitions]
        longest = max(queued) + 1
        table = list(accumulate(longest - count for count in queued))
        return partitions[bisect_right(table, self._random.randrange(table[-1]))]
