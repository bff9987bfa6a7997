"""Our client at the door of Apache Kafka: every mechanism, TLS both ways, bounded sessions.

One broker of Apache Kafka 3.9 has a plain listener, one with SASL, one with both SASL and TLS, and
one with TLS that asks clients for certificates.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, free_port

from barnabas.client.errors import AuthenticationFailedError, NetworkError
from barnabas.client.switchboard import CONTROLLER, Switchboard
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.request_errors import IllegalSaslStateError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)

pytestmark = pytest.mark.interop

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SESSION_MS = 1500


@dataclass
class Doors:
    """Where the broker listens, and the files that its TLS needs."""

    broker: RunningBroker
    plain: str
    sasl: str
    sasl_tls: str
    tls: str
    cafile: str
    certfile: str
    keyfile: str


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("doors")
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    authority = trustme.CA()
    cafile, certfile, keyfile = (directory / name for name in ("ca.pem", "c.pem", "c.key"))
    authority.cert_pem.write_to_path(str(cafile))
    mine = authority.issue_cert("client@example.org")
    mine.private_key_pem.write_to_path(str(keyfile))
    certfile.write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))
    keystore = _keystore(authority, directory / "broker.pem")
    ports = [free_port() for _ in range(5)]
    broker = kafka.start(
        directory / "data",
        port=ports[0],
        heap="512m",
        options=_options(ports, keystore, cafile),
    )
    plain, sasl, sasl_tls, tls = (f"127.0.0.1:{port}" for port in ports[:4])
    try:
        running = Doors(
            broker, plain, sasl, sasl_tls, tls, str(cafile), str(certfile), str(keyfile)
        )
        asyncio.run(_add_user(plain, "alice", "secret"))
        yield running
    finally:
        broker.stop()


def _keystore(authority: trustme.CA, path: Path) -> Path:
    """Write the broker's certificate and key as Java wants them: PKCS 8 in PEM."""
    issued = authority.issue_cert("127.0.0.1", "localhost")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return path


def _options(ports: list[int], keystore: Path, cafile: Path) -> dict[str, str]:
    listeners = ["PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL", "CONTROLLER"]
    addresses = [f"{name}://127.0.0.1:{port}" for name, port in zip(listeners, ports, strict=True)]
    protocols = {name: name for name in listeners} | {"CONTROLLER": "PLAINTEXT"}
    options = {
        "listeners": ",".join(addresses),
        "advertised.listeners": ",".join(addresses[:4]),
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "controller.quorum.voters": f"1@127.0.0.1:{ports[4]}",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(cafile),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    for door in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{door}"
        options |= {
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f"{prefix}.plain.sasl.jaas.config": f'{PLAIN_LOGIN} user_alice="secret";',
            f"{prefix}.scram-sha-256.sasl.jaas.config": f"{SCRAM_LOGIN};",
            f"{prefix}.scram-sha-512.sasl.jaas.config": f"{SCRAM_LOGIN};",
            f"{prefix}.oauthbearer.sasl.jaas.config": (
                f'{OAUTH_LOGIN} unsecuredLoginStringClaim_sub="broker";'
            ),
            f"{prefix}.connections.max.reauth.ms": str(SESSION_MS),
        }
    return options


async def _add_user(bootstrap: str, name: str, password: str) -> None:
    """Give a user SCRAM credentials of both strengths, and wait until the broker knows them."""
    salt = b"pepper-and-salt"
    async with Switchboard(bootstrap) as board:
        for mechanism, digest in ((1, "sha256"), (2, "sha512")):
            change = ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism,
                iterations=4096,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, 4096),
            )
            request = AlterUserScramCredentialsRequest(upsertions=[change])
            answer = await board.retrying(partial(board.send, request, CONTROLLER))
            assert [result.error_code for result in answer.results] == [0]
        async with asyncio.timeout(30):
            while True:
                told = await board.send(DescribeUserScramCredentialsRequest(users=None))
                if any(len(result.credential_infos) == 2 for result in told.results):
                    return


class Unsecured:
    """Makes tokens that are not signed, which Apache Kafka accepts unless it is told otherwise."""

    def token(self) -> str:
        now = time.time()
        parts = ({"alg": "none"}, {"sub": "alice", "iat": now, "exp": now + 3600})
        return ".".join([*(_base64(json.dumps(part)) for part in parts), ""])


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


