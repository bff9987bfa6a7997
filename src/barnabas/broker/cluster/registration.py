"""A broker's registration in the coordination tree, with its broker id and cluster id.

Each registration gets a new broker epoch from the tree, greater than all before.

When a session expires, its registration is deleted: for the cluster the broker is dead. It opens a
new session, however long the service is unavailable, and registers again; meanwhile clients are
sent to other brokers (`silence`). A broker that cannot register (another has its id) stops.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor

from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Listeners
from barnabas.controller.broker_registrations import PROTOCOLS
from barnabas.coordination.contract import (
    Coordination,
    NodeExists,
    NoNode,
    NoPermission,
    ServiceUnavailable,
    SessionExpired,
    SessionState,
)
from barnabas.coordination.embedded import EmbeddedCoordination, EmbeddedStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.errors import BarnabasError, ConfigError, StorageError
from barnabas.model.ids import new_uuid, uuid_text

logger = logging.getLogger("barnabas.coordination")

COORDINATION_FILE = "coordination.sqlite"

NO_PERMISSION_PAUSE_S = 1.0
"""Pause after a rejected login: unlike a silent service, it answers at once."""

FEATURE = "/feature"
FEATURES = nodes.compact({"features": {}, "version": 2, "status": 1})
"""No feature is versioned in a cluster on ZooKeeper, but Kafka's tools read the node."""


