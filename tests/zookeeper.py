"""A real ZooKeeper for tests of several folders: where its jars are, one server per worker.

A second one asks who its clients are: by SASL, and by certificates on a port of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority
from tools.apache_kafka import Distribution, Unavailable

from barnabas.config.broker import BrokerOptions
from barnabas.testing.zookeeper import ZooKeeperServer, find_classpath, free_port

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule required"
USERS = {"broker": "s3cret", "other": "0ther"}


@pytest.fixture(scope="session")
def zookeeper_classpath() -> str:
    """Where the server's jars are; skips where there are none."""
    pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")
    try:
        found = find_classpath(Distribution.fetch("3.9").jars)
    except Unavailable:
        found = find_classpath()
    if found is None:
        pytest.skip("no ZooKeeper server: `make deps` fetches one with Apache Kafka 3.9")
    return found


@pytest.fixture(scope="session")
def zookeeper(zookeeper_classpath: str) -> Iterator[ZooKeeperServer]:
    """One server for all tests of this worker; each test has a chroot of its own."""
    with ZooKeeperServer(zookeeper_classpath) as server:
        yield server


@pytest.fixture(scope="session")
def chroots() -> Iterator[str]:
    """Nodes below parents of their own: the first test may restrict what it creates."""
    return (f"/test-{number}/tree" for number in count())


class SecuredServer:
    """The server, and options for a broker that uses it."""

    def __init__(self, classpath: str, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.authority = Authority()
        self.tls_port = free_port()
        self.own = self.authority.issue("zookeeper")
        own = self.own.write_pkcs12(folder / "server.p12", "zk")
        trusted = self.authority.write_pkcs12(folder / "server-trust.p12", "zk")
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        jaas = self._write("server-jaas.conf", f"Server {{ {MODULE} {users}; }};")
        self.server = ZooKeeperServer(
            classpath,
            settings={
                "secureClientPort": str(self.tls_port),
                "secureClientPortAddress": "127.0.0.1",
                "ssl.keyStore.location": str(own),
                "ssl.keyStore.password": "zk",
                "ssl.trustStore.location": str(trusted),
                "ssl.trustStore.password": "zk",
                "ssl.clientAuth": "want",
                "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
                **settings,
            },
            java_options=[
                "-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"-Djava.security.auth.login.config={jaas}",
            ],
        )
        self._chroots = count()

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def new_chroot(self) -> str:
        return f"/secured-{next(self._chroots)}"

    def login(self, user: str, password: str | None = None) -> dict[str, str]:
        """Return the options of a broker that logs in as `user`."""
        secret = USERS[user] if password is None else password
        text = f'Client {{ {MODULE} username="{user}" password="{secret}"; }};'
        path = self._write(f"{user}-{secret}.conf", text)
        return {"java.security.auth.login.config": str(path)}

    def options(self, chroot: str = "", *, tls: bool = False, **more: str) -> BrokerOptions:
        given: dict[str, Any] = {
            "zookeeper.connect": f"127.0.0.1:{self.tls_port if tls else self.server.port}{chroot}",
            "zookeeper.session.timeout.ms": "40000",
            "zookeeper.connection.timeout.ms": "60000",
        }
        if tls:
            given["zookeeper.ssl.client.enable"] = "true"
            given["zookeeper.ssl.truststore.location"] = str(
                self.authority.write(self.folder / "ca.pem")
            )
        return BrokerOptions.parse({**given, **more})


@pytest.fixture(scope="session")
def secured(
    zookeeper_classpath: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredServer]:
    """One server for all tests of this worker that does not change."""
    made = SecuredServer(zookeeper_classpath, tmp_path_factory.mktemp("secured"))
    with made.server:
        yield made
