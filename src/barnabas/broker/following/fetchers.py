"""Replica fetchers: copy from other brokers what this one follows.

`num.replica.fetchers` per source broker, each a loop of its own (`fetcher`); a partition is always
copied by the same one. One that is left without partitions ends, once all that the controller said
at a time is done: what one topic takes from it the next may give.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from zlib import crc32

from barnabas.broker.following.fetcher import Fetcher, FetcherContext
from barnabas.model.ids import TopicPartition
from barnabas.replication.partition import Partition


class Fetchers:
    """All fetchers of this broker."""

    def __init__(self, context: FetcherContext) -> None:
        self._context = context
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._stopped = False

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Copy partitions from their leaders, from now on."""
        if self._stopped:
            return  # what the controller still has to say to a broker that goes
        for partition in partitions:
            key = partition.topic_partition
            self.forget([key])
            if partition.assigned_leader >= 0:
                self._fetcher(partition).follow(partition)

    def resize(self) -> None:
        """Spread partitions again: num.replica.fetchers may have changed."""
        if self._stopped:
            return
        self.follow(
            [
                partition
                for place, fetcher in self._fetchers.items()
                for partition in fetcher.partitions
                if self._fetcher_key(partition) != place
            ]
        )
        count = self._context.options().num_replica_fetchers
        for place in [each for each in self._fetchers if each[1] >= count]:
            self._fetchers.pop(place).end()

    def forget(self, keys: Iterable[TopicPartition]) -> None:
        """Copy partitions no more."""
        for key in keys:
            for fetcher in self._fetchers.values():
                fetcher.forget(key)

    def flushed(self, partition: Partition) -> None:
        """A flush that a topic's policy demands is done: the leader may hear of it."""
        for fetcher in self._fetchers.values():
            fetcher.resume(partition.topic_partition)

    def end_idle(self) -> None:
        """End the loops that no longer have anything to follow, and their connections."""
        for place, fetcher in list(self._fetchers.items()):
            if not fetcher.is_busy:
                del self._fetchers[place]
                fetcher.end()

    def cluster_changed(self) -> None:
        """Brokers came or moved: those who wait for theirs try again; idle ones end."""
        self.end_idle()
        for fetcher in self._fetchers.values():
            fetcher.wake()

    async def stop(self) -> None:
        """End all loops, for good."""
        self._stopped = True
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        for fetcher in fetchers:
            fetcher.end()
        await asyncio.gather(*(each.task for each in fetchers), return_exceptions=True)

    def _fetcher_key(self, partition: Partition) -> tuple[int, int]:
        """Return which fetcher of which broker copies a partition."""
        count = self._context.options().num_replica_fetchers
        number = crc32(partition.topic_partition.topic.encode()) + partition.topic_partition[1]
        return partition.assigned_leader, number % count

    def _fetcher(self, partition: Partition) -> Fetcher:
        place = self._fetcher_key(partition)
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = self._fetchers[place] = Fetcher(self._context, place[0], self.end_idle)
        return fetcher
