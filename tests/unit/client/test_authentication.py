"""SASL against a scripted broker: each mechanism, refusals in clear words, renewal of sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scramp import ScramMechanism
from tests.network.scripted_broker import ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import AuthenticationFailedError, ConnectionLostError
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.errors import ConfigError
from barnabas.model.request_errors import IllegalSaslStateError, UnsupportedSaslMechanismError
from barnabas.simulation.loop import SimulatedLoop
from barnabas.simulation.network import DRIVER
from barnabas.simulation.world import World
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

Step = Callable[[bytes], SaslAuthenticateResponse]


class Guarded(ScriptedBroker):
    """A broker that lets clients in by `steps`, one for each SaslAuthenticate."""

    def __init__(self, mechanism: str, steps: Callable[[], list[Step]]) -> None:
        super().__init__(
            {
                SaslHandshakeRequest: self._choose,
                SaslAuthenticateRequest: self._step,
                MetadataRequest: lambda request, version: MetadataResponse(cluster_id="inside"),
            },
            address=Address(DRIVER, 9092),
        )
        self._mechanism, self._steps = mechanism, steps
        self._left: list[Step] = []

    def _choose(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        self._left = self._steps()
        error_code = 0 if request.mechanism == self._mechanism else 33
        return SaslHandshakeResponse(error_code=error_code, mechanisms=[self._mechanism])

    def _step(self, request: SaslAuthenticateRequest, version: int) -> SaslAuthenticateResponse:
        return self._left.pop(0)(request.auth_bytes)


def accept(expected: bytes, **fields: Any) -> Step:
    def step(said: bytes) -> SaslAuthenticateResponse:
        if said == expected:
            return SaslAuthenticateResponse(**fields)
        return SaslAuthenticateResponse(error_code=58, error_message=f"not {said!r}")

    return step


def scram_steps(mechanism: str, password: str) -> list[Step]:
    """The broker's side of SCRAM for the user `alice`."""
    server_side = ScramMechanism(mechanism)
    salt, stored_key, server_key, count = server_side.make_auth_info(password, iteration_count=4096)
    server = server_side.make_server(lambda user: (salt, stored_key, server_key, count))

    def first(said: bytes) -> SaslAuthenticateResponse:
        assert said.startswith(b"n,,n=alice,r=")
        server.set_client_first(said.decode())
        return SaslAuthenticateResponse(auth_bytes=server.get_server_first().encode())

    def final(said: bytes) -> SaslAuthenticateResponse:
        try:
            server.set_client_final(said.decode())
        except Exception as refusal:  # noqa: BLE001  whatever is wrong, the broker refuses
            return SaslAuthenticateResponse(error_code=58, error_message=str(refusal))
        return SaslAuthenticateResponse(auth_bytes=server.get_server_final().encode())

    return [first, final]


def enter(
    broker: Callable[[], Guarded],
    client: Callable[[ClusterClient, Guarded], Awaitable[Any]] | None = None,
    **options: Any,
) -> Any:
    """Open a connection to a guarded broker and return what a request inside answers."""

    async def conversation() -> Any:
        async with broker() as running:
            given = {
                "bootstrap_servers": str(running.address),
                "security_protocol": "SASL_PLAINTEXT",
                **options,
            }
            cluster_client = ClusterClient.from_options(parse_client_options(CommonOptions, given))
            async with cluster_client:
                if client is not None:
                    return await client(cluster_client, running)
                return (await cluster_client.refresh()).cluster_id

    with World(seed=1) as world:
        return world.run(conversation(), until=60)


ALICE = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}


def test_plain_says_name_and_password() -> None:
    def broker() -> Guarded:
        return Guarded("PLAIN", lambda: [accept(b"\0alice\0secret")])

    assert enter(broker, sasl_mechanism="PLAIN", **ALICE) == "inside"


def test_a_wrong_password_is_refused_in_the_brokers_words_and_not_shown() -> None:
    def broker() -> Guarded:
        return Guarded(
            "PLAIN",
            lambda: [lambda said: SaslAuthenticateResponse(error_code=58, error_message="no!")],
        )

    with pytest.raises(AuthenticationFailedError, match=r"rejected the credentials \(PLAIN\): no!"):
        enter(broker, sasl_mechanism="PLAIN", **ALICE)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_proves_the_password_without_saying_it(mechanism: str) -> None:
    def broker() -> Guarded:
        return Guarded(mechanism, lambda: scram_steps(mechanism, "secret"))

    assert enter(broker, sasl_mechanism=mechanism, **ALICE) == "inside"


