"""Which partitions to fetch from which broker, now or when.

A plain object. Every assigned partition has a flow; a flow that nothing hinders is fetched from its
leader, or from the replica that the leader prefers for this client's rack. A fetch waits at the
broker until one of its partitions has records. That must not stop the others: a partition whose
read-ahead was used up, or in which the user has just moved, is fetched meanwhile on a second
channel, where fetches wait only briefly.
"""

from __future__ import annotations

from barnabas.client.metadata import ClientMetadata
from barnabas.consumer.fetch_session import FetchSession
from barnabas.consumer.flow import Flow, Obstacle
from barnabas.consumer.subscription import Assigned
from barnabas.model.ids import TopicPartition

CHANNELS = ("fetch", "fetch-2")
"""Fetches wait at the broker; requests in other channels do not wait behind them."""

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
    """The flows of one consumer, and what to do with them."""

    def __init__(self, *, ahead_max: int, wait_ms: int, sessions: bool = True) -> None:
        """`ahead_max` is how many bytes of one partition may be read ahead."""
        self.flows: dict[TopicPartition, Flow] = {}
        self.channels: dict[int, tuple[FetchChannel, ...]] = {}
        self._ahead_max = ahead_max
        self._sources: set[int] = set()
        self._wait_ms = wait_ms
        self._sessions = sessions

    def free_channel(self, node_id: int) -> FetchChannel | None:
        """Return a channel to a broker on which no fetch is under way."""
        channels = self.channels.get(node_id)
        if channels is None:
            waits_ms = self._wait_ms, min(BRIEF_MS, self._wait_ms)
            channels = self.channels[node_id] = tuple(
                FetchChannel(name, wait_ms, sessions=self._sessions)
                for name, wait_ms in zip(CHANNELS, waits_ms, strict=True)
            )
        return next((channel for channel in channels if channel.busy_since_ms is None), None)

    def follow(self, assigned: dict[TopicPartition, Assigned]) -> None:
        """Have a flow for each of these states and for no others."""
        flows = self.flows
        if len(flows) != len(assigned) or any(
            partition not in flows or flows[partition].state is not state
            for partition, state in assigned.items()
        ):
            self.flows = {
                partition: flow
                if (flow := flows.get(partition)) is not None and flow.state is state
                else Flow(state)
                for partition, state in assigned.items()
            }
        for flow in self.flows.values():
            flow.follow_user()

    def unproven(self, cluster: ClientMetadata) -> list[Flow]:
        """Return the flows whose offsets must be checked, as they have got a new leader."""
        return [
            flow
            for flow in self.flows.values()
            if flow.offset is not None
            and not flow.halted
            and (view := cluster.partition(flow.partition)) is not None
            and flow.meet_leader(view.leader_epoch)
        ]

    def hungry(self, cluster: ClientMetadata, now_ms: float) -> dict[int, list[Flow]]:
        """Return the flows to fetch now, by broker."""
        hungry: dict[int, list[Flow]] = {}
        self._sources = set()
        for flow in self.flows.values():
            source = self._source(flow, cluster, now_ms)
            if source is None:
                continue
            self._sources.add(source)
            if flow.obstacle(now_ms, self._ahead_max) is None:
                hungry.setdefault(source, []).append(flow)
        return hungry

    def deserted(self) -> list[tuple[int, FetchChannel]]:
        """Take out the channels to brokers that no flow was to be fetched from at the last look.

        Lanes with a fetch under way stay until it is answered, and all do while a flow has no
        leader, as that may come back.
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
        """Return when the next pause after an error ends."""
        due = (flow.retry_ms for flow in self.flows.values() if flow.retry_ms > now_ms)
        return min(due, default=None)

    def obstacle(self, flow: Flow, now_ms: float) -> Obstacle | None:
        """Say why a flow is not fetched."""
        return flow.obstacle(now_ms, self._ahead_max)

    def leaderless(self) -> bool:
        """Tell whether a flow waits for a leader."""
        return any(flow.leaderless_since_ms is not None for flow in self.flows.values())

    def _source(self, flow: Flow, cluster: ClientMetadata, now_ms: float) -> int | None:
        """Return the broker to fetch from, and note since when there is none."""
        if flow.preferred_id >= 0:
            view = cluster.partition(flow.partition)
            if (
                now_ms < flow.preferred_until_ms
                and flow.preferred_id in cluster.brokers
                and view is not None
                and flow.preferred_id not in view.offline
            ):
                return flow.preferred_id
            flow.prefer_leader()
        leader = cluster.leader(flow.partition)
        if leader is not None:
            flow.leaderless_since_ms = None
        elif flow.leaderless_since_ms is None:
            flow.leaderless_since_ms = now_ms
        return leader
