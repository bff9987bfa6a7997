"""A broker with every security protocol and with ACLs, on a thread, and files for its clients.

`admin` is a super user, `alice` an ordinary one; both have a password for PLAIN, and get one for
SCRAM when a test sets it. The listener STRANGE has a certificate for another host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.certificates import Authority

from barnabas.broker.broker import Broker
from barnabas.config.broker import BrokerOptions
from barnabas.config.properties import write_properties
from barnabas.testing.thread import ThreadRunner

LISTENERS = {
    "INTERNAL": "SSL",
    "OPEN": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "BOTH": "SASL_SSL",
    "STRANGE": "SSL",
}
MODULES = "org.apache.kafka.common.security"
PASSWORDS = {"admin": "admin's", "alice": "se=cr,et ☂"}


def jaas(user: str, password: str, mechanism: str = "PLAIN", more: str = "") -> str:
    """Return a login as clients have it."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'{MODULES}.{module}LoginModule required username="{user}" password="{escaped}"{more};'


class Secured:
    """Where the broker listens, and who has issued its certificate."""

    def __init__(self, directory: Path, addresses: dict[str, str], ca: Path) -> None:
        self.directory = directory
        self.addresses = addresses
        self.ca = ca
        self._written = 0

    def options(self, user: str = "admin", listener: str = "BOTH") -> dict[str, str]:
        """Return the options of a client that is let in."""
        options = {
            "bootstrap.servers": self.addresses[listener],
            "security.protocol": LISTENERS[listener],
        }
        if LISTENERS[listener].startswith("SASL"):
            options["sasl.mechanism"] = "PLAIN"
            options["sasl.jaas.config"] = jaas(user, PASSWORDS[user])
        if LISTENERS[listener].endswith("SSL"):
            options["ssl.truststore.location"] = str(self.ca)
            options["ssl.truststore.type"] = "PEM"
        return options

    def file(self, options: dict[str, str], mode: int = 0o600) -> str:
        """Write options to a new file."""
        self._written += 1
        path = self.directory / f"client-{self._written}.properties"
        path.touch(mode)
        os.chmod(path, mode)  # whatever the umask
        path.write_text(write_properties(options))
        return str(path)


@contextmanager
def secured_broker(directory: Path) -> Iterator[Secured]:
    """Run a broker with its data in a directory."""
    brokers: list[Broker] = []

    def make(options: object) -> Broker:
        assert isinstance(options, dict)
        brokers.append(Broker(BrokerOptions.parse(options)))
        return brokers[0]

    authority = Authority("root")
    ca = authority.write(directory / "ca.pem")
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    login = f"{MODULES}.plain.PlainLoginModule required {users};"
    runner = ThreadRunner(make)
    runner.start(
        {
            "broker.id": "0",
            "log.dirs": str(directory / "data"),
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in LISTENERS.items()
            ),
            "inter.broker.listener.name": "INTERNAL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(
                authority.issue("broker").write_pem(directory / "broker.pem")
            ),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(ca),
            "listener.name.strange.ssl.keystore.location": str(
                authority.issue("strange", hosts=["broker.example"]).write_pem(
                    directory / "strange.pem"
                )
            ),
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl.plain.sasl.jaas.config": login,
            "listener.name.both.plain.sasl.jaas.config": login,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin;User:CN=broker",
            "delegation.token.secret.key": "of the tokens",
            "connection.failed.authentication.delay.ms": "20",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
        }
    )
    try:
        addresses = {
            endpoint.name: f"{endpoint.host}:{endpoint.port}" for endpoint in brokers[0].endpoints
        }
        yield Secured(directory, addresses, ca)
    finally:
        runner.stop()