def test_scram_with_a_wrong_password_is_refused() -> None:
    def broker() -> Guarded:
        return Guarded("SCRAM-SHA-256", lambda: scram_steps("SCRAM-SHA-256", "another"))

    with pytest.raises(AuthenticationFailedError, match="rejected the credentials"):
        enter(broker, sasl_mechanism="SCRAM-SHA-256", **ALICE)


def test_a_broker_that_does_not_know_the_password_is_refused() -> None:
    def forged() -> list[Step]:
        first, _ = scram_steps("SCRAM-SHA-256", "secret")
        return [first, lambda said: SaslAuthenticateResponse(auth_bytes=b"v=" + b"A" * 43 + b"=")]

    with pytest.raises(AuthenticationFailedError, match="could not prove"):
        enter(lambda: Guarded("SCRAM-SHA-256", forged), sasl_mechanism="SCRAM-SHA-256", **ALICE)


class Tokens:
    """A provider as kafka-python has it."""

    def token(self) -> str:
        return "abc.def."

    def extensions(self) -> dict[str, str]:
        return {"logicalCluster": "lc"}


class AsyncTokens:
    """A provider as aiokafka has it."""

    async def token(self) -> str:
        return "abc.def."


async def give_token() -> str:
    return "abc.def."


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (Tokens(), b"n,,\x01auth=Bearer abc.def.\x01logicalCluster=lc\x01\x01"),
        (AsyncTokens(), b"n,,\x01auth=Bearer abc.def.\x01\x01"),
        (lambda: "abc.def.", b"n,,\x01auth=Bearer abc.def.\x01\x01"),
        (give_token, b"n,,\x01auth=Bearer abc.def.\x01\x01"),
    ],
)
def test_a_token_is_shown_with_its_extensions(provider: object, message: bytes) -> None:
    def broker() -> Guarded:
        return Guarded("OAUTHBEARER", lambda: [accept(message)])

    entered = enter(broker, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=provider)
    assert entered == "inside"


def test_the_refusal_of_a_token_is_acknowledged_before_it_is_told() -> None:
    def steps() -> list[Step]:
        return [
            lambda said: SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'),
            lambda said: SaslAuthenticateResponse(error_code=58, error_message=repr(said)),
        ]

    with pytest.raises(AuthenticationFailedError, match=r"b'\\x01'"):
        enter(
            lambda: Guarded("OAUTHBEARER", steps),
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Tokens(),
        )


class NoTokens:
    def token(self) -> str:
        return ""


def no_server() -> str:
    raise OSError("the server of tokens is away")


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        (NoTokens(), AuthenticationFailedError),
        (no_server, AuthenticationFailedError),
        (object(), ConfigError),
    ],
)
def test_a_provider_without_a_token_is_told_by_name(provider: object, kind: type) -> None:
    with pytest.raises(kind, match=r"sasl\.oauth\.token\.provider"):
        enter(
            lambda: Guarded("OAUTHBEARER", list),
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=provider,
        )


def test_credentials_that_no_broker_could_be_told_are_refused_before_one_is_asked() -> None:
    given = {"security_protocol": "SASL_PLAINTEXT", "bootstrap_servers": "127.0.0.1:1"}
    for wrong, said in (
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": 7}, "provider=7"),
        (
            {
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_plain_username": "a\x07",
                "sasl_plain_password": "secret",
            },
            r"sasl\.plain\.username and .* SCRAM-SHA-256: control characters",
        ),
    ):
        options = parse_client_options(CommonOptions, {**given, **wrong})
        with pytest.raises(ConfigError, match=said) as told:
            ClusterClient.from_options(options)
        assert "secret" not in str(told.value)


def test_a_mechanism_that_the_broker_lacks_is_told_with_those_it_has() -> None:
    with pytest.raises(UnsupportedSaslMechanismError, match="it offers SCRAM-SHA-512"):
        enter(lambda: Guarded("SCRAM-SHA-512", list), sasl_mechanism="PLAIN", **ALICE)


