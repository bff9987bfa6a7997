"""SASL on a real broker, by raw bytes: order, delays, limits, sessions, and what is logged."""

from __future__ import annotations

import gc
import hashlib
import logging
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.handlers.test_configs import BROKER, SET, change, describe
from tests.unit.broker.serving import (
    Serving,
    Wire,
    create_topic,
    fetch_request,
    metadata,
    wait_for,
)
from tests.unit.security.sasl.clients import ScramClient

from barnabas.metrics.catalogue.network import (
    SUCCESSFUL_AUTHENTICATIONS,
    SUCCESSFUL_REAUTHENTICATIONS,
)
from barnabas.metrics.metric import Metric
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError
from barnabas.security.sasl.scram_credentials import SHA_256, ScramCredential
from barnabas.wire.frame import request_frame
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

OPEN, SASL, SHORT = range(3)
"""Listeners: without SASL, with it, and with sessions that end."""
DELAY_S = 0.2
SESSION_MS = 60_000
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = 'user_alice="secret" user_bob="hush"'
ILLEGAL, FAILED = ErrorCode.ILLEGAL_SASL_STATE, ErrorCode.SASL_AUTHENTICATION_FAILED
AFTER_LOGIN = "SaslAuthenticate request received after successful authentication"

OPTIONS = {
    "listeners": "OPEN://127.0.0.1:0,SASL://127.0.0.1:0,SHORT://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT",
    "inter.broker.listener.name": "OPEN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "password.encoder.secret": "of the encoder",
    "listener.name.sasl.plain.sasl.jaas.config": f"{LOGIN} {USERS};",
    "listener.name.short.plain.sasl.jaas.config": f"{LOGIN} {USERS};",
    "listener.name.short.connections.max.reauth.ms": "1",
    "listener.name.short.plain.connections.max.reauth.ms": str(SESSION_MS),
    "connection.failed.authentication.delay.ms": str(int(DELAY_S * 1000)),
    "auto.create.topics.enable": "true",
}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("data"), OPTIONS) as running:
        yield running


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A broker whose failed clients wait longer than any test."""
    options = {**OPTIONS, "connection.failed.authentication.delay.ms": "3600000"}
    with Serving(tmp_path_factory.mktemp("patient"), options) as running:
        yield running


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    with serving.connect(SASL) as connection:
        yield connection
    serving.expect_no_lines()


def handshake(wire: Wire, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return wire.ask(SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(wire: Wire, token: bytes, version: int = 2) -> Any:
    return wire.ask(SaslAuthenticateRequest(auth_bytes=token), version)


def log_in(wire: Wire, name: str = "alice", password: str = "secret") -> Any:
    assert handshake(wire).error_code == 0
    answer = authenticate(wire, f"\0{name}\0{password}".encode())
    assert (answer.error_code, answer.error_message) == (0, None)
    return answer


def principals(serving: Serving, listener: int) -> set[str]:
    """Return the principals of a listener's connections."""
    connections = serving.broker.parts.network._listeners[listener].connections
    return serving.inside(lambda: {str(each.session.principal) for each in connections})


def bare(token: bytes) -> bytes:
    return len(token).to_bytes(4, "big") + token


