"""What a worker does besides being a broker: report to its supervisor, and not outlive it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.coordination.socket.session import SocketCoordination
from barnabas.workers.channel import InSync, Ready
from barnabas.workers.link import SupervisorLink

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.config.broker import BrokerOptions
    from barnabas.coordination.contract import Coordination
    from barnabas.metadata.cluster_view import ClusterView

LOOK_S = 0.1


def tree_of(link: SupervisorLink, options: BrokerOptions) -> Coordination | None:
    """Return the tree that the supervisor serves; None if the worker joins ZooKeeper's."""
    if link.orders.tree is None:
        return None
    return SocketCoordination(link.orders.tree, timeout_ms=options.zookeeper_session_timeout_ms)


def is_in_sync(cluster: ClusterView, broker_id: int) -> bool:
    """Return whether a broker's replicas are all in sync, by its own view of the cluster."""
    return all(
        broker_id in partition.isr
        for topic in cluster.topics
        for partition in topic.partitions
        if broker_id in partition.replicas
    )


class WorkerReports:
    """Tells a supervisor that a broker serves, and then when it is in sync."""

    def __init__(self, link: SupervisorLink, broker: Broker) -> None:
        self._link = link
        self._broker = broker
        self._timer: asyncio.TimerHandle | None = None

    def ready(self, console: str | None) -> None:
        """Report that the broker serves; from now on it is watched."""
        broker = self._broker
        self._loop = asyncio.get_running_loop()
        metrics = broker.metrics_address
        self._link.report(
            Ready(
                [str(endpoint) for endpoint in broker.endpoints],
                {endpoint.name: endpoint.port for endpoint in broker.endpoints},
                None if metrics is None else metrics[1],
                console,
            )
        )
        self._look()

    def end(self) -> None:
        """Report no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        if is_in_sync(self._broker.cluster, self._broker.broker_id):
            self._link.report(InSync())
        else:
            self._timer = self._loop.call_later(LOOK_S, self._look)
