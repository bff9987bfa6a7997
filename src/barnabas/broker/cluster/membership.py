"""A broker's place in its cluster: the tree that it shares, its ids there, and its registration.

Each registration is a life of the broker, and the tree numbers them: `epoch` grows with each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from barnabas.broker.cluster.registration import Registration
from barnabas.broker.storage.logs import Logs
from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Listeners
from barnabas.controller.roster import PROTOCOLS
from barnabas.coordination.contract import Coordination
from barnabas.coordination.embedded import EmbeddedCoordination, EmbeddedStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.errors import StorageError

COORDINATION_FILE = "coordination.sqlite"


class Membership:
    """What one broker is to the others."""

    def __init__(
        self, tree: Coordination, options: BrokerOptions, random_bytes: Callable[[int], bytes]
    ) -> None:
        self.tree = tree
        self._options = options
        self._registration = Registration(tree, random_bytes, options.zookeeper_session_timeout_ms)

    async def join(self, identity: Mapping[str, str]) -> None:
        """Open a session, and find the cluster's id and the broker's; `identity` is on disk."""
        await self.tree.start()
        self.cluster_id = await self._registration.cluster_id(
            identity.get("cluster.id"), private=self._options.zookeeper_connect is None
        )
        self.broker_id = await self._registration.broker_id(
            self._options, identity.get("broker.id")
        )

    async def register(
        self, listeners: Listeners, ports: Mapping[str, int], now_ms: int
    ) -> BrokerView:
        """Tell the cluster where this broker listens: a new life of it begins."""
        node = self._node(listeners, ports, now_ms)
        epoch = await self._registration.register(self.broker_id, node)
        return self._registered(listeners, ports, node, epoch)

    async def announce(
        self, listeners: Listeners, ports: Mapping[str, int], now_ms: int
    ) -> BrokerView:
        """Update the registration: the broker listens elsewhere, in the same life."""
        node = self._node(listeners, ports, now_ms)
        await self._registration.update(self.broker_id, node)
        return self._registered(listeners, ports, node, self.view.epoch)

    def _node(
        self, listeners: Listeners, ports: Mapping[str, int], now_ms: int
    ) -> nodes.BrokerRegistration:
        told = listeners.advertise(ports, self._registration.default_host())
        return nodes.BrokerRegistration(
            [(each.name, each.host, each.port) for each in told],
            {each.name: each.protocol.name for each in told},
            self._options.broker_rack,
            now_ms,
            listeners.control_plane,
        )

    def _registered(
        self,
        listeners: Listeners,
        ports: Mapping[str, int],
        node: nodes.BrokerRegistration,
        epoch: int,
    ) -> BrokerView:
        self.told = listeners, ports
        self.view = BrokerView(
            self.broker_id,
            {
                name: (None if listeners.dialled else host, port)
                for name, host, port in node.endpoints
            },
            node.rack,
            epoch,
            {name: PROTOCOLS[protocol] for name, protocol in node.protocols.items()},
            node.control_plane,
        )
        return self.view


def zookeeper_tree(options: BrokerOptions) -> Coordination:
    """Return a session with the ensemble; imported here, as its library is an extra."""
    from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
    from barnabas.coordination.zookeeper.settings import settings_of

    return ZooKeeperCoordination(settings_of(options))


def embedded_tree(logs: Logs, executor: Executor | None, path: str) -> Coordination:
    """Return the tree of a broker that is alone, in a file beside the logs at `path`."""
    if path in logs.offline:
        raise StorageError(
            f"{path} holds {COORDINATION_FILE}, without which no topic is known: "
            f"{logs.offline[path]}"
        )
    return EmbeddedCoordination(EmbeddedStore(f"{path}/{COORDINATION_FILE}", executor))