class Registration:
    """The registration of one broker; `view` is what the others know about it."""

    cluster_id: str
    broker_id: int
    view: BrokerView
    registered: tuple[Listeners, Mapping[str, int]]
    """The listeners that the registration names, and their ports."""

    def __init__(
        self, tree: Coordination, options: BrokerOptions, random_bytes: Callable[[int], bytes]
    ) -> None:
        self.tree = tree
        self._options = options
        self._random_bytes = random_bytes

    @property
    def epoch(self) -> int:
        """Return the broker epoch."""
        return self.view.epoch

    async def join(self, identity: Mapping[str, str]) -> None:
        """Open a session, and find the cluster id and broker id; `identity` is what is on disk."""
        await self.tree.start()
        self.cluster_id = await self.find_cluster_id(
            identity.get("cluster.id"), private=self._options.zookeeper_connect is None
        )
        self.broker_id = await self.find_broker_id(identity.get("broker.id"))

    async def find_cluster_id(self, stored: str | None, *, private: bool = True) -> str:
        """Return the cluster id, a new one for a new cluster; it must match the stored one.

        `private` says that the tree is embedded: if it was lost, the new one gets the stored id. A
        shared tree without a cluster id is more likely the wrong one.
        """
        known = await self.tree.exists(nodes.CLUSTER_ID) is not None
        if not known and stored is not None and not private:
            raise ConfigError(
                f"the data directory belongs to cluster {stored}, but ZooKeeper has no "
                "cluster id: is --data-dir or the chroot of --zookeeper the wrong one?"
            )
        for path in nodes.PERSISTENT_PATHS:
            if await self.tree.exists(path) is None:
                await self._create(path)
        if await self.tree.exists(FEATURE) is None:
            await self._create(FEATURE, FEATURES)
        if not known:
            # A data directory keeps its cluster id when the coordination tree is new.
            fresh = stored or uuid_text(new_uuid(self._random_bytes))
            await self._create(nodes.CLUSTER_ID, nodes.encode_cluster_id(fresh))
        data, _ = await self.tree.get(nodes.CLUSTER_ID)
        cluster_id = nodes.decode_cluster_id(data)
        if stored is not None and stored != cluster_id:
            raise ConfigError(
                f"the data directory belongs to cluster {stored}, not to {cluster_id}: "
                "is --data-dir or --zookeeper the wrong one?"
            )
        return cluster_id

    async def find_broker_id(self, stored: str | None) -> int:
        """Return the configured id, the stored one, or a new one from the cluster's sequence."""
        configured = self._options.broker_id
        if stored is not None:
            if configured >= 0 and int(stored) != configured:
                raise ConfigError(
                    f"broker.id={configured}: the data directory belongs to broker {stored}"
                )
            return int(stored)
        if configured >= 0:
            return configured
        stat = await self.tree.set(nodes.BROKER_SEQUENCE, b"")
        return stat.version + self._options.reserved_broker_max_id

    async def register(
        self, listeners: Listeners, ports: Mapping[str, int], now_ms: int
    ) -> BrokerView:
        """Register this broker's listeners in the tree, with a new broker epoch."""
        node = self._node(listeners, ports, now_ms)
        path = nodes.broker_path(self.broker_id)
        while True:
            try:
                await self.tree.create(path, node.encode(), ephemeral=True)
                break
            except NodeExists as taken:
                # After a crash, the old session of this broker may not have expired yet.
                if not await self._wait_until_gone(path):
                    raise ConfigError(
                        f"broker.id={self.broker_id}: another live broker has registered under "
                        "this id"
                    ) from taken
        stat = await self.tree.exists(path)
        if stat is None:
            raise NoNode(path, f"the registration {path} no longer exists")
        return self._registered(listeners, ports, node, stat.czxid)

    async def update(
        self, listeners: Listeners, ports: Mapping[str, int], now_ms: int
    ) -> BrokerView:
        """Overwrite the registration with changed listeners, in the same broker epoch.

        Raise NoNode if this session has none.
        """
        node = self._node(listeners, ports, now_ms)
        path = nodes.broker_path(self.broker_id)
        stat = await self.tree.exists(path)
        if stat is None or stat.ephemeral_owner != self.tree.session_id:
            raise NoNode(path, f"the registration {path} belongs to another session")
        await self.tree.set(path, node.encode(), stat.version)
        return self._registered(listeners, ports, node, self.epoch)

    async def _wait_until_gone(self, path: str) -> bool:
        """Wait until an older session's node is deleted; False if it outlives such a session."""
        gone = asyncio.Event()
        if await self.tree.exists(path, watch=lambda _: gone.set()) is None:
            return True
        try:
            async with asyncio.timeout(self._options.zookeeper_session_timeout_ms * 1.5 / 1000):
                await gone.wait()
        except TimeoutError:
            return False
        return True

    async def _create(self, path: str, data: bytes = b"") -> None:
        try:
            await self.tree.create(path, data, make_parents=True)
        except NodeExists:
            logger.debug("%s already created by another broker", path)

    def _node(
        self, listeners: Listeners, ports: Mapping[str, int], now_ms: int
    ) -> nodes.BrokerRegistration:
        # For all interfaces, the host name is advertised, by which others may find this machine.
        advertised = listeners.advertise(ports, socket.gethostname())
        return nodes.BrokerRegistration(
            [(each.name, each.host, each.port) for each in advertised],
            {each.name: each.protocol.name for each in advertised},
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
        self.registered = listeners, ports
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


class SessionRenewal:
    """Watches one session with the coordination service, and opens the next."""

    def __init__(
        self,
        tree: Coordination,
        leave: Callable[[], Awaitable[None]],
        enter: Callable[[], Awaitable[None]],
        give_up: Callable[[str], Awaitable[None]],
        on_refused: Callable[[], object] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `leave` when a session has expired, and `enter` in each new one.

        `give_up` is called with the reason if `enter` fails for good, `on_refused` each time that
        the service rejects the login. `on_lost` and `on_back` are called once for each session that
        ended, and when the broker is registered again.
        """
        self._on_refused = on_refused
        self._tree = tree
        self._leave = leave
        self._enter = enter
        self._give_up = give_up
        self._on_lost = on_lost
        self._on_back = on_back
        self._renewal: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch the session; one that has already expired is renewed, too."""
        self._tree.add_session_listener(self._changed)
        self._changed(self._tree.state)

    def stop(self) -> None:
        """Stop watching."""
        self._tree.remove_session_listener(self._changed)
        if self._renewal is not None:
            # A renewal that gives up calls this itself, and must continue.
            if self._renewal is not asyncio.current_task():
                self._renewal.cancel()
            self._renewal = None

    def _changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED and self._renewal is None:
            self._on_lost()
            self._renewal = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        reported = ""
        while True:
            try:
                await self._leave()
                await self._tree.start()
                await self._enter()
            except SessionExpired:
                logger.warning(
                    "new session expired before the broker was registered, opening another"
                )
                continue
            except ServiceUnavailable as failure:
                logger.warning(
                    "broker has no session with the coordination service, retrying: %s", failure
                )
                continue
            except NoPermission as failure:
                self._on_refused()
                # An operator of the service can mend it; a broker that stopped would not come back.
                if str(failure) != reported:
                    reported = str(failure)
                    logger.error("broker cannot register again, retrying: %s", reported)
                await asyncio.sleep(NO_PERMISSION_PAUSE_S)
                continue
            except BarnabasError as failure:
                await self._give_up(str(failure))
                return
            except Exception as bug:  # noqa: BLE001 - the loop reports it
                # A broker that continued would be dead for the cluster for no visible reason.
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "could not register again", "exception": bug}
                )
                await self._give_up(f"could not register again: {bug!r}")
                return
            # If the new session expired meanwhile, `_changed` left it to this task.
            if self._tree.state is not SessionState.EXPIRED:
                break
        self._renewal = None
        self._on_back()
        logger.info("broker is registered again, in a new session")


def zookeeper_tree(options: BrokerOptions) -> Coordination:
    """Return a session with the ensemble; imported here, as its library is an extra."""
    from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
    from barnabas.coordination.zookeeper.settings import settings_of

    return ZooKeeperCoordination(settings_of(options))


def embedded_tree(path: str, offline: Mapping[str, str], executor: Executor | None) -> Coordination:
    """Return the embedded tree of a single broker, in a file beside the logs at `path`.

    Raise StorageError if the directory is among those that are offline, each with its reason.
    """
    if path in offline:
        raise StorageError(
            f"{path} is offline, and topics are in its {COORDINATION_FILE}: {offline[path]}"
        )
    return EmbeddedCoordination(EmbeddedStore(f"{path}/{COORDINATION_FILE}", executor))
