"""One broker of Apache Kafka 3.9 with four doors: plain, SASL, SASL behind TLS, and TLS both ways.

`alice` gets in with the password `secret`, or with a token that says that she is alice. Sessions of
SASL are short, so that clients have to renew them.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from tools.apache_kafka import Distribution
from tools.processes import free_port

from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OAUTH_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SESSION_MS = {"sasl_plaintext": 5000, "sasl_ssl": 1500}
"""How long those who have named themselves are believed, by door."""


@dataclass
class Doors:
    """Where the broker listens, and the files that TLS needs; a key store is key and chain."""

    plain: str
    sasl: str
    sasl_tls: str
    tls: str
    cafile: str
    certfile: str
    keyfile: str
    keystore: str


@contextmanager
def open_doors(kafka: Distribution, directory: Path) -> Iterator[Doors]:
    """Run the broker; its files go to a directory."""
    authority = trustme.CA()
    files = [str(directory / name) for name in ("ca.pem", "c.pem", "c.key", "both.pem")]
    cafile, certfile, keyfile, keystore = files
    authority.cert_pem.write_to_path(cafile)
    mine = authority.issue_cert("client@example.org")
    mine.private_key_pem.write_to_path(keyfile)
    mine.private_key_and_cert_chain_pem.write_to_path(keystore)
    Path(certfile).write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))
    ports = [free_port() for _ in range(5)]
    options = _options(ports, _keystore(authority, directory / "broker.pem"), Path(cafile))
    broker = kafka.start(directory / "data", port=ports[0], heap="512m", options=options)
    addresses = [f"127.0.0.1:{port}" for port in ports[:4]]
    try:
        asyncio.run(_add_user(addresses[0], "alice", "secret"))
        yield Doors(*addresses, *files)
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
        "delegation.token.secret.key": "token-secret",
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
            f"{prefix}.connections.max.reauth.ms": str(SESSION_MS[door]),
        }
    return options


async def _add_user(bootstrap: str, name: str, password: str) -> None:
    """Give a user SCRAM credentials of both strengths, and wait until the broker knows them."""
    salt = b"pepper-and-salt"
    async with ClusterClient(bootstrap) as client:
        for mechanism, digest in ((1, "sha256"), (2, "sha512")):
            change = ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism,
                iterations=4096,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac(digest, password.encode(), salt, 4096),
            )
            request = AlterUserScramCredentialsRequest(upsertions=[change])
            answer = await client.retrying(partial(client.send, request, CONTROLLER))
            assert [result.error_code for result in answer.results] == [0]
        async with asyncio.timeout(30):
            while True:
                told = await client.send(DescribeUserScramCredentialsRequest(users=None))
                if any(len(result.credential_infos) == 2 for result in told.results):
                    return


def unsigned_token() -> str:
    """Return a token that nobody signed, which Apache Kafka takes unless it is told otherwise."""
    now = int(time.time())  # the broker counts in whole milliseconds: never after its own time
    parts = ({"alg": "none"}, {"sub": "alice", "iat": now, "exp": now + 3600})
    return ".".join([*(_base64(json.dumps(part)) for part in parts), ""])


def _base64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
