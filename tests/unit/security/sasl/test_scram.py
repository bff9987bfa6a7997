"""SCRAM: the vectors of the RFCs, odd messages, tokens, and users that do not exist."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

import pytest
from tests.unit.security.sasl.clients import ScramClient

from barnabas.security.sasl.exchange import Login, Rejected, Step, Work
from barnabas.security.sasl.scram import MESSAGE_BYTES_MAX, Scram, ScramSecrets, TokenLogin
from barnabas.security.sasl.scram_credentials import (
    SHA_256,
    SHA_512,
    ScramCredential,
    ScramMechanism,
)

SALT = b"pepper-and-salt!"
NAMES = ["alice", "a,b=c", 'with "quotes" and spaces', "x" * 255, "Zürich"]
MECHANISMS = pytest.mark.parametrize("mechanism", [SHA_256, SHA_512], ids=lambda each: each.name)


class Tokens:
    """One token, owned by olga until 5000."""

    def __init__(self) -> None:
        self.made: dict[str, ScramCredential] = {}

    def find_login(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        if token_id != "token-id":
            return None
        return TokenLogin("olga", 5000, self.made.get(mechanism.name))

    def make_credential(self, mechanism: ScramMechanism, token_id: str) -> ScramCredential | None:
        made = ScramCredential.of_password(mechanism, "the hmac", SALT)
        return self.made.setdefault(mechanism.name, made)


def secrets(
    mechanism: ScramMechanism, random_bytes: Callable[[int], bytes] = bytes, iterations: int = 4096
) -> ScramSecrets:
    known = {
        (mechanism.name, name): ScramCredential.of_password(mechanism, "pencil", SALT, iterations)
        for name in NAMES
    }
    return ScramSecrets(lambda *key: known.get(key), Tokens(), b"key", random_bytes)


def answer(step: Step | Work) -> bytes:
    assert isinstance(step, Step)
    assert step.answer is not None
    return step.answer


def test_the_vector_of_rfc_7677() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = ScramCredential.of_password(SHA_256, "pencil", salt)
    server = Scram(SHA_256, ScramSecrets(lambda *_: credential, Tokens(), b"", bytes))
    first = answer(server.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", 0))
    assert first.startswith(b"r=rOprNGfwEbeRWgbNEkqO")
    # Our half of the nonce cannot be chosen from outside as the RFC has it: put it there.
    server._nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    server._challenge = f"r={server._nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    done = server.step(f"c=biws,r={server._nonce},p={proof}".encode(), 0)
    verifier = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert done == Step(verifier, Login("user"))


@MECHANISMS
@pytest.mark.parametrize("name", NAMES)
def test_the_right_password_lets_in_and_the_broker_proves_itself(
    mechanism: ScramMechanism, name: str
) -> None:
    server, client = (
        Scram(mechanism, secrets(mechanism)),
        ScramClient(mechanism.digest, name, "pencil"),
    )
    done = server.step(client.final(answer(server.step(client.first(), 0))), 0)
    assert done == Step(client.verifier(), Login(name))


@MECHANISMS
@pytest.mark.parametrize(
    ("name", "password"), [("alice", "wrong"), ("nobody", "pencil"), ("token-id", "the hmac")]
)
def test_unknown_users_and_wrong_passwords_fail_alike(
    mechanism: ScramMechanism, name: str, password: str
) -> None:
    server, client = (
        Scram(mechanism, secrets(mechanism)),
        ScramClient(mechanism.digest, name, password),
    )
    challenge = answer(server.step(client.first(), 0))
    assert challenge.endswith(b",i=4096")
    with pytest.raises(Rejected) as failure:
        server.step(client.final(challenge), 0)
    assert failure.value.told is None
    assert str(failure.value) == f"unknown user or wrong password: {name!r}"


def test_an_unknown_user_always_has_the_same_salt() -> None:
    def salt(name: str, mechanism: ScramMechanism, key: bytes = b"key") -> bytes:
        given = secrets(mechanism)._replace(salt_key=key)
        first = ScramClient(mechanism.digest, name, "x").first()
        return answer(Scram(mechanism, given).step(first, 0)).split(b",")[1]

    made_up = salt("nobody", SHA_256)
    assert made_up == salt("nobody", SHA_256)
    assert len(b64decode(made_up[2:])) == len(SALT)
    others = {salt("someone", SHA_256), salt("nobody", SHA_512), salt("nobody", SHA_256, b"other")}
    assert len(others | {made_up}) == 4


def test_a_weak_credential_lets_nobody_in() -> None:
    server = Scram(SHA_256, secrets(SHA_256, iterations=1000))
    client = ScramClient("sha256", "alice", "pencil")
    challenge = answer(server.step(client.first(), 0))
    with pytest.raises(Rejected):
        server.step(client.final(challenge), 0)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=with space",
        b"n,,n=alice,r=x\x00",
        b"n,,n=al=ice,r=x",
        b"n,,n=alice,r=x,",
        b"n,a=bob,n=alice,r=x",
        b"n,,n=alice,r=" + b"x" * MESSAGE_BYTES_MAX,
        b"n,,n=\xff\xfe,r=x",
    ],
)
def test_malformed_first_messages_are_rejected(message: bytes) -> None:
    with pytest.raises(Rejected):
        Scram(SHA_256, secrets(SHA_256)).step(message, 0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"c=biws", b"c=eSws"),
        (b"c=biws", b"c=!!"),
        (b"r=client", b"r=evil-client"),
        (b",p=", b"0,p="),
        (b",p=", b",p=AAAA"),
        (b",p=", b",q="),
        (b"c=biws,", b""),
    ],
)
def test_malformed_last_messages_are_rejected(old: bytes, new: bytes) -> None:
    server, client = Scram(SHA_256, secrets(SHA_256)), ScramClient("sha256", "alice", "pencil")
    final = client.final(answer(server.step(client.first(), 0)))
    assert old in final
    with pytest.raises(Rejected):
        server.step(final.replace(old, new, 1), 0)


def test_a_nonce_that_only_ends_like_ours_is_rejected() -> None:
    """What Kafka's fix of CVE-2024-56128 still accepts."""
    server, client = Scram(SHA_256, secrets(SHA_256)), ScramClient("sha256", "alice", "pencil")
    challenge = answer(server.step(client.first(), 0))
    nonce = challenge.decode().split(",")[0][2:]
    with pytest.raises(Rejected):
        server.step(client.final(challenge, nonce=f"longer-{nonce}"), 0)


