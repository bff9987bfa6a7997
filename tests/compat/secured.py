"""A broker with SASL, started as users start it, and what clients need to log in.

`alice` has one password for PLAIN and SCRAM. Tokens are signed by a key of the test, except on the
listener UNSIGNED, for kcat, which cannot sign. Sessions on SHORT end after a second.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.certificates import Authority
from tests.unit.security.sasl.bearer import Issuer, jwks
from tools.processes import wait_for_line

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
PASSWORDS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD, WRONG = "se=cr,et ☂", "hush-hush"
SESSION_MS = 1500
LISTENERS = ["OPEN", "SASL", "SHORT", "UNSIGNED", "ENCRYPTED"]
PROTOCOLS = {"OPEN": "PLAINTEXT", "ENCRYPTED": "SASL_SSL"}
"""Those of the listeners that are not SASL_PLAINTEXT."""


@dataclass
class Secured:
    """Where the broker listens, and who signs its tokens."""

    addresses: dict[str, str]
    issuer: Issuer
    log: Path
    cafile: Path
    """The authority behind the broker's certificate, on the listener ENCRYPTED."""

    def token(self, name: str = "alice", lifetime_s: float = 3600) -> str:
        """Return a token; with a negative lifetime it has expired."""
        now_s = time.time()
        claims: dict[str, Any] = {"sub": name, "iat": now_s - 3600, "exp": now_s + lifetime_s}
        return self.issuer.sign({**claims, "aud": "kafka", "iss": "https://issuer.example"})


@contextmanager
def secured_broker(directory: Path) -> Iterator[Secured]:
    """Run a broker; its options, with the passwords, are in a file that only its owner reads."""
    issuer = Issuer("key", "ES256")
    authority = Authority("root")
    (directory / "jwks.json").write_bytes(jwks(issuer))
    options = {
        "log.dirs": str(directory / "data"),
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(
            f"{name}:{PROTOCOLS.get(name, 'SASL_PLAINTEXT')}" for name in LISTENERS
        ),
        "inter.broker.listener.name": "OPEN",
        "listener.name.encrypted.ssl.keystore.type": "PEM",
        "listener.name.encrypted.ssl.keystore.location": str(
            authority.issue("broker").write_pem(directory / "broker.pem")
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": (directory / "jwks.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://issuer.example",
        "sasl.oauthbearer.clock.skew.seconds": "0",
        "listener.name.short.connections.max.reauth.ms": str(SESSION_MS),
        "listener.name.unsigned.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.unsigned.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
            "OAuthBearerUnsecuredValidatorCallbackHandler"
        ),
        "delegation.token.secret.key": "token-secret",
        "group.initial.rebalance.delay.ms": "100",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    for name in ("sasl", "short", "encrypted"):
        options[f"listener.name.{name}.plain.sasl.jaas.config"] = (
            f'{PLAIN_LOGIN} user_alice="{PASSWORD}";'
        )
    file = directory / "server.properties"
    file.touch(0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    command = [str(Path(sys.executable).parent / "barnabas"), "start", "--config", str(file)]
    log = directory / "broker.out"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for_line(process, log, "is ready on", 60)
        addresses = dict(re.findall(r"(\w+)://(127\.0\.0\.1:\d+)", log.read_text()))
        secured = Secured(addresses, issuer, log, authority.write(directory / "ca.pem"))
        _add_users(addresses["OPEN"])
        yield secured
    finally:
        process.terminate()
        process.wait(30)


def _add_users(bootstrap: str) -> None:
    """Give alice credentials of both SCRAM mechanisms, by a client that we did not write."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    changes = [
        UserScramCredentialUpsertion(
            "alice", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
        )
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for change in changes:
        for future in admin.alter_user_scram_credentials([change]).values():
            assert future.result(30) is None
    described = admin.describe_user_scram_credentials(["alice"])["alice"].result(30)
    found = {info.mechanism.name: info.iterations for info in described.scram_credential_infos}
    assert found == {"SCRAM_SHA_256": 4096, "SCRAM_SHA_512": 4096}


def is_authentication_failure(error: KafkaError | None) -> bool:
    """Return whether librdkafka reports that it was not let in."""
    return error is not None and error.code() == KafkaError._AUTHENTICATION


def fingerprint(text: str) -> str:
    """Return a name for a test's own resources."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
