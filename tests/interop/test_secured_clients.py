"""Whole programs on an Apache Kafka that lets nobody in without a certificate or a name.

Each way in is tried by the producer, a consumer in a group and the admin client, plain and on
asyncio, with options in kafka-python's spelling and in Kafka's.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from tests.interop.doors import (
    OAUTH_LOGIN,
    PLAIN_LOGIN,
    SCRAM_LOGIN,
    SESSION_MS,
    Doors,
    unsigned_token,
)
from tests.unit.client.sasl.token_server import CLIENT, SECRET, token_server

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.aio.abc import AbstractTokenProvider
from barnabas.aio.helpers import create_ssl_context
from barnabas.errors import AuthenticationFailedError

pytestmark = pytest.mark.interop

Way = Callable[[Doors], dict[str, Any]]


class Tokens(AbstractTokenProvider):
    """Gives tokens as aiokafka's providers do."""

    async def token(self) -> str:
        return unsigned_token()


def jaas(login: str) -> str:
    return f'{login} username="alice" password="secret";'


def by_name(mechanism: str) -> dict[str, Any]:
    """Name oneself, in kafka-python's spelling."""
    if mechanism == "OAUTHBEARER":
        who: dict[str, Any] = {"sasl_oauth_token_provider": Tokens()}
    else:
        who = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}
    return {"sasl_mechanism": mechanism, **who}


def with_sasl(mechanism: str) -> Way:
    return lambda doors: {
        "bootstrap_servers": [doors.sasl],
        "security_protocol": "SASL_PLAINTEXT",
        **by_name(mechanism),
    }


def with_sasl_and_tls(mechanism: str) -> Way:
    return lambda doors: {
        "bootstrap_servers": [doors.sasl_tls],
        "security_protocol": "SASL_SSL",
        "ssl_cafile": doors.cafile,
        **by_name(mechanism),
    }


def with_certificate(doors: Doors) -> dict[str, Any]:
    return {
        "bootstrap_servers": doors.tls,
        "security_protocol": "SSL",
        "ssl_cafile": doors.cafile,
        "ssl_certfile": doors.certfile,
        "ssl_keyfile": doors.keyfile,
    }


def with_context(doors: Doors) -> dict[str, Any]:
    context = create_ssl_context(
        cafile=doors.cafile, certfile=doors.certfile, keyfile=doors.keyfile
    )
    return {
        "bootstrap_servers": doors.tls,
        "security_protocol": "SSL",
        "ssl_context": context,
    }


def with_certificate_by_kafkas_names(doors: Doors) -> dict[str, Any]:
    return {
        "bootstrap.servers": doors.tls,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": doors.cafile,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": doors.keystore,
    }


def by_kafkas_names(mechanism: str, **who: Any) -> Way:
    return lambda doors: {
        "bootstrap.servers": doors.sasl_tls,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": doors.cafile,
        **who,
    }


MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
WAYS: dict[str, Way] = {
    "SSL": with_certificate,
    "SSL context": with_context,
    "ssl.keystore.location": with_certificate_by_kafkas_names,
    **{f"SASL_PLAINTEXT {each}": with_sasl(each) for each in MECHANISMS},
    **{f"SASL_SSL {each}": with_sasl_and_tls(each) for each in MECHANISMS},
    "sasl.jaas.config PLAIN": by_kafkas_names("PLAIN", **{"sasl.jaas.config": jaas(PLAIN_LOGIN)}),
    "sasl.jaas.config SCRAM-SHA-512": by_kafkas_names(
        "SCRAM-SHA-512", **{"sasl.jaas.config": jaas(SCRAM_LOGIN)}
    ),
    "sasl.oauth.token.provider": by_kafkas_names(
        "OAUTHBEARER", **{"sasl.oauth.token.provider": unsigned_token}
    ),
    "unsecuredLoginStringClaim_sub": by_kafkas_names(
        "OAUTHBEARER",
        **{"sasl.jaas.config": f'{OAUTH_LOGIN} unsecuredLoginStringClaim_sub="alice";'},
    ),
}
VALUES = [b"%d" % number for number in range(20)]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, doors: Doors) -> dict[str, Any]:
    """The options of one way in."""
    return WAYS[request.param](doors)


def test_plain_programs(way: dict[str, Any], name: str) -> None:
    """A topic is made, written, read by a group, and looked at."""
    with KafkaAdminClient(**way) as admin:
        admin.create_topics([NewTopic(name, 1, 1)])
        with KafkaProducer(**way) as producer:
            for value in VALUES:
                producer.send(name, value)
            producer.flush(timeout=60)
        options = {"group_id": name, "auto_offset_reset": "earliest", "consumer_timeout_ms": 60_000}
        with KafkaConsumer(name, **way, **options) as consumer:
            assert [next(consumer).value for _ in VALUES] == VALUES
            consumer.commit()
            place = next(iter(consumer.assignment()))
        assert admin.list_consumer_group_offsets(name)[place].offset == len(VALUES)