def test_sasl_on_a_listener_without_it_points_to_the_option() -> None:
    class Open(Guarded):
        def _choose(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
            return SaslHandshakeResponse(error_code=34)

    with pytest.raises(IllegalSaslStateError, match=r"see security\.protocol"):
        enter(lambda: Open("PLAIN", list), sasl_mechanism="PLAIN", **ALICE)


def test_a_bounded_session_is_renewed_and_requests_wait_for_that() -> None:
    def broker() -> Guarded:
        return Guarded("PLAIN", lambda: [accept(b"\0alice\0secret", session_lifetime_ms=40)])

    async def client(cluster_client: ClusterClient, running: Guarded) -> list[type]:
        async with asyncio.timeout(60):
            while len(running.asked(SaslAuthenticateRequest)) < 3:
                await cluster_client.refresh()
        return [type(request.message) for request in running.requests]

    kinds = enter(broker, client, sasl_mechanism="PLAIN", **ALICE)
    assert kinds.count(ApiVersionsRequest) == 1  # one connection all the time
    for index, kind in enumerate(kinds):
        if kind is SaslHandshakeRequest:
            assert kinds[index + 1] is SaslAuthenticateRequest


def test_a_request_after_a_pause_of_the_process_waits_for_the_renewal() -> None:
    def broker() -> Guarded:
        return Guarded("PLAIN", lambda: [accept(b"\0alice\0secret", session_lifetime_ms=1000)])

    async def client(cluster_client: ClusterClient, running: Guarded) -> list[type]:
        connection = await cluster_client.connection()
        assert connection.can_submit
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.stand_still(1.1)
        assert len(running.asked(SaslAuthenticateRequest)) == 1
        assert not connection.can_submit
        await connection.send(MetadataRequest())
        return [type(request.message) for request in running.requests]

    kinds = enter(broker, client, sasl_mechanism="PLAIN", **ALICE)
    sent = max(index for index, kind in enumerate(kinds) if kind is MetadataRequest)
    assert kinds[sent - 2 : sent] == [SaslHandshakeRequest, SaslAuthenticateRequest]


def test_a_renewal_that_is_refused_ends_the_connection_and_says_why() -> None:
    answers = [
        SaslAuthenticateResponse(session_lifetime_ms=20),
        SaslAuthenticateResponse(error_code=58, error_message="expired"),
    ]

    def broker() -> Guarded:
        return Guarded("PLAIN", lambda: [lambda said: answers.pop(0)])

    async def client(cluster_client: ClusterClient, running: Guarded) -> None:
        connection = await cluster_client.connection()
        ended = asyncio.Event()
        cluster_client.watch(lambda: connection.closed and ended.set())
        await asyncio.wait_for(ended.wait(), 60)
        with pytest.raises(ConnectionLostError, match=r"could not be renewed .*expired"):
            await connection.send(MetadataRequest())

    enter(broker, client, sasl_mechanism="PLAIN", **ALICE)
    assert answers == []


def test_a_provider_that_fails_at_a_renewal_ends_the_connection_and_says_why() -> None:
    tokens = ["abc.def."]

    def broker() -> Guarded:
        return Guarded(
            "OAUTHBEARER", lambda: [lambda said: SaslAuthenticateResponse(session_lifetime_ms=20)]
        )

    async def client(cluster_client: ClusterClient, running: Guarded) -> None:
        connection = await cluster_client.connection()
        ended = asyncio.Event()
        cluster_client.watch(lambda: connection.closed and ended.set())
        await asyncio.wait_for(ended.wait(), 60)
        with pytest.raises(ConnectionLostError, match=r"could not be renewed .*IndexError"):
            await connection.send(MetadataRequest())
        with pytest.raises(AuthenticationFailedError, match=r"provider failed: IndexError"):
            await cluster_client.refresh()

    enter(
        broker, client, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=lambda: tokens.pop()
    )


def test_machines_can_see_that_credentials_were_refused() -> None:
    def broker() -> Guarded:
        return Guarded("PLAIN", lambda: [accept(b"\0alice\0another")])

    async def client(cluster_client: ClusterClient, running: Guarded) -> BaseException | None:
        cluster_client.start()
        cluster_client.request_refresh()
        ended = asyncio.Event()
        cluster_client.watch(ended.set)
        async with asyncio.timeout(60):
            while cluster_client.refresh_failure is None:
                ended.clear()
                await ended.wait()
        return cluster_client.refresh_failure

    refusal = enter(broker, client, sasl_mechanism="PLAIN", **ALICE)
    assert isinstance(refusal, AuthenticationFailedError)
