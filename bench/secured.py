"""Brokers with doors of every kind, for the benchmark of security: ours and Apache Kafka's.

A secured broker listens in plain, with TLS and with SASL, on the same certificate, and knows the
user `bench` by PLAIN and by SCRAM. A plain one of ours has ACLs, quotas, both or neither.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.certificates import CIPHER, Certificates
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tools.apache_kafka import Distribution
from tools.processes import RunningBroker, environment_of, free_port, wait_for_line

from barnabas.admin.quotas import QuotaAlteration, alter_client_quotas
from barnabas.client.cluster_client import ClusterClient

USER, PASSWORD = "bench", "benchmark"
ITERATIONS = 4096
MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
LOGIN = "org.apache.kafka.common.security"
ACLS = 10_000
ACLS_AT_ONCE = 500
UNREACHED = 1e12
"""A limit: quotas are measured, and nobody is throttled."""


@dataclass(frozen=True)
class Secured:
    """A running broker and the addresses of its listeners."""

    broker: RunningBroker
    tls: str
    sasl: str

    @property
    def over_tls(self) -> RunningBroker:
        """The broker, reached with TLS."""
        return replace(self.broker, bootstrap=self.tls)


def start_secured(directory: Path, certificates: Certificates, apache: bool) -> Secured:
    """Start one of the two brokers with all listeners, and add the user."""
    ports = [free_port() for _ in range(4)]
    names = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT"]
    addresses = [f"127.0.0.1:{port}" for port in ports]
    mechanisms = ["PLAIN", *MECHANISMS]
    options = {
        "listeners": ",".join(
            f"{name}://{address}" for name, address in zip(names, addresses, strict=False)
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{LOGIN}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        **{
            f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config": (
                f"{LOGIN}.scram.ScramLoginModule required;"
            )
            for mechanism in MECHANISMS
        },
        **certificates.broker_options(),
    }
    if apache:
        advertised = options["listeners"]
        options |= {
            "listeners": f"{advertised},CONTROLLER://{addresses[3]}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": ",".join(f"{each}:{each}" for each in names)
            + ",CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": f"1@{addresses[3]}",
            "ssl.cipher.suites": CIPHER,
        }
        broker = Distribution.fetch("3.9").start(directory, port=ports[0], options=options)
    else:
        broker = start_with(directory, addresses[0], options)
    try:
        _add_user(broker.bootstrap)
    except BaseException:
        broker.stop()
        raise
    return Secured(broker, addresses[1], addresses[2])


def start_with(
    directory: Path, bootstrap: str, options: Mapping[str, str], checkout: Path | None = None
) -> RunningBroker:
    """Start our broker on a file of options: passwords do not belong on a command line."""
    directory.mkdir(parents=True)
    settings = {"log.dirs": str(directory / "data"), **options}
    properties, log = directory / "server.properties", directory / "server.log"
    properties.touch(0o600)
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = Path(sys.executable).parent / "barnabas"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(command), "start", "--config", str(properties)],
            stdout=output,
            stderr=output,
            env=environment_of(checkout),
        )
    wait_for_line(process, log, " is ready on ", 60)
    name = "Barnabas" if checkout is None else checkout.name
    return RunningBroker(name, process, bootstrap, directory / "data")


def start_plain(
    directory: Path, *, acls: bool = False, quotas: bool = False, checkout: Path | None = None
) -> RunningBroker:
    """Start our broker without encryption, with ACLs for others and itself, or with quotas."""
    bootstrap = f"127.0.0.1:{free_port()}"
    options = {"listeners": f"PLAINTEXT://{bootstrap}"}
    if acls:
        options |= {
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin",
            # The cluster itself gets no ACL, so that anyone may add those of topics.
            "allow.everyone.if.no.acl.found": "true",
        }
    broker = start_with(directory, bootstrap, options, checkout)
    try:
        if acls:
            _add_acls(bootstrap)
        if quotas:
            asyncio.run(_add_quotas(bootstrap))
    except BaseException:
        broker.stop()
        raise
    return broker


def _add_user(bootstrap: str) -> None:
    """Give the user credentials of both strengths, and wait until the broker has them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    changes = [
        UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(mechanism, ITERATIONS), PASSWORD.encode()
        )
        for mechanism in MECHANISMS.values()
    ]
    for change in changes:  # one by one: a user may be named once in a request
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result(60)
    while True:
        (asked,) = admin.describe_user_scram_credentials([USER]).values()
        told = asked.result(60)
        if len(told.scram_credential_infos) == len(MECHANISMS):
            return


def _add_acls(bootstrap: str) -> None:
    """Add the ACLs of a cluster with many teams, and those of the clients that are measured."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [_acl("bench-", "User:ANONYMOUS", AclOperation.ALL)]
    for number in range(ACLS - 1):
        operation = AclOperation.READ if number % 3 else AclOperation.WRITE
        wanted.append(_acl(f"team-{number % 97}.service-{number}", f"User:u{number}", operation))
    for first in range(0, ACLS, ACLS_AT_ONCE):
        for done in admin.create_acls(
            wanted[first : first + ACLS_AT_ONCE], request_timeout=120
        ).values():
            done.result(120)


def _acl(prefix: str, principal: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        prefix,
        ResourcePatternType.PREFIXED,
        principal,
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


async def _add_quotas(bootstrap: str) -> None:
    """Limit every user, so that all that a quota can measure is measured."""
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    change = QuotaAlteration({"user": None}, dict.fromkeys(keys, UNREACHED))
    async with ClusterClient(bootstrap) as client:
        for outcome in await alter_client_quotas(client, [change]):
            assert outcome.error is None, outcome
