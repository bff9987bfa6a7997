"""Requests that their deadline ended, and not what they waited for."""

from __future__ import annotations

from collections import Counter

from barnabas.model.ids import TopicPartition

PARTITIONS_MAX = 1000
"""How many partitions are counted one by one."""


class Expirations:
    """How many there were."""

    def __init__(self) -> None:
        self.consumer_fetches = 0
        """For a consumer at the end of its partitions this is the rule."""
        self.follower_fetches = 0
        self.appends = 0
        """Appends that were not committed in time: one for each partition of a request."""
        self.by_partition: Counter[TopicPartition] = Counter()
        """Those of the first partitions that had any."""

    def append(self, key: TopicPartition) -> None:
        """Count an append that was not committed in time."""
        self.appends += 1
        if key in self.by_partition or len(self.by_partition) < PARTITIONS_MAX:
            self.by_partition[key] += 1

    def fetch(self, *, follows: bool) -> None:
        """Count a fetch that had to be answered with less than it asked for."""
        if follows:
            self.follower_fetches += 1
        else:
            self.consumer_fetches += 1
