"""Secrets stay secret: in logs at every level, the audit log, answers, exceptions and files.

A broker is given secrets of every kind, by its options and by requests, good and bad ones. Then
everything that others can see is searched for each of them, in all forms that it could have.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
import traceback
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Issued
from tests.unit.broker.encrypted import BROKER, ROOT, EncryptedServing
from tests.unit.broker.handlers.test_configs import BROKER as BROKER_RESOURCE
from tests.unit.broker.handlers.test_configs import SET, TOPIC, change, describe
from tests.unit.broker.network.test_authentication import (
    FAILED,
    LOGIN,
    authenticate,
    handshake,
    log_in,
    scram,
    set_password,
)
from tests.unit.broker.serving import Wire, create_topic
from tests.unit.security.sasl.bearer import Issuer, jwks

from barnabas.model.errors import ConfigError
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = pytest.mark.system

ADMIN, ALICE, CHANGED, CAROL = (
    "secret-of-admin",
    "secret-of-alice",
    "secret-changed",
    "secret-of-carol",
)
STORE, ENCODER, TOKENS = "secret-of-the-store", "secret-of-the-encoder", "secret-of-the-tokens"
WRONG = "secret-that-is-wrong"
SECRETS = (ADMIN, ALICE, CHANGED, CAROL, STORE, ENCODER, TOKENS, WRONG)
JAAS = "listener.name.secured.plain.sasl.jaas.config"
ANY_OPTION = "listener.name.secured.some.unknown.password"
DYNAMIC = "listener.name.secured.ssl.keystore.password"


class Scene(EncryptedServing):
    """A broker with every mechanism that has secrets, and a key store with a password."""

    def __init__(self, directory: Path) -> None:
        self.issuer = Issuer("key", "ES256")
        (directory / "jwks.json").write_bytes(jwks(self.issuer))
        options = {
            "listeners": "SECURED://127.0.0.1:0",
            "listener.security.protocol.map": "SECURED:SASL_SSL",
            "inter.broker.listener.name": "SECURED",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.oauthbearer.jwks.endpoint.url": (directory / "jwks.json").as_uri(),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": BROKER.write_pkcs12(directory / "broker.p12", STORE),
            "ssl.keystore.password": STORE,
            "password.encoder.secret": ENCODER,
            "delegation.token.secret.key": TOKENS,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin",
            "connection.failed.authentication.delay.ms": "1",
            JAAS: users(ALICE),
            ANY_OPTION: WRONG,
        }
        super().__init__(directory, options)


def users(password: str) -> str:
    return (
        f'{LOGIN} username="admin" password="{ADMIN}" user_admin="{ADMIN}" user_alice="{password}";'
    )


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    old = os.umask(0o022)
    try:
        with Scene(tmp_path) as running:
            yield running
            running.lines.clear()  # rejected logins, of which only the content matters
    finally:
        os.umask(old)


def forms(secret: str | bytes) -> set[bytes]:
    """Return the ways in which a secret could be written by mistake."""
    raw = secret.encode() if isinstance(secret, str) else secret
    return {
        raw,
        raw.hex().encode(),
        raw.hex(" ").encode(),
        b64encode(raw).rstrip(b"="),
        repr(raw)[2:-1].encode(),
    }


def assert_hidden(where: str, text: str | bytes, secrets: list[str | bytes]) -> None:
    found = text.encode() if isinstance(text, str) else text
    for secret in secrets:
        for form in forms(secret):
            assert form not in found, f"{where} has a secret: {form!r}"


def test_no_secret_is_seen_by_others(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []
    token = scene.issuer.sign({"sub": "eve", "iat": 1, "exp": 2})
    with scene.connect_encrypted() as admin:
        log_in(admin, "admin", ADMIN)
        set_password(admin, "carol", CAROL)
        create_topic(admin, "t")
        password = delegation_token(admin)
        grant_nothing(admin)
        told += refused_logins(scene, token)
        told += changes(admin)
        told += descriptions(admin)
        assert len(told) > 30
    keys: list[str | bytes] = [*SECRETS, token, token.split(".")[2], password, *of_carol()]
    keys += [pem_body(BROKER)]
    assert any("authentication failed" in record.getMessage() for record in caplog.records)
    assert any(record.name == "barnabas.audit" for record in caplog.records)
    for record in caplog.records:
        assert_hidden("the log", record.getMessage(), keys)
        if record.exc_info:
            assert_hidden(
                "a traceback", "".join(traceback.format_exception(*record.exc_info)), keys
            )
    for text in told:
        assert_hidden("an answer", text, keys)
    assert_hidden("the options", repr(scene.broker.options), keys)
    check_files(scene, keys)


def delegation_token(admin: Wire) -> bytes:
    """Create a token; the one who asked for it may see it, and nobody else."""
    made = admin.ask(CreateDelegationTokenRequest(max_lifetime_ms=60_000, renewers=[]), 2)
    assert made.error_code == 0
    shown = admin.ask(DescribeDelegationTokenRequest(owners=None), 2)
    assert [bytes(each.hmac) for each in shown.tokens] == [bytes(made.hmac)]
    return bytes(made.hmac)


def grant_nothing(admin: Wire) -> None:
    """Let the audit log have a change to tell of."""
    acl = AclCreation(
        resource_type=2,
        resource_name="t",
        principal="User:eve",
        host="*",
        operation=3,
        permission_type=2,
    )
    (result,) = admin.ask(CreateAclsRequest(creations=[acl]), 3).results
    assert result.error_code == 0


def refused_logins(scene: Scene, token: str) -> list[str]:
    """Fail to log in, in all ways, and be denied after a good one; return what clients are told."""
    told = []
    for mechanism, sent in [
        ("PLAIN", f"\0alice\0{WRONG}".encode()),
        ("PLAIN", WRONG.encode()),
        ("PLAIN", f"\0{WRONG}\0".encode()),
        ("PLAIN", f"other\0alice\0{ALICE}".encode()),
        ("SCRAM-SHA-256", f"n,,n=carol,r={WRONG},".encode()),
        ("OAUTHBEARER", WRONG.encode()),
        ("OAUTHBEARER", f"n,,\1auth=Bearer {token}\1\1".encode()),
    ]:
        with scene.connect_encrypted() as wire:
            handshake(wire, mechanism)
            answer = authenticate(wire, sent)
            if answer.error_code == 0:
                told.append(repr(answer))
                answer = authenticate(wire, b"\1")
            assert answer.error_code == FAILED, mechanism
            told.append(repr(answer))
    with scene.connect_encrypted() as wire:
        told.append(repr(scram(wire, "carol", WRONG)))
    with scene.connect_encrypted() as wire:
        handshake(wire, version=0)
        wire.socket.sendall(f"\0alice\0{ALICE}".encode())  # without its size
        wire.expect_close()
    with scene.connect() as wire:
        wire.socket.sendall(f"\0alice\0{ALICE}".encode())  # nor in TLS
        wire.expect_close()
    with scene.connect_encrypted() as wire:
        log_in(wire, "alice", ALICE)
        told.append(repr(wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)))
        told.append(repr(describe(wire, BROKER_RESOURCE, "0")))
    return told


def changes(admin: Wire) -> list[str]:
    """Change secrets, rightly and wrongly; return the answers."""
    results = [
        change(admin, BROKER_RESOURCE, "0", (JAAS, SET, users(CHANGED))),
        change(admin, BROKER_RESOURCE, "0", (DYNAMIC, SET, STORE)),
    ]
    assert [each.error_code for each in results] == [0, 0], results
    wrong = [
        (JAAS, f"no login module {WRONG}"),
        (JAAS, f'{LOGIN} user_alice="{WRONG}'),
        (DYNAMIC, WRONG),
        ("listener.name.secured.ssl.keystore.key", BROKER.key_pem),
        ("password.encoder.secret", WRONG),
    ]
    refused = [change(admin, BROKER_RESOURCE, "0", (name, SET, value)) for name, value in wrong]
    assert all(each.error_code for each in refused), refused
    return [repr(each) for each in (*results, *refused)]


def descriptions(admin: Wire) -> list[str]:
    """Return every option of the broker, the cluster and a topic, as described to a super user."""
    told = []
    for kind, name in ((BROKER_RESOURCE, "0"), (BROKER_RESOURCE, ""), (TOPIC, "t")):
        result = describe(admin, kind, name, include_synonyms=True, include_documentation=True)
        assert result.error_code == 0
        told += [repr(each) for each in result.configs]
    named: dict[str, Any] = {
        each.name: each for each in describe(admin, BROKER_RESOURCE, "0").configs
    }
    for option in (JAAS, DYNAMIC):
        assert (named[option].value, named[option].is_sensitive) == (None, True)
    return told


def of_carol() -> list[str | bytes]:
    """Return what SCRAM stores, or could store, of a password."""
    salted = hashlib.pbkdf2_hmac("sha256", CAROL.encode(), b"salt", 4096)
    client_key, server_key = (
        hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key")
    )
    return [salted, client_key, hashlib.sha256(client_key).digest(), server_key]


def pem_body(issued: Issued) -> str:
    """Return a line of a private key."""
    return issued.key_pem.splitlines()[1]


def check_files(scene: Scene, keys: list[str | bytes]) -> None:
    """Hold that passwords are in no file of the broker, and derived keys in those of its owner."""
    stored = of_carol()
    data = scene.directory / "data"
    files = [path for path in data.rglob("*") if path.is_file()]
    assert files
    for path in files:
        content = path.read_bytes()
        others_may_read = stat.S_IMODE(path.stat().st_mode) & 0o077
        if others_may_read:
            assert_hidden(str(path), content, keys)
        else:
            plain = [each for each in keys if each not in stored]
            assert_hidden(str(path), content, plain)
    (tree,) = data.glob("coordination.sqlite")
    assert stat.S_IMODE(tree.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (JAAS, f"no login module {WRONG}"),
        (JAAS, f'{LOGIN} user_alice="{WRONG}'),
        ("ssl.keystore.password", WRONG),
        ("ssl.keystore.key", f"-----BEGIN PRIVATE KEY-----\n{WRONG}\n-----END PRIVATE KEY-----"),
        ("ssl.truststore.password", WRONG),
    ],
)
def test_no_secret_is_in_the_reason_why_a_broker_does_not_start(
    tmp_path: Path, option: str, value: str
) -> None:
    scene = Scene(tmp_path)
    scene.options[option] = value
    if option == "ssl.truststore.password":
        trusted = ROOT.write_pkcs12(tmp_path / "trusted.p12", STORE)
        scene.options |= {"ssl.truststore.type": "PKCS12", "ssl.truststore.location": str(trusted)}
    with pytest.raises(ConfigError) as failure:
        scene.start()
    scene._forget()
    text = "".join(traceback.format_exception(failure.value))
    assert_hidden("the exception", text, [*SECRETS])
