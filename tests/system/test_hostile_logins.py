"""Clients that never log in: silent, half-way, huge, out of turn, forged.

Each costs the broker one log line and no memory for long, and others are served meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from tests.system.secured_broker import (
    BARE,
    CERTIFIED,
    PASSWORD,
    SECURED,
    SecuredBroker,
    authenticate,
    handshake,
    log_in,
    log_in_by_scram,
)
from tests.unit.broker.serving import Wire, metadata
from tests.unit.security.sasl.bearer import Issuer, unsecured
from tests.unit.security.sasl.clients import ScramClient

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.frame import request_frame
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("hostile-logins")]

SILENT = 1000
KIB_LEFT_MAX = 12 * 1024
"""What may remain of a crowd, once the first one has warmed up the broker."""
ILLEGAL, FAILED = ErrorCode.ILLEGAL_SASL_STATE, ErrorCode.SASL_AUTHENTICATION_FAILED
UNSUPPORTED = ErrorCode.UNSUPPORTED_SASL_MECHANISM


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as running:
        yield running


def assert_serves(broker: SecuredBroker) -> None:
    """Hold that others log in and are answered, soon."""
    began = time.monotonic()
    with broker.connect(SECURED) as wire:
        assert log_in_by_scram(wire).error_code == 0
        assert metadata(wire).brokers
    assert time.monotonic() - began < 5


# Crowds.


def hello(broker: SecuredBroker) -> bytes:
    """Return what a TLS client sends first."""
    outgoing = ssl.MemoryBIO()
    tls = broker.context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("share", "cost_kib"), [(0.0, 24), (0.5, 80), (1.0, 96)], ids=["none", "half", "whole"]
)
def test_a_thousand_silent_connections(broker: SecuredBroker, share: float, cost_kib: int) -> None:
    """They say nothing at all, or a part of what a handshake begins with, or no more than that."""
    said = hello(broker)
    said = said[: int(len(said) * share)]
    assert_serves(broker)
    broker.complaints()
    files = broker.open_files()
    memory = [broker.memory_kib()]
    for _ in range(3):
        with ExitStack() as crowd:
            wires = [crowd.enter_context(broker.connect_plain(SECURED)) for _ in range(SILENT)]
            for wire in wires:
                wire.socket.sendall(said)
            if share == 1.0:
                assert all(wire.socket.recv(1) for wire in wires), "the broker waits for the rest"
            assert_serves(broker)
            assert broker.open_files() >= SILENT
            memory.append(broker.memory_kib())
        broker.wait_until_left(files)
        memory.append(broker.memory_kib())
    print(f"{len(said)} bytes: {memory} KiB before, and with and after each crowd")
    assert max(memory) - memory[0] < SILENT * cost_kib, "three crowds cost no more than one may"
    slow = [line for line in broker.complaints() if "not completed within" not in line]
    assert slow == [], "that a client goes away is not worth a line"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
def test_huge_tokens(broker: SecuredBroker, mechanism: str) -> None:
    """Each as large as a frame before the login may be."""
    broker.complaints()
    token = b"n,,\1auth=Bearer " + b"x" * (524_288 - 64)
    after = []
    for _ in range(3):
        with ExitStack() as crowd:
            wires = [crowd.enter_context(broker.connect(BARE)) for _ in range(20)]
            for wire in wires:
                handshake(wire, mechanism)
                wire.send(SaslAuthenticateRequest(auth_bytes=token), 2)
            for wire in wires:
                answer = wire.receive(SaslAuthenticateRequest, 2)[1]
                if answer.error_code == 0:  # of OAUTHBEARER: the client confirms the refusal
                    assert json.loads(answer.auth_bytes) == {"status": "invalid_token"}
                    answer = authenticate(wire, b"\1")
                assert answer.error_code == FAILED
        after.append(broker.memory_kib())
    assert after[2] - after[0] < KIB_LEFT_MAX, after
    lines = broker.complaints()
    assert len(lines) == 60, "one for each"
    assert max(map(len, lines)) < 500, "and not as long as what was sent"
    assert_serves(broker)


def test_many_failing_logins_are_a_line_each_and_hold_up_nobody(broker: SecuredBroker) -> None:
    broker.complaints()
    with ExitStack() as crowd:
        for _ in range(200):
            wire = crowd.enter_context(broker.connect(BARE))
            handshake(wire)
            wire.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 2)
        assert_serves(broker)
    assert_serves(broker)
    lines = broker.complaints()
    assert len(lines) == 200
    assert all("unknown user or wrong password: 'alice'" in line for line in lines)


# States: frames by raw bytes, and what must come back, on a listener with TLS and on one without.

CLOSED: Any = None


def frame(message: Any, version: int) -> bytes:
    return request_frame(message, version, 7, "raw")


def sized(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


VERSIONS = frame(ApiVersionsRequest(), 0)
CHOOSE_BARE, CHOOSE = (frame(SaslHandshakeRequest(mechanism="PLAIN"), n) for n in (0, 1))
RIGHT = f"\0alice\0{PASSWORD}".encode()
TOKEN = frame(SaslAuthenticateRequest(auth_bytes=RIGHT), 1)
WRONG = frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0guess"), 1)
ASK = frame(MetadataRequest(topics=[]), 12)
HANDSHAKE_2 = sized(bytes.fromhex("0011 0002 00000007 ffff 00"))
NEWER_VERSIONS = sized(bytes.fromhex("0012 0063 00000007 0003636c69 00"))
BAD_NAME = frame(ApiVersionsRequest(client_software_name="-"), 3)
OTHER = frame(SaslHandshakeRequest(mechanism="CRAM-MD5"), 1)
OK, FRAME = b"\0\0", b""
"""The answer begins with error 0; with whatever it likes."""


def error(code: int) -> bytes:
    return int(code).to_bytes(2, "big")


ROWS: dict[str, tuple[list[bytes], list[Any], str]] = {
    "versions, then nothing else than a handshake": ([VERSIONS, ASK], [OK, CLOSED], "Metadata"),
    "newer versions, and again": (
        [NEWER_VERSIONS, VERSIONS, VERSIONS],
        [error(35), OK, CLOSED],
        "twice",
    ),
    "a bad name, and again": ([BAD_NAME, VERSIONS, VERSIONS], [error(42), OK, CLOSED], "twice"),
    "a mechanism that is not enabled": ([OTHER], [error(UNSUPPORTED), CLOSED], "not enabled"),
    "another request first": ([ASK], [CLOSED], "Metadata before authentication"),
    "a token first": ([TOKEN], [CLOSED], "SaslAuthenticate before authentication"),
    "an unreadable request": ([sized(b"\xff" * 40)], [CLOSED], "unreadable"),
    "a handshake of a newer version": ([HANDSHAKE_2], [CLOSED], "SaslHandshake version 2"),
    "no size": ([bytes(4)], [CLOSED], "frame of 0 bytes"),
    "a negative size": ([b"\xff" * 4], [CLOSED], "frame of -1 bytes"),
    "too large": ([(524_289).to_bytes(4, "big")], [CLOSED], "sasl.server.max.receive.size=524288"),
    "too large, after the handshake": (
        [CHOOSE, (524_289).to_bytes(4, "big")],
        [OK, CLOSED],
        "sasl.server.max.receive.size=524288",
    ),
    "a wrong password": ([CHOOSE, WRONG], [OK, error(FAILED), CLOSED], "wrong password"),
    "a second handshake": ([CHOOSE, CHOOSE], [OK, error(ILLEGAL), CLOSED], "instead of"),
    "versions instead of a token": ([CHOOSE, VERSIONS], [OK, error(ILLEGAL), CLOSED], "instead of"),
    "an unserved request instead of a token": (
        [CHOOSE, sized(bytes.fromhex("0001 000c 00000007 ffff 00 ffff"))],
        [OK, CLOSED],
        "instead of",
    ),
    "a wrong bare token": ([CHOOSE_BARE, sized(b"\0alice\0guess")], [OK, CLOSED], "wrong password"),
    "a request instead of a bare token": (
        [CHOOSE_BARE, ASK],
        [OK, CLOSED],
        "authentication failed",
    ),
    "what follows a wrong password": (
        [CHOOSE, WRONG + TOKEN],
        [OK, error(FAILED), CLOSED],
        "wrong",
    ),
}


@pytest.mark.parametrize("listener", [BARE, SECURED])
@pytest.mark.parametrize("row", ROWS)
def test_frames_out_of_turn(broker: SecuredBroker, row: str, listener: str) -> None:
    frames, answers, said = ROWS[row]
    broker.complaints()
    with broker.connect(listener) as wire:
        for sent, expected in zip(frames, answers, strict=False):
            wire.socket.sendall(sent)
            receive(wire, expected)
        for expected in answers[len(frames) :]:
            receive(wire, expected)
    broker.expect_line(said)


def receive(wire: Wire, expected: bytes | None) -> None:
    if expected is None:
        wire.expect_close()
        return
    answer = wire.read_frame()
    assert answer is not None, "closed instead of an answer"
    assert answer[:4] == (7).to_bytes(4, "big")
    assert answer[4:].startswith(expected), answer


@pytest.mark.parametrize("listener", [BARE, SECURED])
def test_frames_in_turn(broker: SecuredBroker, listener: str) -> None:
    with broker.connect(listener) as wire:
        for sent in (VERSIONS, CHOOSE, TOKEN):
            wire.socket.sendall(sent)
            receive(wire, OK)
        for sent in (CHOOSE, TOKEN):  # no session ends: there is nothing to renew
            wire.socket.sendall(sent)
            receive(wire, error(ILLEGAL))
        wire.socket.sendall(ASK)
        receive(wire, FRAME)
    with broker.connect(listener) as wire:
        wire.socket.sendall(CHOOSE_BARE)
        receive(wire, OK)
        wire.socket.sendall(sized(RIGHT))
        assert wire.read_frame() == b""
        wire.socket.sendall(ASK)
        receive(wire, FRAME)
    assert broker.complaints() == []


def test_sasl_on_a_listener_without_it(broker: SecuredBroker) -> None:
    with broker.connect(CERTIFIED) as wire:
        for sent in (CHOOSE_BARE, CHOOSE, TOKEN):
            wire.socket.sendall(sent)
            receive(wire, error(ILLEGAL))
        wire.socket.sendall(ASK)
        receive(wire, FRAME)
    assert broker.complaints() == []


# Downgrades.


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (VERSIONS, "a Kafka request: the client needs security.protocol=SSL or SASL_SSL"),
        (CHOOSE + TOKEN, "a Kafka request: the client needs security.protocol=SSL or SASL_SSL"),
        (sized(RIGHT), "a Kafka request"),
        (RIGHT, "first bytes 00 61 6c 69)"),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
    ],
)
def test_plain_bytes_get_nothing_from_tls(broker: SecuredBroker, sent: bytes, said: str) -> None:
    broker.complaints()
    with broker.connect_plain(SECURED) as wire:
        wire.socket.sendall(sent)
        wire.expect_close()
    broker.expect_line(said)


def test_old_tls_is_rejected(broker: SecuredBroker) -> None:
    context = broker.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    broker.complaints()
    with broker.connect_plain(SECURED) as wire, pytest.raises(ssl.SSLError):
        context.wrap_socket(wire.socket, server_hostname="127.0.0.1")
    broker.expect_line("TLS handshake failed")


# SCRAM.

NONCE = "fyko+d2lbbFgONRv9qkxdawL"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "n,,",
        f"n,,n=alice,r={NONCE},r=another",
        f"n,,n=alice,n=admin,r={NONCE}",
        f"n,,r={NONCE},n=alice",
        "n,,n=alice,r=",
        "n,,n=alice,r=with space",
        "n,,n=alice,r=b\u00f6se",
        f"n,,n=alice,r={'x' * 100_000}",
        f"n,,n=ali=ce,r={NONCE}",
        f"n,,n=alice,m=mandatory,r={NONCE}",
        f"n,,m=mandatory,n=alice,r={NONCE}",
        f"n,a=admin,n=alice,r={NONCE}",
        f"y,,n=alice,r={NONCE}",
        f"p=tls-unique,,n=alice,r={NONCE}",
        f"p=tls-server-end-point,,n=alice,r={NONCE}",
        f"x,,n=alice,r={NONCE}",
        f"n,,n=,r={NONCE}",
        f"n,,n=alice\0,r={NONCE}",
        f"n,,n=alice,r={NONCE},i=1",
    ],
)
def test_odd_first_messages_of_scram(broker: SecuredBroker, message: str) -> None:
    broker.complaints()
    with broker.connect(BARE) as wire:
        handshake(wire, "SCRAM-SHA-256")
        answer = authenticate(wire, message.encode())
        if answer.error_code == 0:
            # Extensions are allowed, and mean nothing: the exchange goes on as without them.
            assert answer.auth_bytes.startswith(f"r={NONCE}".encode())
            assert b",i=4096" in answer.auth_bytes, "the broker says how many iterations"
            answer = authenticate(wire, b"c=biws,r=x,p=AAAA")
        assert answer.error_code == FAILED
        wire.expect_close()
    broker.expect_line("authentication failed (SCRAM-SHA-256)")


def without_binding(message: str) -> str:
    return message.removeprefix("c=biws,")


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda message: message.replace(old, new, 1)


@pytest.mark.parametrize(
    "change",
    [
        without_binding,
        replaced("c=biws", "c=eSws"),
        replaced("c=biws", f"c={b64encode(b'p=tls-unique,,').decode()}"),
        replaced("c=biws,", "c=biws,c=biws,"),
        replaced("r=", "r=x"),
        replaced(",p=", ",r=again,p="),
        replaced(",p=", ",p=,p="),
        lambda message: message.partition(",p=")[0],
        lambda message: message + ",x=after",
        lambda message: message[:-8] + "AAAAAAA=",
        lambda message: message.replace("biws", "biws" * 20_000),
    ],
)
def test_odd_last_messages_of_scram(broker: SecuredBroker, change: Callable[[str], str]) -> None:
    """The password is right: only what is changed speaks against the client."""
    broker.complaints()
    with broker.connect(BARE) as wire:
        handshake(wire, "SCRAM-SHA-256")
        client = ScramClient("sha256", "alice", PASSWORD)
        final = client.final(authenticate(wire, client.first()).auth_bytes).decode()
        changed = change(final)
        assert changed != final
        assert authenticate(wire, changed.encode()).error_code == FAILED
        wire.expect_close()
    broker.expect_line("authentication failed (SCRAM-SHA-256)")


def test_an_answer_of_another_connection_is_not_accepted(broker: SecuredBroker) -> None:
    with broker.connect(BARE) as one, broker.connect(BARE) as other:
        client = ScramClient("sha256", "alice", PASSWORD)
        first = client.first()
        for wire in (one, other):
            handshake(wire, "SCRAM-SHA-256")
        final = client.final(authenticate(one, first).auth_bytes)
        authenticate(other, first)
        broker.complaints()
        assert authenticate(other, final).error_code == FAILED
        assert authenticate(one, final).error_code == 0
    broker.expect_line("nonce of the last SCRAM message is another")


# Tokens.


def bearer(token: str) -> bytes:
    return f"n,,\1auth=Bearer {token}\1\1".encode()


def public_pem(issuer: Issuer) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pem: bytes = issuer.private.public_key().public_bytes(encoding, form)
    return pem


def signed_by_the_public_key(broker: SecuredBroker) -> str:
    """Return a token of HS256 whose secret is what everybody knows."""
    algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    head, claims = (
        urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "kid": "key"}, broker.claims())
    )
    signature = algorithm.sign(head + b"." + claims, public_pem(broker.issuer))
    return b".".join([head, claims, urlsafe_b64encode(signature).rstrip(b"=")]).decode()


FORGED: dict[str, tuple[Callable[[SecuredBroker], str], str]] = {
    "none": (lambda broker: unsecured(broker.claims()), "algorithm"),
    "none in another case": (
        lambda broker: unsecured(broker.claims(), {"alg": "NoNe", "kid": "key"}),
        "algorithm",
    ),
    "signature removed": (lambda broker: broker.token().rpartition(".")[0] + ".", "signature"),
    "HS256 by the public key": (signed_by_the_public_key, "algorithm"),
    "another key's name": (
        lambda broker: Issuer("other", "RS256").sign(broker.claims()),
        "no key of",
    ),
    "another key of that name": (
        lambda broker: Issuer("key", "RS256").sign(broker.claims()),
        "signature",
    ),
    "a name of a key like a path": (
        lambda broker: Issuer("../../../etc/passwd", "RS256").sign(broker.claims()),
        "no key of",
    ),
    "expired": (lambda broker: broker.token(exp=int(time.time()) - 1), "expired"),
    "without an end": (lambda broker: broker.token(exp=None), "exp"),
    "an end that is no time": (lambda broker: broker.token(exp="never"), "exp"),
    "not yet valid": (lambda broker: broker.token(nbf=int(time.time()) + 600), "not valid yet"),
    "another audience": (lambda broker: broker.token(aud="others"), "audience"),
    "no audience": (lambda broker: broker.token(aud=None), "audience"),
    "another issuer": (lambda broker: broker.token(iss="https://evil.example"), "issuer"),
    "no issuer": (lambda broker: broker.token(iss=None), "issuer"),
    "nobody": (lambda broker: broker.token(sub=" "), "principal"),
    "huge": (lambda broker: broker.token(padding="x" * 100_000), "16384 characters"),
    "deep": (
        lambda broker: unsecured(
            broker.claims(), {"alg": "RS256", "x": json.loads("[" * 90 + "]" * 90)}
        ),
        "signature",
    ),
    "no token": (lambda broker: "a.b.c", "not a JWT"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_forged_tokens(broker: SecuredBroker, kind: str) -> None:
    forge, said = FORGED[kind]
    token = forge(broker)
    broker.complaints()
    with broker.connect(SECURED) as wire:
        handshake(wire, "OAUTHBEARER")
        answer = authenticate(wire, bearer(token))
        assert answer.error_code == 0
        assert json.loads(answer.auth_bytes) == {"status": "invalid_token"}
        answer = authenticate(wire, b"\1")
        assert (answer.error_code, answer.error_message) == (FAILED, '{"status":"invalid_token"}')
        wire.expect_close()
    broker.expect_line(said)
    assert token not in broker.log
    assert token.split(".")[1] not in broker.log or len(token) < 20


def test_the_right_token(broker: SecuredBroker) -> None:
    with broker.connect(SECURED) as wire:
        handshake(wire, "OAUTHBEARER")
        answer = authenticate(wire, bearer(broker.token()))
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert 0 < answer.session_lifetime_ms <= 3_600_000
        assert metadata(wire).brokers


def test_nothing_secret_was_logged(broker: SecuredBroker) -> None:
    """Of all that this module has sent, in whichever order its tests have run."""
    with broker.connect(BARE) as wire:
        assert log_in(wire, "last-guess").error_code == FAILED
    log = broker.log
    assert "wrong password: 'alice'" in log
    for secret in (PASSWORD, "guess"):
        assert secret not in log
        assert secret.encode().hex(" ") not in log
        assert b64encode(secret.encode()).decode().rstrip("=") not in log
