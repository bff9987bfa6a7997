"""A broker with SASL in a process of its own, and raw connections to it.

Its listeners: SECURED (SASL_SSL), BARE (SASL_PLAINTEXT), SHORT (SASL_SSL, whose sessions end soon)
and CERTIFIED (SSL). Passwords are in a file that only its owner reads.
"""

from __future__ import annotations

import os
import ssl
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.certificates import Authority
from tests.unit.broker.serving import Wire, wait_for
from tests.unit.security.sasl.bearer import Issuer, jwks
from tests.unit.security.sasl.clients import ScramClient
from tools.processes import free_port

from barnabas.security.initial_users import SUFFIX, InitialUser
from barnabas.testing.process import ProcessRunner
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

SECURED, BARE, SHORT, CERTIFIED = "SECURED", "BARE", "SHORT", "CERTIFIED"
LISTENERS = {SECURED: "SASL_SSL", BARE: "SASL_PLAINTEXT", SHORT: "SASL_SSL", CERTIFIED: "SSL"}
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "alices-password"
HOST = "127.0.0.1"


class SecuredBroker:
    """One broker; `with` starts it, and ends it."""

    def __init__(self, directory: Path, session_ms: int = 60_000) -> None:
        """Describe it; `session_ms` is how long sessions on SHORT last."""
        self.issuer = Issuer("key", "RS256")
        authority = Authority("root")
        self.cafile = authority.write(directory / "ca.pem")
        (directory / "jwks.json").write_bytes(jwks(self.issuer))
        users = directory / "users"
        users.mkdir(0o700)
        alice = InitialUser.of_password("alice", PASSWORD, os.urandom)
        (users / f"alice{SUFFIX}").touch(0o600)
        (users / f"alice{SUFFIX}").write_text(alice.encode())
        self.ports = {name: free_port() for name in LISTENERS}
        self._data = directory / "data"
        self._options = {
            "broker.id": "0",
            "log.dirs": str(self._data),
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in LISTENERS.items()
            ),
            "inter.broker.listener.name": BARE,
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(
                authority.issue("broker").write_pem(directory / "broker.pem")
            ),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.cafile),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": (directory / "jwks.json").as_uri(),
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.expected.issuer": "https://issuer.example",
            "sasl.oauthbearer.clock.skew.seconds": "0",
            "barnabas.initial.users.dir": str(users),
            "connection.failed.authentication.delay.ms": "20",
            "listener.name.short.connections.max.reauth.ms": str(session_ms),
            "offsets.topic.replication.factor": "1",
            "socket.listen.backlog.size": "1000",  # crowds come at once
        }
        for name in (SECURED, BARE, SHORT):
            self._options[f"listener.name.{name.lower()}.plain.sasl.jaas.config"] = (
                f'{PLAIN_LOGIN} username="alice" password="{PASSWORD}" user_alice="{PASSWORD}";'
            )
        self._runner = ProcessRunner()
        self._read = 0

    def __enter__(self) -> Self:
        self._runner.start(self._options)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._runner.stop()

    def context(self) -> ssl.SSLContext:
        """Return a context that trusts the broker."""
        return ssl.create_default_context(cafile=self.cafile)

    def connect(self, listener: str = BARE) -> Wire:
        """Open a connection, with TLS where the listener has it."""
        wire = self.connect_plain(listener)
        if LISTENERS[listener] != "SASL_PLAINTEXT":
            wire.socket = self.context().wrap_socket(wire.socket, server_hostname=HOST)
        return wire

    def connect_plain(self, listener: str) -> Wire:
        """Open a connection without TLS, whatever the listener has."""
        return Wire((HOST, self.ports[listener]))

    def token(self, **changed: Any) -> str:
        """Return a bearer token; a claim of None is left out."""
        return self.issuer.sign(self.claims(**changed))

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a good token, some of them changed."""
        now_s = int(time.time())
        claims = {
            "sub": "alice",
            "iat": now_s - 10,
            "exp": now_s + 3600,
            "aud": "kafka",
            "iss": "https://issuer.example",
            **changed,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def memory_kib(self) -> int:
        """Return the broker's resident memory."""
        status = Path(f"/proc/{self._runner.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1])

    def wait_until_left(self, count: int) -> None:
        """Wait until the broker has no more open files and connections than so many."""
        wait_for(lambda: self.open_files() <= count, f"no more than {count} are open")

    def open_files(self) -> int:
        """Return how many files and connections the broker has open."""
        return len(list(Path(f"/proc/{self._runner.pid}/fd").iterdir()))

    @property
    def log(self) -> str:
        """Return everything that was logged."""
        return self._data.with_name(f"{self._data.name}.err").read_text()

    def complaints(self) -> list[str]:
        """Return the lines about connections that were logged since the last call."""
        lines = self.log.splitlines()
        new, self._read = lines[self._read :], len(lines)
        return [line for line in new if "connection from" in line]

    def expect_line(self, text: str) -> None:
        """Wait for the one line that is logged of a connection."""
        before = self._read

        def complaints() -> list[str]:
            self._read = before
            return self.complaints()

        wait_for(complaints, f"a line with {text!r}")
        lines = complaints()
        assert len(lines) == 1, lines
        assert text in lines[0], lines


def handshake(wire: Wire, mechanism: str = "PLAIN", version: int = 1) -> Any:
    """Choose a mechanism."""
    return wire.ask(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(wire: Wire, token: bytes) -> Any:
    """Send a token."""
    return wire.ask(SaslAuthenticateRequest(auth_bytes=token), 2)


def log_in(wire: Wire, password: str = PASSWORD) -> Any:
    """Log in by PLAIN; return the answer."""
    assert handshake(wire).error_code == 0
    return authenticate(wire, f"\0alice\0{password}".encode())


def log_in_by_scram(wire: Wire, password: str = PASSWORD) -> Any:
    """Log in by SCRAM; return the last answer."""
    assert handshake(wire, "SCRAM-SHA-256").error_code == 0
    client = ScramClient("sha256", "alice", password)
    return authenticate(wire, client.final(authenticate(wire, client.first()).auth_bytes))
