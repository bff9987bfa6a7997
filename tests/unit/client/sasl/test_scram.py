"""SCRAM of clients, against the broker's side, and against brokers that cheat."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from typing import cast

import pytest

from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.sasl.scram import ITERATIONS_MAX, Scram
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.exchange import Login, Rejected, Step
from barnabas.security.sasl.scram import Scram as Server
from barnabas.security.sasl.scram import ScramSecrets, TokenLogin
from barnabas.security.sasl.scram_credentials import MECHANISMS, ScramCredential, ScramMechanism

SALT = b"0123456789abcdef"


class Tokens:
    """One token, `id`, of alice."""

    def find_login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        credential = ScramCredential.of_password(mechanism, "hmac==", SALT)
        return TokenLogin("alice", 5_000, credential) if token_id == "id" else None

    def make_credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        raise AssertionError("it is there")


def server(mechanism: str, name: str = "alice", password: str = "secret") -> Server:
    chosen = MECHANISMS[mechanism]
    credential = ScramCredential.of_password(chosen, password, SALT)

    def find(asked: str, user: str) -> ScramCredential | None:
        return credential if (asked, user) == (mechanism, name) else None

    return Server(chosen, ScramSecrets(find, Tokens(), b"", bytes))


def converse(client: Scram, broker: Server, now_ms: int = 0) -> Login | None:
    """Return who has logged in."""

    async def run() -> Login | None:
        message = await client.first()
        while True:
            step = cast(Step, broker.step(message, now_ms))
            message = await client.next(step.answer or b"")
            if client.done:
                return step.login

    return asyncio.run(run())


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
@pytest.mark.parametrize(
    ("name", "password"), [("alice", "secret"), ("a=,b", "p,=ä\u0301"), ("ü", "")]
)
def test_both_sides_prove_the_password(mechanism: str, name: str, password: str) -> None:
    client = Scram(mechanism, name, password, bytes)
    assert converse(client, server(mechanism, name, password)) == Login(name)


@pytest.mark.parametrize("password", ["", "Secret", "secret "])
def test_a_wrong_password_is_refused(password: str) -> None:
    with pytest.raises(Rejected):
        converse(Scram("SCRAM-SHA-256", "alice", password, bytes), server("SCRAM-SHA-256"))


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_a_delegation_token_is_announced_as_one(mechanism: str) -> None:
    client = Scram(mechanism, "id", "hmac==", bytes, by_token=True)
    assert asyncio.run(client.first()).endswith(b",tokenauth=true")
    assert converse(client, server(mechanism)) == Login("alice", 5_000, by_token=True)


@pytest.mark.parametrize(
    ("token", "secret", "by_token", "now_ms"),
    [
        ("id", "hmac==", False, 0),
        ("other", "hmac==", True, 0),
        ("id", "other", True, 0),
        ("id", "hmac==", True, 5_000),
    ],
)
def test_a_token_that_is_none_is_refused(
    token: str, secret: str, by_token: bool, now_ms: int
) -> None:
    client = Scram("SCRAM-SHA-256", token, secret, bytes, by_token=by_token)
    with pytest.raises(Rejected):
        converse(client, server("SCRAM-SHA-256"), now_ms)


@pytest.mark.parametrize("name", ["", "a\x07", "\n", "a\x7f"])
def test_a_name_that_cannot_be_sent_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="control characters in the name, or no name") as failure:
        Scram("SCRAM-SHA-512", name, "secret", bytes)
    assert "secret" not in str(failure.value)


NONCE = b64encode(bytes(18)).decode()


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b"", "first message is malformed"),
        (b"\xff", "not UTF-8"),
        (b"e=other-error", "first message is malformed"),
        (f"r={NONCE}x,s=!,i=4096".encode(), "malformed"),
        (f"r={NONCE}x,s=a,i=4096".encode(), "not base64"),
        (f"r={NONCE},s=aaaa,i=4096".encode(), "does not continue ours"),
        (b"r=another,s=aaaa,i=4096", "does not continue ours"),
        (f"r={NONCE}x,s=aaaa,i=4095".encode(), "demands 4095 iterations"),
        (f"r={NONCE}x,s=aaaa,i={ITERATIONS_MAX + 1}".encode(), "must be 4096 to 1000000"),
        (f"r={NONCE}x,s=aaaa,i=99999999999".encode(), "malformed"),
    ],
)
def test_a_broker_that_breaks_the_rules_learns_no_proof(challenge: bytes, why: str) -> None:
    async def run() -> None:
        client = Scram("SCRAM-SHA-256", "alice", "secret", bytes)
        await client.first()
        await client.next(challenge)

    with pytest.raises(AuthenticationFailedError, match=re.escape(why)):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"v=" + b64encode(bytes(32)), "signature is another"),
        (b"v=a", "not base64"),
        (b"e=unknown-user", "it says 'unknown-user'"),
        (b"", "last message is malformed"),
    ],
)
def test_a_broker_that_does_not_know_the_password_is_refused(answer: bytes, why: str) -> None:
    async def run() -> None:
        client = Scram("SCRAM-SHA-256", "alice", "secret", bytes)
        await client.first()
        await client.next(f"r={NONCE}x,s=aaaa,i=4096".encode())
        await client.next(answer)

    with pytest.raises(AuthenticationFailedError, match=f"could not prove .*{re.escape(why)}"):
        asyncio.run(run())
