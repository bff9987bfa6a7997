"""Which partitions to fetch from which broker, now or when.

A plain object. Every assigned partition has a flow; a flow that nothing hinders is fetched from its
leader, or from the replica that the leader prefers for this client's rack. One fetch at a time runs
at a broker, since it may wait there for records. That must not stop a busy partition: while some
partitions of a broker have enough read ahead, a fetch for the hungry ones alone is held back for a
moment, and then waits only a little longer each time. As soon as all are hungry, it is sent.
"""

from __future__ import annotations

from barnabas.client.cluster import ClusterView
from barnabas.consumer.fetch_session import FetchSession
from barnabas.consumer.flow import Flow, Obstacle
from barnabas.consumer.subscription import Assigned
from barnabas.model.ids import TopicPartition

_HOLD_MS = 10.0


class Node:
    """The fetching from one broker."""

    __slots__ = ("busy_since_ms", "hold_until_ms", "patience_ms", "session")

    def __init__(self, *, sessions: bool) -> None:
        self.session = FetchSession(enabled=sessions)
        self.busy_since_ms: float | None = None
        self.hold_until_ms: float | None = None
        self.patience_ms = _HOLD_MS

    def wait_ms(self, some_full: bool, now_ms: float, wait_ms_max: int) -> int | None:
        """Return how long a fetch sent now may wait at the broker; None: hold it back."""
        if not some_full:
            self.hold_until_ms, self.patience_ms = None, _HOLD_MS
            return wait_ms_max
        if self.hold_until_ms is None:
            self.hold_until_ms = now_ms + _HOLD_MS
        if now_ms < self.hold_until_ms:
            return None
        wait_ms = min(int(self.patience_ms), wait_ms_max)
        self.patience_ms = min(2 * self.patience_ms, max(_HOLD_MS, wait_ms_max))
        return wait_ms


class Intent:
    """What could be fetched from one broker: the hungry flows, and whether others are full."""

    __slots__ = ("flows", "some_full")

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self.some_full = False


class FetchPlan:
    """The flows of one consumer, and what to do with them."""

    def __init__(self, *, ahead_max: int, sessions: bool = True) -> None:
        """`ahead_max` is how many bytes of one partition may be read ahead."""
        self.flows: dict[TopicPartition, Flow] = {}
        self.nodes: dict[int, Node] = {}
        self._ahead_max = ahead_max
        self._sessions = sessions

    def node(self, node_id: int) -> Node:
        """Return the state of the fetching from a broker."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = Node(sessions=self._sessions)
        return node

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

    def unproven(self, cluster: ClusterView) -> list[Flow]:
        """Return the flows whose offsets must be checked, as they have got a new leader."""
        return [
            flow
            for flow in self.flows.values()
            if flow.offset is not None
            and not flow.halted
            and (view := cluster.partition(flow.partition)) is not None
            and flow.meet_leader(view.leader_epoch)
        ]

    def intents(
        self, cluster: ClusterView, now_ms: float, *, all_full: bool = False
    ) -> dict[int, Intent]:
        """Return what could be fetched now, by broker; `all_full`: nothing more can be held."""
        intents: dict[int, Intent] = {}
        for flow in self.flows.values():
            source = self._source(flow, cluster, now_ms)
            obstacle = flow.obstacle(now_ms, self._ahead_max)
            if all_full and obstacle is None:
                obstacle = Obstacle.FULL
            if source is None or (obstacle is not None and obstacle is not Obstacle.FULL):
                continue
            intent = intents.setdefault(source, Intent())
            if obstacle is None:
                intent.flows.append(flow)
            else:
                intent.some_full = True
        return intents

    def next_ms(self, now_ms: float) -> float | None:
        """Return when something is due by time alone: the end of a pause or of a hold."""
        due = [flow.retry_ms for flow in self.flows.values() if flow.retry_ms > now_ms]
        due += [
            node.hold_until_ms
            for node in self.nodes.values()
            if node.hold_until_ms is not None
            and node.hold_until_ms > now_ms
            and node.busy_since_ms is None
        ]
        return min(due, default=None)

    def obstacle(self, flow: Flow, now_ms: float) -> Obstacle | None:
        """Say why a flow is not fetched."""
        return flow.obstacle(now_ms, self._ahead_max)

    def leaderless(self) -> bool:
        """Tell whether a flow waits for a leader."""
        return any(flow.leaderless_since_ms is not None for flow in self.flows.values())

    def _source(self, flow: Flow, cluster: ClusterView, now_ms: float) -> int | None:
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
