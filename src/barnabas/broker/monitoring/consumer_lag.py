"""The lag of the groups that are coordinated here, in records and in seconds.

Where a partition is led here, its end is read when it is asked for, and sampled once a second.
Other leaders are asked every ten seconds, as long as the lag was asked for within the last minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from barnabas.broker.coordinators.groups import GroupHost
from barnabas.broker.monitoring.lag_clock import LagClock
from barnabas.broker.monitoring.record_times import RecordTimes
from barnabas.broker.monitoring.remote_ends import Ends, RemoteEnds
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.model.ids import TopicPartition

WATCHED_MS = 60_000
GROUPS_AT_ONCE = 200
READS_MAX = 100
FETCHES_MAX = 10
"""How many times of old records one refresh reads here, and gets from other leaders, which send
whole batches: a group that was idle for a week may have thousands of partitions."""


class PartitionLag(NamedTuple):
    """One committed offset and its distance from the end of the partition."""

    key: TopicPartition
    committed: int
    lag: int | None
    """Records up to the high watermark, negative if the partition was truncated; None if its
    leader has not said where it ends, or there is no leader."""
    stable_lag: int | None
    """Records up to the last stable offset, never negative."""
    seconds: float | None
    """How long ago the record at the committed offset was appended; a lower bound, or None, until
    it is known."""


class ConsumerLag:
    """Computes lags; `tick` and `refresh` are called by `Monitoring`."""

    def __init__(
        self,
        groups: GroupHost,
        partitions: HostedPartitions,
        ends: RemoteEnds,
        times: RecordTimes,
        now_ms: Callable[[], int],
        clock_ms: Callable[[], int],
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._ends = ends
        self._times = times
        self._now_ms = now_ms
        self._clock_ms = clock_ms
        self._clock = LagClock()
        self._tracked: dict[TopicPartition, None] = {}
        self._watched_ms: int | None = None
        self._old: dict[tuple[TopicPartition, int], None] = {}
        """Committed offsets that are older than all samples; their records' times are read."""

    # -- reading

    def coordinators(self) -> list[GroupCoordinator]:
        """Return the coordinators of this broker that have loaded their groups."""
        return [shard.machine for shard in self._groups.loaded_shards()]

    def watch(self) -> bool:
        """Record that lags are being read; return whether nobody did so for a while."""
        now_ms, watched_ms = self._clock_ms(), self._watched_ms
        self._watched_ms = now_ms
        return watched_ms is None or now_ms - watched_ms > WATCHED_MS

    def of(self, coordinator: GroupCoordinator, group_id: str) -> list[PartitionLag]:
        """Return the lag of each partition for which a group has committed an offset."""
        offsets = coordinator.offsets.by_group.get(group_id)
        if offsets is None:
            return []
        now_ms = self._now_ms()
        return [
            self._lag(key, commit.offset, now_ms) for key, commit in list(offsets.committed.items())
        ]

    def is_led(self, key: TopicPartition) -> bool:
        """Return whether a partition has a leader, which will say where it ends."""
        return self._ends.leader_of(key) >= 0

    def _lag(self, key: TopicPartition, committed: int, now_ms: int) -> PartitionLag:
        ends = self._end_of(key)
        if ends is None:
            return PartitionLag(key, committed, None, None, None)
        lag = ends.high_watermark - committed
        stable_lag = max(ends.stable - committed, 0)
        seconds = 0.0 if lag <= 0 else self._seconds(key, committed, now_ms)
        return PartitionLag(key, committed, lag, stable_lag, seconds)

    def _end_of(self, key: TopicPartition) -> Ends | None:
        partition = self._partitions.get(key)
        if partition is not None and partition.is_leader:
            log = partition.log
            return Ends(log.high_watermark, log.last_stable_offset)
        return self._ends.get(key)

    def _seconds(self, key: TopicPartition, committed: int, now_ms: int) -> float | None:
        lag_ms = self._clock.lag_ms(key, committed, now_ms)
        if lag_ms is not None:
            return lag_ms / 1000
        at_least_ms = self._clock.known_for_ms(key, now_ms)
        timestamp = self._times.get(key, committed)
        if timestamp is not None:
            return max(now_ms - timestamp, at_least_ms or 0) / 1000
        self._old[key, committed] = None
        return None if at_least_ms is None else at_least_ms / 1000

    # -- following

    def tick(self) -> None:
        """Sample the partitions that are led here; once a second."""
        now_ms = self._now_ms()
        partitions, clock = self._partitions, self._clock
        for key in self._tracked:
            partition = partitions.get(key)
            if partition is not None and partition.is_leader:
                clock.sample(key, partition.log.high_watermark, now_ms)

    async def refresh(self) -> None:
        """Look which partitions groups read, and ask other leaders if that is of use."""
        tracked: dict[TopicPartition, None] = {}
        for number, committed in enumerate(self._committed()):
            tracked.update(dict.fromkeys(committed))
            if number % GROUPS_AT_ONCE == GROUPS_AT_ONCE - 1:
                await asyncio.sleep(0)
        self._tracked = tracked
        self._clock.retain(tracked)
        if self._watched_ms is None or self._clock_ms() - self._watched_ms > WATCHED_MS:
            self._old.clear()
            return
        elsewhere = [key for key in tracked if not self._leads(key)]
        for key, ends in await self._ends.refresh(elsewhere):
            self._clock.sample(key, ends.high_watermark, self._now_ms())
        await self._read_old()

    def _committed(self) -> Iterator[list[TopicPartition]]:
        for coordinator in self.coordinators():
            for offsets in list(coordinator.offsets.by_group.values()):
                yield list(offsets.committed)

    def _leads(self, key: TopicPartition) -> bool:
        partition = self._partitions.get(key)
        return partition is not None and partition.is_leader

    async def _read_old(self) -> None:
        """Learn the times of records that are older than the samples."""
        old, self._old = list(self._old), {}
        here = [each for each in old if self._leads(each[0])]
        for key, committed in here[:READS_MAX]:
            partition = self._partitions.get(key)
            if partition is not None:
                await self._times.read(key, partition.log, committed)
        elsewhere = [each for each in old if not self._leads(each[0])]
        for key, committed in elsewhere[:FETCHES_MAX]:
            await self._times.learn(key, committed, partial(self._ends.head, key, committed))