ALICE = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}
MECHANISMS: dict[str, dict[str, Any]] = {
    "PLAIN": ALICE,
    "SCRAM-SHA-256": ALICE,
    "SCRAM-SHA-512": ALICE,
    "OAUTHBEARER": {"sasl_oauth_token_provider": Unsecured()},
}


def enter(
    bootstrap: str,
    client: Callable[[Switchboard], Awaitable[Any]] | None = None,
    **options: Any,
) -> Any:
    """Go through a door; return the brokers' ids, or what `client` does."""

    async def conversation() -> Any:
        given = {"bootstrap_servers": bootstrap, **options}
        board = Switchboard.from_options(parse_client_options(CommonOptions, given))
        async with board:
            if client is not None:
                return await client(board)
            return sorted((await board.retrying(board.refresh)).brokers)

    return asyncio.run(conversation())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_opens_the_door(doors: Doors, mechanism: str) -> None:
    options = {"sasl_mechanism": mechanism, **MECHANISMS[mechanism]}
    assert enter(doors.sasl, security_protocol="SASL_PLAINTEXT", **options) == [1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_opens_the_door_behind_tls(doors: Doors, mechanism: str) -> None:
    options = {"sasl_mechanism": mechanism, **MECHANISMS[mechanism], "ssl_cafile": doors.cafile}
    assert enter(doors.sasl_tls, security_protocol="SASL_SSL", **options) == [1]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused(doors: Doors, mechanism: str) -> None:
    wrong = {"sasl_plain_username": "alice", "sasl_plain_password": "wrong"}
    with pytest.raises(
        AuthenticationFailedError, match=r"refused our credentials .*Authentication"
    ):
        enter(doors.sasl, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **wrong)


class Rubbish:
    def token(self) -> str:
        return "rubbish"


def test_a_wrong_token_is_refused(doors: Doors) -> None:
    with pytest.raises(AuthenticationFailedError, match="refused our credentials"):
        enter(
            doors.sasl,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Rubbish(),
        )


def test_certificates_of_both_sides(doors: Doors) -> None:
    own = {"ssl_cafile": doors.cafile, "ssl_certfile": doors.certfile, "ssl_keyfile": doors.keyfile}
    assert enter(doors.tls, security_protocol="SSL", **own) == [1]


def test_a_client_without_a_certificate_is_turned_away(doors: Doors) -> None:
    async def client(board: Switchboard) -> None:
        await board.refresh()

    with pytest.raises(NetworkError, match=r"certificate|alert|closed by the broker|reset"):
        enter(doors.tls, client, security_protocol="SSL", ssl_cafile=doors.cafile)


def test_a_broker_that_nobody_vouches_for_is_not_trusted(doors: Doors) -> None:
    with pytest.raises(AuthenticationFailedError, match="its certificate is refused"):
        enter(doors.sasl_tls, security_protocol="SASL_SSL", **ALICE)


def test_a_plain_client_at_a_door_with_tls_gets_a_hint(doors: Doors) -> None:
    async def client(board: Switchboard) -> None:
        await board.refresh()

    with pytest.raises(Exception, match="perhaps it expects TLS"):
        enter(doors.tls, client)


def test_a_bounded_session_is_renewed_on_the_same_connection(doors: Doors) -> None:
    async def client(board: Switchboard) -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        await board.refresh()
        connection = await board.connection(1)
        started, count = loop.time(), 0
        while loop.time() - started < 2.5 * SESSION_MS / 1000:
            await board.refresh()
            await connection.send(AlterUserScramCredentialsRequest())
            count += 1
        assert not connection.closed
        assert await board.connection(1) is connection
        return count, connection.traffic.opened

    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256", **ALICE}
    count, opened = enter(doors.sasl, client, **options)
    assert count > 10
    assert opened == 1


def test_sasl_at_a_door_without_it_points_to_the_option(doors: Doors) -> None:
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **ALICE}
    with pytest.raises(IllegalSaslStateError, match=r"see security\.protocol"):
        enter(doors.plain, **options)