def test_programs_on_asyncio(way: dict[str, Any], name: str) -> None:
    """The same on a loop, in a transaction."""

    async def program() -> tuple[list[bytes], int]:
        async with AIOKafkaAdminClient(**way) as admin:
            await admin.create_topics([NewTopic(name, 1, 1)])
            producer = AIOKafkaProducer(**way, transactional_id=name)
            async with producer, producer.transaction():
                for value in VALUES:
                    await producer.send(name, value)
            options = {
                "group_id": name,
                "auto_offset_reset": "earliest",
                "isolation_level": "read_committed",
                "enable_auto_commit": False,
            }
            async with AIOKafkaConsumer(name, **way, **options) as consumer:
                async with asyncio.timeout(60):
                    values = [(await consumer.getone()).value for _ in VALUES]
                place = next(iter(consumer.assignment()))
                await consumer.commit({place: len(VALUES)})
            committed = await admin.list_consumer_group_offsets(name)
            return values, committed[place].offset

    assert asyncio.run(program()) == (VALUES, len(VALUES))


def test_clients_outlive_their_sessions(doors: Doors, name: str) -> None:
    """A producer and a consumer go on while their sessions end again and again."""
    way = WAYS["SASL_SSL SCRAM-SHA-512"](doors)
    sent, read = 0, []
    with (
        KafkaProducer(**way) as producer,
        KafkaConsumer(name, **way, auto_offset_reset="earliest", group_id=name) as consumer,
    ):
        enough_s = time.monotonic() + 3 * SESSION_MS["sasl_ssl"] / 1000
        while time.monotonic() < enough_s:
            producer.send(name, b"%d" % sent).get(timeout=60)
            sent += 1
            for records in consumer.poll(timeout_ms=20).values():
                read += [int(record.value) for record in records]
        deadline_s = time.monotonic() + 60
        while len(read) < sent and time.monotonic() < deadline_s:
            for records in consumer.poll(timeout_ms=500).values():
                read += [int(record.value) for record in records]
    assert read == list(range(sent))


def test_tokens_of_an_endpoint(doors: Doors, name: str) -> None:
    login = f'{OAUTH_LOGIN} clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka";'
    with token_server(unsigned_token) as server:
        options = {
            "sasl.jaas.config": login,
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.secured."
                "OAuthBearerLoginCallbackHandler"
            ),
        }
        test_plain_programs(by_kafkas_names("OAUTHBEARER", **options)(doors), name)
    assert len(server.asked) == 3


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_delegation_tokens(doors: Doors, mechanism: str, name: str) -> None:
    def by_token(hmac: bytes) -> dict[str, Any]:
        secret = b64encode(hmac).decode()
        login = f'{SCRAM_LOGIN} username="{token.token_id}" password="{secret}" tokenauth=true;'
        return by_kafkas_names(mechanism, **{"sasl.jaas.config": login})(doors)

    def is_let_in(way: dict[str, Any]) -> bool:
        try:
            with KafkaAdminClient(**way) as client:
                client.list_topics()
        except AuthenticationFailedError:
            return False
        return True

    def wait_until(let_in: bool) -> None:  # the broker learns of a change after its controller
        deadline_s = time.monotonic() + 60
        while is_let_in(by_token(token.hmac)) is not let_in:
            assert time.monotonic() < deadline_s

    with KafkaAdminClient(**WAYS[f"SASL_SSL {mechanism}"](doors)) as admin:
        token = admin.create_delegation_token(lifetime_ms=3_600_000)
        wait_until(True)
        test_plain_programs(by_token(token.hmac), name)
        assert admin.renew_delegation_token(token.hmac) <= token.max_ms
        assert not is_let_in(by_token(b"x" * 64))
        admin.expire_delegation_token(token.hmac)
        wait_until(False)


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_plain_clients_with_a_wrong_password_are_told_so(doors: Doors, client: Any) -> None:
    way = WAYS["SASL_SSL SCRAM-SHA-256"](doors) | {"sasl_plain_password": "wrong"}
    with pytest.raises(AuthenticationFailedError, match="rejected the credentials"):
        client(**way)


@pytest.mark.parametrize("client", [AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaAdminClient])
def test_asyncio_clients_with_a_wrong_password_are_told_so(doors: Doors, client: Any) -> None:
    way = WAYS["SASL_SSL SCRAM-SHA-256"](doors) | {"sasl_plain_password": "wrong"}

    async def program() -> None:
        async with client(**way):
            pytest.fail("a wrong password was taken")

    with pytest.raises(AuthenticationFailedError, match="rejected the credentials"):
        asyncio.run(program())