def test_the_nonce_of_older_librdkafka_is_accepted() -> None:
    server, client = Scram(SHA_256, secrets(SHA_256)), ScramClient("sha256", "alice", "pencil", "n")
    challenge = answer(server.step(client.first(), 0))
    nonce = challenge.decode().split(",")[0][2:]
    done = server.step(client.final(challenge, nonce=f"n{nonce}"), 0)
    assert done == Step(client.verifier(), Login("alice"))


def test_nonces_differ() -> None:
    counted = iter(range(9))
    given = secrets(SHA_256, lambda size: next(counted).to_bytes(size, "big"))
    first = ScramClient("sha256", "alice", "pencil").first()
    challenges = {answer(Scram(SHA_256, given).step(first, 0)) for _ in range(3)}
    assert len(challenges) == 3


@MECHANISMS
def test_a_token_logs_its_owner_in(mechanism: ScramMechanism) -> None:
    given = secrets(mechanism)
    for login in range(2):
        server, client = (
            Scram(mechanism, given),
            ScramClient(mechanism.digest, "token-id", "the hmac"),
        )
        begun = server.step(client.first(",tokenauth=true"), 4999)
        if login == 0:
            assert isinstance(begun, Work), "making the credential would hold up the loop"
            begun = begun.run()
        done = server.step(client.final(answer(begun)), 4999)
        assert done == Step(client.verifier(), Login("olga", 5000, by_token=True))


@pytest.mark.parametrize(("token_id", "now_ms"), [("token-id", 5000), ("other-id", 0)])
def test_an_expired_or_unknown_token_fails_at_the_end(token_id: str, now_ms: int) -> None:
    server, client = Scram(SHA_256, secrets(SHA_256)), ScramClient("sha256", token_id, "the hmac")
    challenge = answer(server.step(client.first(",tokenauth=true"), now_ms))
    with pytest.raises(Rejected):
        server.step(client.final(challenge), now_ms)