@contextmanager
def delayed() -> Iterator[None]:
    """Hold that what is sent and received inside took at least the delay of failed logins."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began >= DELAY_S - 0.005  # the loop counts in milliseconds


# Logins.


def test_a_client_logs_in_and_is_served(serving: Serving, wire: Wire) -> None:
    versions = wire.ask(ApiVersionsRequest(), 0)
    assert versions.error_code == 0
    assert {17, 36} <= {each.api_key for each in versions.api_keys}
    assert log_in(wire).session_lifetime_ms == 0
    assert metadata(wire).brokers
    assert principals(serving, SASL) == {"User:alice"}
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0, "as Java clients do"


def test_one_byte_at_a_time(wire: Wire) -> None:
    frames = [
        request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "x"),
        request_frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 1, 2, "x"),
    ]
    for byte in b"".join(frames):
        wire.socket.sendall(bytes([byte]))
    assert wire.receive(SaslHandshakeRequest, 1)[1].error_code == 0
    assert wire.receive(SaslAuthenticateRequest, 1)[1].error_code == 0


def test_requests_behind_the_last_token_are_served(wire: Wire) -> None:
    wire.socket.sendall(
        b"".join(
            [
                request_frame(ApiVersionsRequest(), 0, 1, "x"),
                request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 1, 2, "x"),
                request_frame(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 1, 3, "x"),
                request_frame(MetadataRequest(topics=[]), 12, 4, "x"),
            ]
        )
    )
    assert wire.receive(ApiVersionsRequest, 0)[0] == 1
    assert wire.receive(SaslHandshakeRequest, 1)[0] == 2
    assert wire.receive(SaslAuthenticateRequest, 1)[0] == 3
    assert wire.receive(MetadataRequest, 12)[0] == 4


def test_bare_tokens(wire: Wire) -> None:
    assert handshake(wire, version=0).error_code == 0
    wire.socket.sendall(bare(b"\0alice\0secret"))
    assert wire.read_exactly(4) == bytes(4)
    assert metadata(wire).brokers


def test_after_the_login_large_frames_are_accepted(wire: Wire) -> None:
    log_in(wire)
    topics = [MetadataRequestTopic(name="x" * 30_000 + str(number)) for number in range(20)]
    assert len(wire.ask(MetadataRequest(topics=topics), 8).topics) == 20


def test_after_the_login_sasl_is_refused_and_the_connection_goes_on(wire: Wire) -> None:
    log_in(wire)
    for _ in range(2):
        answer = handshake(wire)
        assert (answer.error_code, answer.mechanisms) == (ILLEGAL, [])
        again = authenticate(wire, b"\0alice\0secret")
        assert (again.error_code, again.error_message) == (ILLEGAL, AFTER_LOGIN)
    assert metadata(wire).brokers


def test_a_listener_without_sasl_refuses_it_and_goes_on(serving: Serving) -> None:
    with serving.connect(OPEN) as wire:
        for version in (0, 1):
            assert handshake(wire, version=version).error_code == ILLEGAL
        answer = authenticate(wire, b"")
        assert (answer.error_code, answer.error_message) == (ILLEGAL, AFTER_LOGIN)
        assert metadata(wire).brokers
        assert principals(serving, OPEN) == {"User:ANONYMOUS"}


# Refusals.


def test_a_wrong_password_is_answered_and_closed_after_the_delay(
    serving: Serving, wire: Wire
) -> None:
    handshake(wire)
    with delayed():
        answer = authenticate(wire, b"\0alice\0wrong-horse")
    assert answer.error_code == FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    wire.expect_close()
    serving.expect_line(
        "rejected: authentication failed (PLAIN): unknown user or wrong password: 'alice'"
    )
    ring = serving.broker.journal.ring
    noted = [each for each in serving.inside(lambda: list(ring)) if "reject" in each.event][-1]
    assert (noted.event, noted.cause) == ("reject.connection", "authentication")
    assert "unknown user or wrong password" in noted.data["reason"]


def test_what_comes_during_the_delay_is_ignored(serving: Serving, wire: Wire) -> None:
    handshake(wire)
    wire.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong-horse"), 1)
    wire.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 1)
    assert wire.receive(SaslAuthenticateRequest, 1)[1].error_code == FAILED
    wire.expect_close()
    serving.expect_line("authentication failed (PLAIN)")


def test_a_refused_bare_token_is_not_answered(serving: Serving, wire: Wire) -> None:
    handshake(wire, version=0)
    with delayed():
        wire.socket.sendall(bare(b"\0alice\0wrong-horse"))
        wire.expect_close()
    serving.expect_line("authentication failed (PLAIN)")


def test_a_mechanism_that_is_not_enabled(serving: Serving, wire: Wire) -> None:
    with delayed():
        answer = handshake(wire, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    wire.expect_close()
    serving.expect_line("SASL mechanism 'GSSAPI' is not enabled (PLAIN, SCRAM-SHA-256 are)")


def test_a_request_before_the_handshake_is_not_answered(serving: Serving, wire: Wire) -> None:
    with delayed():
        wire.send(MetadataRequest(topics=[]), 12)
        wire.expect_close()
    serving.expect_line("Metadata before authentication: is the client's security.protocol SASL_")


def test_versions_asked_for_twice_close_at_once(patient: Serving) -> None:
    with patient.connect(SASL) as wire:
        wire.ask(ApiVersionsRequest(), 0)
        wire.send(ApiVersionsRequest(), 0)
        wire.expect_close()
    patient.expect_line("ApiVersions twice before authentication")


def test_versions_of_an_unknown_version(wire: Wire) -> None:
    wire.socket.sendall(bare(bytes.fromhex("0012 0063 00000007 0003636c69 00")))
    frame = wire.read_frame()
    assert frame is not None
    assert frame[:14] == bytes.fromhex("00000007 0023 00000001 0012 0000")
    assert len(frame) == 16, "one API, and nothing behind it"
    log_in(wire)


def test_a_bad_software_name_is_told(wire: Wire) -> None:
    answer = wire.ask(ApiVersionsRequest(client_software_name="-"), 3)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    log_in(wire)


def test_another_request_than_a_token_gets_its_own_error(serving: Serving) -> None:
    requests: list[tuple[Any, int]] = [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 1),
        (fetch_request("t"), 12),
        (ApiVersionsRequest(), 0),
    ]
    for request, version in requests:
        with serving.connect(SASL) as wire:
            handshake(wire)
            with delayed():
                answer = wire.ask(request, version)
            code = (
                answer.topics[0].error_code
                if isinstance(request, MetadataRequest)
                else answer.error_code
            )
            assert code == ILLEGAL, answer
            wire.expect_close()
        serving.expect_line("instead of SaslAuthenticate")


def test_an_unreadable_request_instead_of_a_token(serving: Serving, wire: Wire) -> None:
    handshake(wire)
    with delayed():
        wire.socket.sendall(bare(bytes.fromhex("0001 000c 00000007 ffff 00 ffff")))
        wire.expect_close()
    serving.expect_line("Fetch instead of SaslAuthenticate")


@pytest.mark.parametrize("size", [0, -1, 524_289, 100 << 20])
@pytest.mark.parametrize("version", [None, 0, 1])
def test_sizes_out_of_bounds_close_at_once(
    patient: Serving, size: int, version: int | None
) -> None:
    with patient.connect(SASL) as wire:
        if version is not None:
            handshake(wire, version=version)
        wire.socket.sendall(size.to_bytes(4, "big", signed=True) + b"x")
        wire.expect_close()
    patient.expect_line(f"frame of {size} bytes (first bytes")


@pytest.mark.parametrize("version", [None, 0, 1])
def test_a_token_without_its_size_is_not_logged(patient: Serving, version: int | None) -> None:
    with patient.connect(SASL) as wire:
        if version is not None:
            handshake(wire, version=version)
        wire.socket.sendall(b"\0alice\0secret")
        wire.expect_close()
    (line,) = patient.lines.of()
    assert "(first bytes 00 61 6c 69): must be" in line, "no more than its size"
    patient.lines.clear()


def test_a_token_of_the_largest_size_is_read(serving: Serving, wire: Wire) -> None:
    handshake(wire, version=0)
    with delayed():
        wire.socket.sendall(bare(b"\0alice\0" + b"x" * (524_288 - 7)))
        wire.expect_close()
    serving.expect_line("unknown user or wrong password")


def test_many_failing_clients_do_not_hold_up_others(patient: Serving) -> None:
    failing = [patient.connect(SASL) for _ in range(50)]
    for each in failing:
        handshake(each)
        each.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong-horse"), 2)
    with patient.connect(SASL) as wire:
        log_in(wire)
    for each in failing:
        each.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            each.socket.recv(1)
        each.socket.close()
    patient.wait_inside(lambda: len(patient.lines.of()) == 50, "one line for each")
    patient.lines.clear()


def test_a_client_that_leaves_during_the_delay(serving: Serving) -> None:
    with serving.connect(SASL) as wire:
        handshake(wire)
        wire.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong-horse"), 2)
    network = serving.broker.parts.network
    serving.wait_inside(lambda: not network._listeners[SASL].connections, "it is forgotten")
    serving.expect_line("unknown user or wrong password: 'alice'")


def test_a_client_that_does_not_log_in_is_closed(serving: Serving, wire: Wire) -> None:
    handshake(wire)
    with serving.connect(SASL) as other:
        log_in(other)
        serving.let_pass(30_000)
        serving.inside(serving.broker.parts.network.sweep)
        wire.expect_close()
        assert metadata(other).brokers
    serving.expect_line("not authenticated in time")


@pytest.mark.parametrize("listener", [SASL, SHORT])
@pytest.mark.parametrize("password", [None, "wrong-horse", "secret"])
def test_a_lost_connection_is_freed_without_the_garbage_collector(
    serving: Serving, listener: int, password: str | None
) -> None:
    """Crowds that come and go would fill the memory before it sees a need to run."""
    gc.disable()
    try:
        with serving.connect(listener) as wire:
            handshake(wire)
            connections = serving.broker.parts.network._listeners[listener].connections
            held = serving.inside(lambda: [weakref.ref(each) for each in connections])
            assert len(held) == 1
            if password is not None:
                authenticate(wire, f"\0alice\0{password}".encode())
        serving.wait_inside(lambda: not connections, "it is uncounted")
        wait_for(lambda: held[0]() is None, "it is freed")
    finally:
        gc.enable()
    serving.lines.clear()


# Sessions.


def test_a_session_ends_unless_it_is_renewed(serving: Serving) -> None:
    with serving.connect(SHORT) as wire, serving.connect(SHORT) as other:
        for each in (wire, other):
            assert log_in(each).session_lifetime_ms == SESSION_MS
        assert metadata(wire).brokers
        serving.let_pass(SESSION_MS - 1000)
        assert log_in(wire).session_lifetime_ms == SESSION_MS
        serving.let_pass(1000)
        assert metadata(wire).brokers
        other.send(MetadataRequest(topics=[]), 12)
        other.expect_close()
        serving.expect_line("its session has ended, and was not renewed")
        assert metadata(wire).brokers


def test_a_session_can_be_renewed_late_but_not_twice_in_a_second(serving: Serving) -> None:
    with serving.connect(SHORT) as wire:
        log_in(wire)
        serving.let_pass(10 * SESSION_MS)
        log_in(wire)
        answer = handshake(wire)
        assert (answer.error_code, answer.mechanisms) == (ILLEGAL, [])
        again = authenticate(wire, b"\0alice\0secret")
        assert (again.error_code, again.error_message) == (ILLEGAL, AFTER_LOGIN)
        assert metadata(wire).brokers


def test_requests_before_a_renewal_are_answered_first(serving: Serving, wire: Wire) -> None:
    log_in(wire)
    create_topic(wire, "slow")
    with serving.connect(SHORT) as short:
        log_in(short)
        fetch = short.send(fetch_request("slow", max_wait_ms=300), 12)
        renewal = short.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        token = short.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
        assert short.receive(FetchRequest, 12)[0] == fetch
        assert short.receive(SaslHandshakeRequest, 1)[0] == renewal
        assert short.receive(SaslAuthenticateRequest, 2)[0] == token


def test_the_principal_stays(serving: Serving) -> None:
    with serving.connect(SHORT) as wire:
        log_in(wire)
        handshake(wire)
        with delayed():
            answer = authenticate(wire, b"\0bob\0hush")
        assert answer.error_code == FAILED
        assert answer.error_message == (
            "Cannot change principals during re-authentication from User.alice: User.bob"
        )
        wire.expect_close()
    serving.expect_line("principal changed in re-authentication from 'alice' to 'bob'")


def test_large_frames_are_refused_during_a_renewal(serving: Serving) -> None:
    with serving.connect(SHORT) as wire:
        log_in(wire)
        handshake(wire)
        wire.socket.sendall(bare(bytes(524_289)))
        wire.expect_close()
    serving.expect_line("sasl.server.max.receive.size=524288")


def test_logins_are_counted(serving: Serving) -> None:
    def count(metric: Metric) -> float:
        return serving.inside(lambda: serving.broker.metrics.value(metric, "SHORT", "0"))

    names = [SUCCESSFUL_AUTHENTICATIONS, SUCCESSFUL_REAUTHENTICATIONS]
    before = [count(name) for name in names]
    with serving.connect(SHORT) as wire:
        log_in(wire)
        log_in(wire)
    assert [count(name) for name in names] == [before[0] + 1, before[1] + 1]


# Changes at run time.


def set_password(wire: Wire, name: str, password: str) -> None:
    change = ScramCredentialUpsertion(
        name=name,
        mechanism=1,
        iterations=4096,
        salt=b"salt",
        salted_password=hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096),
    )
    (result,) = wire.ask(AlterUserScramCredentialsRequest(upsertions=[change])).results
    assert result.error_code == 0, result


def scram(wire: Wire, name: str, password: str) -> Any:
    handshake(wire, "SCRAM-SHA-256")
    client = ScramClient("sha256", name, password)
    challenge = authenticate(wire, client.first())
    assert challenge.error_code == 0
    answer = authenticate(wire, client.final(challenge.auth_bytes))
    assert answer.error_code or answer.auth_bytes == client.verifier()
    return answer


def test_scram_passwords_change_at_run_time(serving: Serving) -> None:
    with serving.connect(OPEN) as admin, serving.connect(SASL) as old:
        set_password(admin, "carol", "first")
        assert scram(old, "carol", "first").error_code == 0
        set_password(admin, "carol", "second")
        assert metadata(old).brokers, "open connections go on"
        with serving.connect(SASL) as new:
            assert scram(new, "carol", "second").error_code == 0
        with serving.connect(SASL) as new:
            answer = scram(new, "carol", "first")
            assert answer.error_code == FAILED
            assert answer.error_message == (
                "Authentication failed during authentication due to invalid credentials with "
                "SASL mechanism SCRAM-SHA-256"
            )
    serving.expect_line("unknown user or wrong password: 'carol'")


def test_users_of_plain_change_at_run_time(serving: Serving) -> None:
    name = "listener.name.sasl.plain.sasl.jaas.config"
    with serving.connect(OPEN) as admin, serving.connect(SASL) as old:
        log_in(old)
        users = f'{LOGIN} user_alice="changed" user_dave="new";'
        assert change(admin, BROKER, "0", (name, SET, users)).error_code == 0
        try:
            with serving.connect(SASL) as new:
                log_in(new, "dave", "new")
            assert metadata(old).brokers
            (shown,) = describe(admin, BROKER, "0", keys=[name]).configs
            assert (shown.value, shown.is_sensitive) == (None, True)
            broken = change(admin, BROKER, "0", (name, SET, "no login module at all"))
            assert broken.error_code == ErrorCode.INVALID_CONFIG
            assert "at all" not in broken.error_message
        finally:
            users = f"{LOGIN} {USERS};"
            assert change(admin, BROKER, "0", (name, SET, users)).error_code == 0


def test_scram_users_survive_a_restart(tmp_path: Path) -> None:
    serving = Serving(tmp_path, OPTIONS)
    with serving, serving.connect(OPEN) as admin:
        set_password(admin, "carol", "first")
    with serving, serving.connect(SASL) as wire:
        assert scram(wire, "carol", "first").error_code == 0


def test_no_secret_is_logged(tmp_path: Path) -> None:
    serving = Serving(tmp_path, OPTIONS)
    with serving:
        with serving.connect(OPEN) as admin:
            set_password(admin, "carol", "first-password")
        with serving.connect(SASL) as wire:
            log_in(wire)
        for token in (b"\0alice\0wrong-horse", b"wrong-horse", b"\0\0wrong-horse"):
            with serving.connect(SASL) as wire:
                handshake(wire)
                assert authenticate(wire, token).error_code == FAILED
                wire.expect_close()
        with serving.connect(SASL) as wire:
            assert scram(wire, "carol", "other-horse").error_code == FAILED
            wire.expect_close()
        lines = "\n".join(serving.lines.of(logging.DEBUG))
        serving.lines.clear()
    assert "authentication failed" in lines
    credential = ScramCredential.of_password(SHA_256, "first-password", b"salt").encode()
    for secret in ("secret", "hush", "wrong-horse", "other-horse", "first-password", credential):
        assert secret not in lines
    for part in credential.split(","):
        assert part.partition("=")[2] == "4096" or part.partition("=")[2] not in lines


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms=GSSAPI"),
        ({"sasl.enabled.mechanisms": ""}, "needs at least one"),
        ({"sasl.enabled.mechanisms": "CRAM-MD5"}, "sasl.enabled.mechanisms=CRAM-MD5"),
        ({"listener.name.sasl.plain.sasl.jaas.config": "secret"}, "[hidden]"),
        ({"java.security.auth.login.config": "/nowhere"}, "cannot be read"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.jwks.endpoint.url"),
    ],
)
def test_options_that_cannot_be_served_fail_the_start(
    tmp_path: Path, options: dict[str, str], why: str
) -> None:
    serving = Serving(tmp_path, {**OPTIONS, **options})
    with pytest.raises(ConfigError) as failure:
        serving.start()
    serving._forget()
    assert why in str(failure.value)
    assert "secret" not in str(failure.value)


def test_users_of_plain_from_a_jaas_file(tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        f'KafkaServer {{ {LOGIN} user_alice="general"; }};\n'
        f'short.KafkaServer {{ a.Other required; {LOGIN} user_alice="special"; }};\n'
    )
    options = {name: value for name, value in OPTIONS.items() if not name.endswith("jaas.config")}
    options["java.security.auth.login.config"] = str(jaas)
    with Serving(tmp_path / "data", options) as serving:
        for listener, password in ((SASL, "general"), (SHORT, "special")):
            with serving.connect(listener) as wire:
                log_in(wire, "alice", password)


def test_list_offsets_needs_a_login_too(serving: Serving, wire: Wire) -> None:
    wire.send(ListOffsetsRequest(), 7)
    wire.expect_close()
    serving.expect_line("ListOffsets before authentication")
