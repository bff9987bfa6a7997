"""The options of a secured broker: those that all brokers share, and its own.

Clients log in by SCRAM, whose users are in the coordination tree. Brokers log in to each other by
PLAIN inside TLS: their password is in the options of each, so that nothing in the tree can lock
them out, and the first broker can be joined before there is any user.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.config.jaas import quoted
from barnabas.model.errors import ConfigError

SASL_SSL, SSL, SASL_PLAINTEXT = PROTOCOLS = ("SASL_SSL", "SSL", "SASL_PLAINTEXT")
CLIENT_AUTH = ("none", "requested", "required")
ADMIN, BROKER = "admin", "broker"
"""Super users: who administers the cluster, and the brokers themselves."""
SECRET_BYTES = 24
LOOPBACK = ("127.0.0.1", "localhost", "::1")

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def new_secret(random_bytes: Callable[[int], bytes]) -> str:
    """Return a secret of letters and digits that needs no quotes anywhere."""
    while True:
        secret = urlsafe_b64encode(random_bytes(SECRET_BYTES)).decode()
        if secret.isalnum():  # nothing that begins like an option of a command
            return secret


def shared_options(
    protocol: str,
    *,
    truststore: Path,
    users: Path | None,
    client_auth: str = "none",
    zookeeper: str | None = None,
    random_bytes: Callable[[int], bytes],
) -> dict[str, str]:
    """Return the options that are the same on all brokers, with new secrets."""
    options: dict[str, str] = {}
    if zookeeper is not None:
        options["zookeeper.connect"] = zookeeper
    options["security.inter.broker.protocol"] = protocol
    if protocol != SASL_PLAINTEXT:
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(truststore),
        }
    if protocol == SSL:  # the certificate says who a client is
        options |= {
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": r"RULE:^CN=([^,+]+).*$/$1/,DEFAULT",
        }
    else:
        listener = f"listener.name.{protocol.lower()}"
        if client_auth != "none":
            options[f"{listener}.ssl.client.auth"] = client_auth
        password = quoted(new_secret(random_bytes))
        options |= {
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"{listener}.plain.sasl.jaas.config": (
                f"{_PLAIN} username={quoted(BROKER)} password={password} user_{BROKER}={password};"
            ),
            f"{listener}.scram-sha-256.sasl.jaas.config": f"{_SCRAM};",
            f"{listener}.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
        }
    options |= {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{ADMIN};User:{BROKER}",
        "allow.everyone.if.no.acl.found": "false",
        "delegation.token.secret.key": new_secret(random_bytes),
        "password.encoder.secret": new_secret(random_bytes),
    }
    if users is not None:
        options["barnabas.initial.users.dir"] = str(users)
    return options


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker is found: the first host is advertised, all are in its certificate."""

    broker_id: int
    hosts: tuple[str, ...]
    port: int

    @property
    def advertised(self) -> str:
        """Return host and port for clients."""
        return f"{in_url(self.hosts[0])}:{self.port}"

    @property
    def certified(self) -> tuple[str, ...]:
        """Return the hosts of the certificate; all names of this machine's loopback, or none."""
        if self.hosts[0] in LOOPBACK:
            return tuple(dict.fromkeys((*self.hosts, *LOOPBACK)))
        return self.hosts


def own_options(
    address: BrokerAddress, protocol: str, keystore: Path, data_dir: str
) -> dict[str, str]:
    """Return the options of one broker."""
    host = address.hosts[0]
    bound = in_url(host) if host in LOOPBACK else ""  # otherwise: every interface
    return {
        "broker.id": str(address.broker_id),
        "listeners": f"{protocol}://{bound}:{address.port}",
        "advertised.listeners": f"{protocol}://{address.advertised}",
        "log.dirs": data_dir,
        "ssl.keystore.location": str(keystore),
    }


def addresses(
    count: int, hosts: Sequence[tuple[str, ...]], port: int, first_id: int = 1
) -> list[BrokerAddress]:
    """Return the addresses of `count` brokers; on one host they have ports of their own."""
    if len(hosts) not in (1, count):
        raise ConfigError(
            f"--host is given {len(hosts)} times for {count} brokers: must be once for all, on "
            "successive ports, or once for each"
        )
    shared = len(hosts) == 1
    last = port + count - 1 if shared else port
    if not 1 <= port <= last <= 65_535:
        raise ConfigError(f"--port {port}: ports {port} to {last} must be within 1 and 65535")
    return [
        BrokerAddress(
            first_id + number,
            hosts[0] if shared else hosts[number],
            port + number if shared else port,
        )
        for number in range(count)
    ]


def protocol_of(options: Mapping[str, str]) -> str:
    """Return the security protocol of brokers with these options."""
    return options["security.inter.broker.protocol"]


def in_url(host: str) -> str:
    """Return a host as it stands before a port."""
    return f"[{host}]" if ":" in host else host
