"""The coordination tree in ZooKeeper, for the old forms of Kafka's tools (`--zookeeper`).

Most of them only need the brokers, which are registered there; what works without a broker is done
in the tree.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from barnabas.model.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    from barnabas.coordination.contract import Coordination

Result = TypeVar("Result")

DEPRECATED = "Warning: --zookeeper is deprecated, and will be removed in a future version of Kafka."
CONNECTION_TIMEOUT_MS = "10000"


class NoBrokerRegistered(BarnabasError):
    """A tree without brokers, or without those that can be used."""


def on_tree(
    connect: str,
    work: Callable[[Coordination], Awaitable[Result]],
    properties: Mapping[str, str] | None = None,
) -> Result:
    """Open a session with ZooKeeper, do the work, close; `properties` are those of a broker."""
    from barnabas.cli.session import on_loop
    from barnabas.config.broker import BrokerOptions
    from barnabas.coordination.contract import ServiceUnavailable

    options = BrokerOptions.parse(
        {
            "zookeeper.connection.timeout.ms": CONNECTION_TIMEOUT_MS,
            **(properties or {}),
            "zookeeper.connect": connect,
        }
    )
    try:
        from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
        from barnabas.coordination.zookeeper.settings import settings_of
    except ImportError as failure:
        raise ConfigError(
            f"--zookeeper {connect}: kazoo is not installed; "
            "use: pip install 'barnabas[zookeeper]', or --bootstrap-server"
        ) from failure
    settings = settings_of(options)

    async def session() -> Result:
        tree = ZooKeeperCoordination(settings)
        try:
            await tree.start()
        except ServiceUnavailable as failure:
            failure.add_note("brokers without ZooKeeper are reached by --bootstrap-server")
            raise
        try:
            return await work(tree)
        finally:
            await tree.close()

    return on_loop(session())


def brokers_in(connect: str, protocol: str = "PLAINTEXT") -> str:
    """Return the addresses of the brokers that are registered, for `--bootstrap-server`."""
    from barnabas.metadata.tree_schema import BROKER_IDS, BrokerRegistration, broker_path

    async def read(tree: Coordination) -> list[str]:
        from barnabas.coordination.contract import NoNode

        try:
            paths = [broker_path(int(name)) for name in await tree.children(BROKER_IDS)]
        except NoNode:
            return []
        found = await tree.get_many(sorted(paths))
        return [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            for path, node in zip(sorted(paths), found, strict=True)
            if node is not None
            for registration in [BrokerRegistration.decode(path, node[0])]
            for name, host, port in registration.endpoints
            if registration.protocols.get(name) == protocol
        ]

    addresses = on_tree(connect, read)
    if not addresses:
        raise NoBrokerRegistered(
            f"--zookeeper {connect}: no broker with a listener of {protocol} is registered there; "
            "start one, or use --bootstrap-server"
        )
    return ",".join(addresses)


def properties_of(path: str | None) -> dict[str, str]:
    """Return the properties in a file of broker options, such as that of `--zk-tls-config-file`."""
    from barnabas.config.properties import read_properties

    return {} if path is None else dict(read_properties(Path(path).read_text("utf-8")))
