"""Replica fetchers: copy from other brokers what this one follows.

`num.replica.fetchers` per source broker, each a loop of its own (`fetcher`); a partition is always
copied by the same one. A fetcher without partitions ends once a whole request of the controller is
applied: one topic may take partitions from it, and the next one add some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from zlib import crc32

from barnabas.broker.replication.fetcher import Fetcher, FetcherContext
from barnabas.model.ids import TopicPartition
from barnabas.replication.partition import Partition


class Fetchers:
    """All fetchers of this broker."""

    def __init__(self, context: FetcherContext) -> None:
        self._context = context
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._stopped = False

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Start to copy partitions from their leaders."""
        if self._stopped:
            return  # a late request of the controller to a broker that stops
        for partition in partitions:
            key = partition.topic_partition
            self.forget([key])
            if partition.assigned_leader >= 0:
                self._fetcher(partition).follow(partition)

    def resize(self) -> None:
        """Redistribute partitions: num.replica.fetchers may have changed."""
        if self._stopped:
            return
        self.follow(
            [
                partition
                for fetcher_key, fetcher in self._fetchers.items()
                for partition in fetcher.partitions
                if self._fetcher_key(partition) != fetcher_key
            ]
        )
        count = self._context.options().num_replica_fetchers
        for fetcher_key in [each for each in self._fetchers if each[1] >= count]:
            self._fetchers.pop(fetcher_key).end()

    def forget(self, keys: Iterable[TopicPartition]) -> None:
        """Stop copying partitions."""
        for key in keys:
            for fetcher in self._fetchers.values():
                fetcher.forget(key)

    def flushed(self, partition: Partition) -> None:
        """Resume a partition after a flush that its topic's policy demands."""
        for fetcher in self._fetchers.values():
            fetcher.resume(partition.topic_partition)

    def end_idle(self) -> None:
        """End the loops that no longer have anything to follow, and their connections."""
        for fetcher_key, fetcher in list(self._fetchers.items()):
            if not fetcher.is_busy:
                del self._fetchers[fetcher_key]
                fetcher.end()

    def cluster_changed(self) -> None:
        """Wake fetchers whose source may have joined or moved; end idle ones."""
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

    def named(self) -> list[tuple[str, Fetcher]]:
        """Return the fetchers under the names that Kafka gives their threads."""
        return [
            (f"ReplicaFetcherThread-{number}-{source}", fetcher)
            for (source, number), fetcher in self._fetchers.items()
        ]

    def _fetcher_key(self, partition: Partition) -> tuple[int, int]:
        """Return which fetcher of which broker copies a partition."""
        count = self._context.options().num_replica_fetchers
        number = crc32(partition.topic_partition.topic.encode()) + partition.topic_partition[1]
        return partition.assigned_leader, number % count

    def _fetcher(self, partition: Partition) -> Fetcher:
        fetcher_key = self._fetcher_key(partition)
        fetcher = self._fetchers.get(fetcher_key)
        if fetcher is None:
            fetcher = self._fetchers[fetcher_key] = Fetcher(
                self._context, fetcher_key[0], self.end_idle
            )
        return fetcher
