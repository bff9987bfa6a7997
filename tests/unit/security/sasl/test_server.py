"""The SASL side of a connection, frame by frame: Kafka's table of states, on virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar, cast

import pytest
from tests.unit.security.sasl.clients import ScramClient
from tests.unit.security.sasl.test_scram import secrets

from barnabas.model.error_codes import ErrorCode
from barnabas.security.sasl.exchange import Login, NewExchange, Rejected, Step, Work
from barnabas.security.sasl.plain import Plain
from barnabas.security.sasl.scram import Scram
from barnabas.security.sasl.scram_credentials import SHA_256
from barnabas.security.sasl.server import Action, Answer, Close, Forward, SaslServer
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.header import RequestHeader
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.wire.schema import Message

T = TypeVar("T")
ALICE, WRONG = b"\0alice\0secret", b"\0alice\0hush"
WALL_MS = 1_700_000_000_000
REFUSED = b"refused with ILLEGAL_SASL_STATE"


class Expiring:
    """A credential with an end: the message says who, and how long from now."""

    def step(self, message: bytes, now_ms: int) -> Step:
        name, _, rest_ms = message.decode().partition(" ")
        return Step(b"", Login(name, now_ms + int(rest_ms)))


class Hesitant:
    """A mechanism that refuses, and waits for a reply."""

    def step(self, message: bytes, now_ms: int) -> Step:
        return Step(b"no", refusal="it was refused")


class Slow:
    """A mechanism that needs a thread."""

    def step(self, message: bytes, now_ms: int) -> Work:
        def run() -> Step:
            if message != b"please":
                raise Rejected("rude")
            return Step(None, Login("patient"))

        return Work(run)


MECHANISMS: Mapping[str, NewExchange] = {
    "PLAIN": partial(Plain, {"alice": "secret", "bob": "secret"}),
    "SCRAM-SHA-256": partial(Scram, SHA_256, secrets(SHA_256)),
    "EXPIRING": Expiring,
    "SLOW": Slow,
    "HESITANT": Hesitant,
}


class Client:
    """A client of one connection; time passes when the test says so."""

    def __init__(self, max_reauth_ms: int = 0) -> None:
        self.now_ms = 500_000
        self.wall_ms = WALL_MS
        self.refused: list[RequestHeader] = []
        self.server = SaslServer(lambda: MECHANISMS, lambda _: max_reauth_ms, self._refuse)

    def _refuse(self, header: RequestHeader, frame: memoryview, position: int) -> bytes:
        self.refused.append(header)
        return REFUSED

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.wall_ms += ms

    def raw(self, frame: bytes) -> Action:
        return self.server.receive(memoryview(frame), self.now_ms, self.wall_ms)

    def send(self, request: Message, version: int) -> Action:
        return self.raw(request_frame(request, version, 7, "cli")[4:])

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslHandshakeResponse:
        action = self.send(SaslHandshakeRequest(mechanism=mechanism), version)
        assert isinstance(action, Answer)
        return read(action.frame, "SaslHandshake", version)

    def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        action = self.send(SaslAuthenticateRequest(auth_bytes=token), version)
        assert isinstance(action, Answer), action
        return read(action.frame, "SaslAuthenticate", version)

    def log_in(self, mechanism: str = "PLAIN", token: bytes = ALICE) -> SaslAuthenticateResponse:
        assert self.handshake(mechanism).error_code == 0
        answer = self.authenticate(token)
        assert answer.error_code == 0
        assert self.server.is_authenticated
        return answer


def read(frame: bytes, name: str, version: int) -> Any:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, message = decode_response(API_BY_NAME[name], version, frame[4:])
    assert correlation_id == 7
    return message


def closed(action: Action) -> Close:
    assert isinstance(action, Close), action
    return action


def refusal(action: Action, version: int = 2) -> SaslAuthenticateResponse:
    close = closed(action)
    assert close.delayed
    return cast(SaslAuthenticateResponse, read(close.frame, "SaslAuthenticate", version))


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


def test_the_bytes_of_a_login() -> None:
    """Handshake v1 and one token, as written down for Kafka."""
    client = Client()
    answer = client.raw(hexed("00110001000000010003636c690005504c41494e"))
    assert isinstance(answer, Answer)
    assert answer.frame[4:14] == hexed("00000001 0000 00000005")
    assert answer.frame[14:21] == b"\x00\x05PLAIN"
    done = client.raw(hexed("00240001000000020003636c690000000d00616c69636500736563726574"))
    assert done == Answer(hexed("00000014 00000002 0000 ffff 00000000 0000000000000000"))
    assert client.server.login == Login("alice")


# Start.


@pytest.mark.parametrize("version", range(5))
def test_versions_can_be_asked_for_once(version: int) -> None:
    client = Client()
    request = ApiVersionsRequest(client_software_name="cli", client_software_version="1")
    assert client.send(request, version) == Forward()
    again = closed(client.send(request, version))
    assert (again.frame, again.delayed) == (b"", False)


def test_versions_of_an_unknown_version_can_be_asked_for_again() -> None:
    client = Client()
    unknown = hexed("0012 0063 00000007 0003636c69 00")
    assert client.raw(unknown) == Forward()
    assert client.raw(unknown) == Forward()
    assert client.send(ApiVersionsRequest(), 0) == Forward()
    client.log_in()


def test_a_bad_software_name_can_be_corrected() -> None:
    client = Client()
    for name in ("-bad-", ""):
        assert client.send(ApiVersionsRequest(client_software_name=name), 3) == Forward()
    good = ApiVersionsRequest(client_software_name="cli", client_software_version="1")
    assert client.send(good, 3) == Forward()
    client.log_in()


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_is_answered_with_the_mechanisms(version: int) -> None:
    answer = Client().handshake("PLAIN", version)
    assert (answer.error_code, answer.mechanisms) == (0, list(MECHANISMS))


@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "", "\n" * 1000])
def test_a_mechanism_that_is_not_enabled(mechanism: str) -> None:
    close = closed(Client().send(SaslHandshakeRequest(mechanism=mechanism), 1))
    answer = read(close.frame, "SaslHandshake", 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == list(MECHANISMS)
    assert close.delayed
    assert "\n" not in close.why


@pytest.mark.parametrize(
    "frame",
    [
        hexed("0003 0001 00000007 ffff 00000000"),  # Metadata
        hexed("0024 0001 00000007 ffff 00000000"),  # SaslAuthenticate
        hexed("0011 0002 00000007 ffff 0005504c41494e"),  # SaslHandshake v2
        hexed("0011 ffff 00000007 ffff 0005504c41494e"),
        hexed("0011 0001 00000007 ffff 0050504c41494e"),  # a length too far
        hexed("7fff 0001 00000007 ffff"),
        b"GET / HTTP/1.1\r\n\r\n",
        b"x",
        b"\x60\x82\x02\x04",  # GSSAPI of 0.9 clients
    ],
)
@pytest.mark.parametrize("versions_known", [False, True])
def test_anything_else_closes(frame: bytes, versions_known: bool) -> None:
    client = Client()
    if versions_known:
        client.send(ApiVersionsRequest(), 0)
    close = closed(client.raw(frame))
    assert (close.frame, close.delayed) == (b"", True)


# Tokens.


def test_a_login_of_several_steps() -> None:
    client = Client()
    client.send(ApiVersionsRequest(), 0)
    client.handshake("SCRAM-SHA-256")
    alice = ScramClient("sha256", "alice", "pencil")
    challenge = client.authenticate(alice.first())
    assert (challenge.error_code, challenge.session_lifetime_ms) == (0, 0)
    assert not client.server.is_authenticated
    done = client.authenticate(alice.final(challenge.auth_bytes))
    assert done.auth_bytes == alice.verifier()
    assert client.server.login == Login("alice")
    assert client.server.mechanism == "SCRAM-SHA-256"


@pytest.mark.parametrize("version", range(3))
def test_wrong_credentials(version: int) -> None:
    client = Client()
    client.handshake()
    action = client.send(SaslAuthenticateRequest(auth_bytes=WRONG), version)
    answer = refusal(action, version)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert client.server.login is None
    assert "hush" not in closed(action).why


def test_wrong_credentials_of_another_mechanism_have_kafkas_text() -> None:
    client = Client()
    client.handshake("SCRAM-SHA-256")
    answer = refusal(client.send(SaslAuthenticateRequest(auth_bytes=b"?"), 2))
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with "
        "SASL mechanism SCRAM-SHA-256"
    )


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(), 1),
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (ApiVersionsRequest(), 0),
    ],
)
def test_another_request_instead_of_a_token(request_: Message, version: int) -> None:
    client = Client()
    client.handshake()
    close = closed(client.send(request_, version))
    assert (close.frame, close.delayed) == (REFUSED, True)
    assert [header.correlation_id for header in client.refused] == [7]


@pytest.mark.parametrize(
    "frame",
    [
        hexed("0024 0003 00000007 ffff 00"),  # SaslAuthenticate v3
        hexed("0024 0001 00000007 ffff 7fffffff"),
        b"?",
    ],
)
def test_unreadable_frames_instead_of_a_token(frame: bytes) -> None:
    client = Client()
    client.handshake()
    close = closed(client.raw(frame))
    assert (close.frame, close.delayed) == (b"", True)


def test_another_request_instead_of_the_reply_to_a_refusal() -> None:
    client = Client()
    client.handshake("HESITANT")
    assert client.authenticate(b"?").auth_bytes == b"no"
    close = closed(client.send(MetadataRequest(), 1))
    assert close.why == "Metadata instead of SaslAuthenticate, after it was refused"


def test_bare_tokens_of_plain() -> None:
    client = Client()
    client.handshake(version=0)
    assert client.raw(ALICE) == Answer(hexed("00000000"))
    assert client.server.login == Login("alice")


def test_bare_tokens_of_scram() -> None:
    client = Client()
    client.handshake("SCRAM-SHA-256", version=0)
    alice = ScramClient("sha256", "alice", "pencil")
    first = client.raw(alice.first())
    assert isinstance(first, Answer)
    done = client.raw(alice.final(first.frame[4:]))
    verifier = alice.verifier()
    assert done == Answer(len(verifier).to_bytes(4, "big") + verifier)
    assert client.server.is_authenticated


def test_refused_bare_tokens_are_not_answered() -> None:
    client = Client()
    client.handshake(version=0)
    close = closed(client.raw(WRONG))
    assert (close.frame, close.delayed) == (b"", True)


@pytest.mark.parametrize("version", [0, 1])
def test_work_that_needs_a_thread(version: int) -> None:
    client = Client()
    client.handshake("SLOW", version)
    token = SaslAuthenticateRequest(auth_bytes=b"please")
    work = client.send(token, 2) if version else client.raw(b"please")
    assert isinstance(work, Work)
    action = client.server.resume(work.run(), client.now_ms, client.wall_ms)
    assert isinstance(action, Answer)
    if version:
        assert read(action.frame, "SaslAuthenticate", 2).error_code == 0
    else:
        assert action.frame == b"", "a step without an answer sends no bare frame"
    assert client.server.login == Login("patient")


def test_work_that_ends_in_a_refusal() -> None:
    client = Client()
    client.handshake("SLOW")
    work = client.send(SaslAuthenticateRequest(auth_bytes=b"now!"), 2)
    assert isinstance(work, Work)
    with pytest.raises(Rejected) as failure:
        work.run()
    answer = refusal(client.server.resume(failure.value, client.now_ms, client.wall_ms))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


# Sessions and re-authentication.


@pytest.mark.parametrize(
    ("max_reauth_ms", "rest_ms", "lifetime_ms"),
    [(0, 9000, 9000), (5000, 9000, 5000), (9000, 5000, 5000), (5000, 0, 1)],
)
def test_a_session_ends_with_its_credential_or_its_limit(
    max_reauth_ms: int, rest_ms: int, lifetime_ms: int
) -> None:
    client = Client(max_reauth_ms)
    answer = client.log_in("EXPIRING", b"alice %d" % rest_ms)
    assert answer.session_lifetime_ms == lifetime_ms
    assert not client.server.has_expired(client.now_ms + lifetime_ms - 1)
    assert client.server.has_expired(client.now_ms + lifetime_ms)


def test_a_session_without_a_limit_cannot_be_renewed() -> None:
    client = Client()
    assert client.log_in().session_lifetime_ms == 0
    assert not client.server.has_expired(2**60)
    assert not client.server.may_renew(2**60)


@pytest.mark.parametrize("version", [0, None])
def test_the_end_holds_also_for_clients_that_are_not_told(version: int | None) -> None:
    client = Client(5000)
    client.handshake(version=0 if version is None else 1)
    if version is None:
        client.raw(ALICE)
    else:
        client.authenticate(ALICE, version)
    assert client.server.has_expired(client.now_ms + 5000)


def test_a_session_is_renewed() -> None:
    client = Client(5000)
    client.log_in()
    client.wait(4500)
    assert client.server.may_renew(client.now_ms)
    assert client.handshake().error_code == 0
    assert client.server.is_renewing
    assert client.authenticate(ALICE).session_lifetime_ms == 5000
    assert client.server.is_authenticated
    assert not client.server.has_expired(client.now_ms + 4999)


def test_a_session_can_be_renewed_late() -> None:
    client = Client(5000)
    client.log_in()
    client.wait(60_000)
    assert client.server.has_expired(client.now_ms)
    assert client.server.may_renew(client.now_ms)
    client.log_in()
    assert not client.server.has_expired(client.now_ms)


def test_renewals_are_a_second_apart() -> None:
    client = Client(5000)
    client.log_in()
    assert client.server.may_renew(client.now_ms), "the login itself does not count"
    client.log_in()
    client.wait(999)
    assert not client.server.may_renew(client.now_ms)
    client.wait(1)
    assert client.server.may_renew(client.now_ms)


def test_the_mechanism_cannot_be_changed() -> None:
    client = Client(5000)
    client.log_in()
    assert client.handshake("SCRAM-SHA-256").error_code == 0
    first = ScramClient("sha256", "alice", "pencil").first()
    close = closed(client.send(SaslAuthenticateRequest(auth_bytes=first), 2))
    assert (close.frame, close.delayed) == (b"", True)


def test_the_principal_cannot_be_changed() -> None:
    client = Client(5000)
    client.log_in()
    client.handshake()
    action = client.send(SaslAuthenticateRequest(auth_bytes=b"\0bob\0secret"), 2)
    answer = refusal(action)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )
    assert client.server.login == Login("alice")


def test_failed_renewals_say_so() -> None:
    client = Client(5000)
    client.log_in("EXPIRING", b"alice 5000")
    client.handshake("EXPIRING")
    client.server._exchange = Scram(SHA_256, secrets(SHA_256))
    answer = refusal(client.send(SaslAuthenticateRequest(auth_bytes=b"?"), 2))
    assert "during re-authentication" in (answer.error_message or "")


def test_only_tokens_are_accepted_during_a_renewal() -> None:
    client = Client(5000)
    client.log_in()
    client.handshake()
    assert closed(client.send(ApiVersionsRequest(), 0)).frame == REFUSED


def test_each_renewal_uses_the_mechanisms_of_now() -> None:
    offered: dict[str, NewExchange] = dict(MECHANISMS)
    client = Client()
    client.server = SaslServer(lambda: offered, lambda _: 5000, client._refuse)
    client.log_in()
    offered["PLAIN"] = partial(Plain, {"alice": "changed"})
    client.handshake()
    assert refusal(client.send(SaslAuthenticateRequest(auth_bytes=ALICE), 2)).error_code == 58
