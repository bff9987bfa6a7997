"""Our client at the door of Apache Kafka: every mechanism, TLS both ways, bounded sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.interop.doors import SESSION_MS, Doors, unsigned_token

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import AuthenticationFailedError, NetworkError
from barnabas.config.clients.common import CommonOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.request_errors import IllegalSaslStateError
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest

pytestmark = pytest.mark.interop


class Unsecured:
    """Gives tokens as kafka-python's providers do."""

    def token(self) -> str:
        return unsigned_token()


ALICE = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}
MECHANISMS: dict[str, dict[str, Any]] = {
    "PLAIN": ALICE,
    "SCRAM-SHA-256": ALICE,
    "SCRAM-SHA-512": ALICE,
    "OAUTHBEARER": {"sasl_oauth_token_provider": Unsecured()},
}


class Early(Random):
    """Chance that is always at its least: sessions are renewed as early as they may be."""

    def random(self) -> float:
        return 0.0


def enter(
    bootstrap: str,
    client: Callable[[ClusterClient], Awaitable[Any]] | None = None,
    **options: Any,
) -> Any:
    """Go through a door; return the brokers' ids, or what `client` does."""

    async def conversation() -> Any:
        given = {"bootstrap_servers": bootstrap, **options}
        cluster_client = ClusterClient.from_options(
            parse_client_options(CommonOptions, given), random=Early()
        )
        async with cluster_client:
            if client is not None:
                return await client(cluster_client)
            return sorted((await cluster_client.retrying(cluster_client.refresh)).brokers)

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
        AuthenticationFailedError, match=r"rejected the credentials .*Authentication"
    ):
        enter(doors.sasl, security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **wrong)


class Rubbish:
    def token(self) -> str:
        return "rubbish"


def test_a_wrong_token_is_refused(doors: Doors) -> None:
    with pytest.raises(AuthenticationFailedError, match="rejected the credentials"):
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
    async def client(cluster_client: ClusterClient) -> None:
        await cluster_client.refresh()

    # The broker's alert may be lost with what the client has sent meanwhile.
    expected = AuthenticationFailedError, NetworkError
    with pytest.raises(expected, match=r"alert 'bad certificate'|closed by the broker|reset"):
        enter(doors.tls, client, security_protocol="SSL", ssl_cafile=doors.cafile)


def test_a_broker_that_nobody_vouches_for_is_not_trusted(doors: Doors) -> None:
    with pytest.raises(AuthenticationFailedError, match="its certificate is rejected"):
        enter(doors.sasl_tls, security_protocol="SASL_SSL", **ALICE)


def test_a_plain_client_at_a_door_with_tls_gets_a_hint(doors: Doors) -> None:
    async def client(cluster_client: ClusterClient) -> None:
        await cluster_client.refresh()

    with pytest.raises(Exception, match="it may expect TLS"):
        enter(doors.tls, client)


def test_a_bounded_session_is_renewed_on_the_same_connection(doors: Doors) -> None:
    async def client(cluster_client: ClusterClient) -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        await cluster_client.refresh()
        connection = await cluster_client.connection(1)
        started, count = loop.time(), 0
        while loop.time() - started < 2.5 * SESSION_MS["sasl_plaintext"] / 1000:
            await cluster_client.refresh()
            await connection.send(AlterUserScramCredentialsRequest())
            count += 1
        assert not connection.closed
        assert await cluster_client.connection(1) is connection
        return count, connection.stats.opened

    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256", **ALICE}
    count, opened = enter(doors.sasl, client, **options)
    assert count > 10
    assert opened == 1


def test_sasl_at_a_door_without_it_points_to_the_option(doors: Doors) -> None:
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **ALICE}
    with pytest.raises(IllegalSaslStateError, match=r"see security\.protocol"):
        enter(doors.plain, **options)
