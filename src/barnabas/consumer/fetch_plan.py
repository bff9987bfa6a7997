"""Which partitions to fetch from which broker, and when.

A plain object. A partition that is not blocked is fetched from its leader, or from the replica that
the leader prefers for this client's rack. A Fetch request waits at the broker until one of its
partitions has records. That must not stop the others: a partition whose read-ahead is used up, or
whose position the user has just moved, is fetched meanwhile on a second channel, where requests
wait only briefly.
"""

from __future__ import annotations

from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.fetch_session import FetchSession
from barnabas.consumer.partition_fetch_state import BlockedBy, PartitionFetch
from barnabas.consumer.subscription import Assigned
from barnabas.model.ids import TopicPartition

CHANNELS = ("fetch", "fetch-2")
"""Fetches wait at the broker; requests on other channels do not wait behind them."""

BRIEF_MS = 50
"""How long fetches on the second channel may wait at the broker."""


class FetchChannel:
    """The fetching from one broker on one connection: one fetch at a time."""

    __slots__ = ("busy_since_ms", "name", "session", "wait_ms")

    def __init__(self, name: str, wait_ms: int, *, sessions: bool) -> None:
        self.name = name
        self.wait_ms = wait_ms
        self.session = FetchSession(enabled=sessions)
        self.busy_since_ms: float | None = None


class FetchPlan:
    """The partitions that one consumer fetches, and the order of the next ones."""

    def __init__(self, *, ahead_max: int, wait_ms: int, sessions: bool = True) -> None:
        """`ahead_max` is how many bytes of one partition may be read ahead."""
        self.fetches: dict[TopicPartition, PartitionFetch] = {}
        self.channels: dict[int, tuple[FetchChannel, ...]] = {}
        self._ahead_max = ahead_max
        self._sources: set[int] = set()
        self._wait_ms = wait_ms
        self._sessions = sessions

    def free_channel(self, node_id: int) -> FetchChannel | None:
        """Return a channel to a broker that has no fetch in flight."""
        channels = self.channels.get(node_id)
        if channels is None:
            waits_ms = self._wait_ms, min(BRIEF_MS, self._wait_ms)
            channels = self.channels[node_id] = tuple(
                FetchChannel(name, wait_ms, sessions=self._sessions)
                for name, wait_ms in zip(CHANNELS, waits_ms, strict=True)
            )
        return next((channel for channel in channels if channel.busy_since_ms is None), None)

    def follow(self, assigned: dict[TopicPartition, Assigned]) -> None:
        """Keep a `PartitionFetch` for each of these states and for no others."""
        fetches = self.fetches
        if len(fetches) != len(assigned) or any(
            partition not in fetches or fetches[partition].state is not state
            for partition, state in assigned.items()
        ):
            self.fetches = {
                partition: fetch
                if (fetch := fetches.get(partition)) is not None and fetch.state is state
                else PartitionFetch(state)
                for partition, state in assigned.items()
            }
        for fetch in self.fetches.values():
            fetch.follow_position()

    def unvalidated(self, cluster: ClientMetadata) -> list[PartitionFetch]:
        """Return the partitions whose offsets must be validated because their leader changed."""
        return [
            fetch
            for fetch in self.fetches.values()
            if fetch.offset is not None
            and not fetch.halted
            and (view := cluster.partition(fetch.partition)) is not None
            and fetch.must_validate(view.leader_epoch)
        ]

    def ready(self, cluster: ClientMetadata, now_ms: float) -> dict[int, list[PartitionFetch]]:
        """Return the partitions to fetch now, by broker."""
        ready: dict[int, list[PartitionFetch]] = {}
        self._sources = set()
        for fetch in self.fetches.values():
            source = self._source(fetch, cluster, now_ms)
            if source is None:
                continue
            self._sources.add(source)
            if fetch.blocked_by(now_ms, self._ahead_max) is None:
                ready.setdefault(source, []).append(fetch)
        return ready

    def remove_unused_channels(self) -> list[tuple[int, FetchChannel]]:
        """Remove and return the channels to brokers that no partition needed at the last look.

        Channels with a fetch in flight stay until its response arrives, and all stay while a
        partition has no leader, as the leader may return.
        """
        if self.leaderless():
            return []
        left = [
            node_id
            for node_id, channels in self.channels.items()
            if node_id not in self._sources
            and all(channel.busy_since_ms is None for channel in channels)
        ]
        return [(node_id, channel) for node_id in left for channel in self.channels.pop(node_id)]

    def next_ms(self, now_ms: float) -> float | None:
        """Return when the next back-off ends."""
        due = (fetch.retry_ms for fetch in self.fetches.values() if fetch.retry_ms > now_ms)
        return min(due, default=None)

    def blocked_by(self, fetch: PartitionFetch, now_ms: float) -> BlockedBy | None:
        """Return why a partition is not fetched, None if it is."""
        return fetch.blocked_by(now_ms, self._ahead_max)

    def leaderless(self) -> bool:
        """Return whether a partition waits for a leader."""
        return any(fetch.leaderless_since_ms is not None for fetch in self.fetches.values())

    def _source(self, fetch: PartitionFetch, cluster: ClientMetadata, now_ms: float) -> int | None:
        """Return the broker to fetch from, and record since when there is none."""
        if fetch.preferred_id >= 0:
            view = cluster.partition(fetch.partition)
            if (
                now_ms < fetch.preferred_until_ms
                and fetch.preferred_id in cluster.brokers
                and view is not None
                and fetch.preferred_id not in view.offline
            ):
                return fetch.preferred_id
            fetch.prefer_leader()
        leader = cluster.leader(fetch.partition)
        if leader is not None:
            fetch.leaderless_since_ms = None
        elif fetch.leaderless_since_ms is None:
            fetch.leaderless_since_ms = now_ms
        return leader
