"""How a broker enters the coordination tree: the cluster's id, its own id, its registration."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import Coordination, NodeExists, NoNode
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import ConfigError
from barnabas.model.ids import new_uuid, uuid_text

logger = logging.getLogger("barnabas.registration")

FEATURE = "/feature"
FEATURES = nodes.compact({"features": {}, "version": 2, "status": 1})
"""No feature is versioned in a cluster of this kind; Kafka's tools look for the node all the
same.
"""


class Registration:
    """What a broker writes about itself."""

    def __init__(
        self,
        coordination: Coordination,
        random_bytes: Callable[[int], bytes],
        session_timeout_ms: int,
    ) -> None:
        self._tree = coordination
        self._session_timeout_ms = session_timeout_ms
        self._random_bytes = random_bytes

    async def cluster_id(self, stored: str | None, *, private: bool = True) -> str:
        """Return the cluster's id, making one for a new cluster; it must be the stored one.

        `private` says that the tree is this broker's own: one that was lost gets the stored id. A
        tree that others use and that is new is more likely the wrong one.
        """
        known = await self._tree.exists(nodes.CLUSTER_ID) is not None
        if not known and stored is not None and not private:
            raise ConfigError(
                f"the data directory belongs to cluster {stored}, but the ZooKeeper tree holds "
                "none: is --data-dir or the chroot of --zookeeper the wrong one?"
            )
        for path in nodes.PERSISTENT_PATHS:
            if await self._tree.exists(path) is None:
                await self._create(path)
        if await self._tree.exists(FEATURE) is None:
            await self._create(FEATURE, FEATURES)
        if not known:
            # A directory that knows its cluster keeps it when the coordination tree is new.
            fresh = stored or uuid_text(new_uuid(self._random_bytes))
            await self._create(nodes.CLUSTER_ID, nodes.encode_cluster_id(fresh))
        data, _ = await self._tree.get(nodes.CLUSTER_ID)
        cluster_id = nodes.decode_cluster_id(data)
        if stored is not None and stored != cluster_id:
            raise ConfigError(
                f"the data directory belongs to cluster {stored}, not to {cluster_id}: "
                "is --data-dir or --zookeeper the wrong one?"
            )
        return cluster_id

    async def broker_id(self, options: BrokerOptions, stored: str | None) -> int:
        """Return the configured id, the stored one, or a new one from the cluster's sequence."""
        configured = options.broker_id
        if stored is not None:
            if configured >= 0 and int(stored) != configured:
                raise ConfigError(
                    f"broker.id={configured}: the data directory belongs to broker {stored}"
                )
            return int(stored)
        if configured >= 0:
            return configured
        stat = await self._tree.set(nodes.BROKER_SEQUENCE, b"")
        return stat.version + options.reserved_broker_max_id

    async def register(self, broker_id: int, registration: nodes.BrokerRegistration) -> int:
        """Create this broker's ephemeral node; return its epoch, the id of the node's creation."""
        path = nodes.broker_path(broker_id)
        while True:
            try:
                await self._tree.create(path, registration.encode(), ephemeral=True)
                break
            except NodeExists as taken:
                # After a crash the session of this broker's last life may not have expired yet.
                if not await self.wait_until_gone(path):
                    raise ConfigError(
                        f"broker.id={broker_id}: another live broker has registered under this id"
                    ) from taken
        stat = await self._tree.exists(path)
        if stat is None:
            raise NoNode(path, f"the registration {path} is gone again")
        return stat.czxid

    async def update(self, broker_id: int, registration: nodes.BrokerRegistration) -> None:
        """Overwrite this broker's node; raise NoNode if this session has none."""
        path = nodes.broker_path(broker_id)
        stat = await self._tree.exists(path)
        if stat is None or stat.ephemeral_owner != self._tree.session_id:
            raise NoNode(path, f"the registration {path} is not of this session")
        await self._tree.set(path, registration.encode(), stat.version)

    async def wait_until_gone(self, path: str) -> bool:
        """Wait for a node of an older session to go; False if it outlives every such session."""
        gone = asyncio.Event()
        if await self._tree.exists(path, watch=lambda _: gone.set()) is None:
            return True
        try:
            async with asyncio.timeout(self._session_timeout_ms * 1.5 / 1000):
                await gone.wait()
        except TimeoutError:
            return False
        return True

    def default_host(self) -> str:
        """Return a name under which other machines may find this one."""
        return socket.gethostname()

    async def _create(self, path: str, data: bytes = b"") -> None:
        try:
            await self._tree.create(path, data, make_parents=True)
        except NodeExists:
            logger.debug("%s was created by another broker meanwhile", path)
