"""Hundreds of sessions that are renewed, on connections that are in use: none of them is lost.

Half of the connections are our clients', which renew by themselves, half are raw ones, and a few
are librdkafka's. `BARNABAS_CHAOS_SECONDS` says for how long (a little more than one session unless
it is set).
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.system.secured_broker import (
    HOST,
    PASSWORD,
    SHORT,
    SecuredBroker,
    log_in,
    log_in_by_scram,
)
from tests.unit.broker.serving import metadata

from barnabas.client.addresses import Address
from barnabas.client.authentication import Authentication
from barnabas.client.connection import Connection
from barnabas.client.opening import Ask
from barnabas.client.sasl.conversations import with_password
from barnabas.wire.apis import api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.schema import Message

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("many-logins")]

OURS, RAW, FOREIGN = 250, 250, 3
SESSION_S = 10.0
"""Clients renew when 5 to 15 % are left, which must be longer than a busy machine may pause."""
SECONDS = max(float(os.environ.get("BARNABAS_CHAOS_SECONDS", "0")), 1.2 * SESSION_S)
LOGINS_MIN = 1 + int(SECONDS / (1.2 * SESSION_S))
PAUSE_S = 0.5
"""How often each connection is used; a request after a session's end would close it."""
AT_A_TIME = 10
"""How many connect at the same time: a crowd would take longer than a session to get in."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    directory = tmp_path_factory.mktemp("secured")
    with SecuredBroker(directory, session_ms=int(SESSION_S * 1000)) as running:
        yield running


class CountedLogins(Authentication):
    """Logins by PLAIN or SCRAM that are counted."""

    logins = 0

    async def __call__(self, ask: Ask, address: Address) -> float:
        lifetime_ms = await super().__call__(ask, address)
        self.logins += 1
        return lifetime_ms


class RawConnection:
    """TLS and frames, one request after the other; half-way through it renews its session."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.logins = 0

    async def ask(self, request: Message, version: int) -> Any:
        self._writer.write(request_frame(request, version, 1, "raw"))
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        answer = await self._reader.readexactly(size)
        return decode_response(api_of(type(request)), version, answer)[1]

    async def log_in(self) -> None:
        chosen = await self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert chosen.error_code == 0
        token = SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}".encode())
        answer = await self.ask(token, 2)
        assert (answer.error_code, answer.session_lifetime_ms) == (0, int(SESSION_S * 1000))
        self.logins += 1

    def close(self) -> None:
        self._writer.close()


async def use_ours(
    address: Address, login: CountedLogins, tls: ssl.SSLContext, door: asyncio.Semaphore
) -> int:
    """Use a connection of our clients; return how often it has logged in."""
    loop = asyncio.get_running_loop()
    async with door:
        connection = await Connection.open(address, client_id="ours", tls=tls, login=login)
    ends_s = loop.time() + SECONDS
    try:
        while loop.time() < ends_s:
            assert (await connection.send(MetadataRequest(topics=[]))).brokers
            await asyncio.sleep(PAUSE_S)
        assert not connection.closed
    finally:
        connection.close()
        await connection.wait_closed()
    return login.logins


async def use_raw(address: Address, tls: ssl.SSLContext, door: asyncio.Semaphore) -> int:
    """Use a raw connection; return how often it has logged in."""
    loop = asyncio.get_running_loop()
    async with door:
        connection = RawConnection(
            *await asyncio.open_connection(address.host, address.port, ssl=tls)
        )
        await connection.log_in()
    now_s = loop.time()
    ends_s, renew_s = now_s + SECONDS, now_s + SESSION_S / 2
    try:
        while loop.time() < ends_s:
            if loop.time() >= renew_s:
                renew_s = loop.time() + SESSION_S / 2
                await connection.log_in()
            assert (await connection.ask(MetadataRequest(topics=[]), 12)).brokers
            await asyncio.sleep(PAUSE_S)
    finally:
        connection.close()
    return connection.logins


def use_foreign(broker: SecuredBroker, mechanism: str) -> int:
    """Use a producer of librdkafka; return how many records were acknowledged."""
    failures: list[Any] = []
    delivered: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": f"{HOST}:{broker.ports[SHORT]}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(broker.cafile),
            "error_cb": failures.append,
            "message.timeout.ms": 30_000,
        }
    )
    for _ in range(int(SECONDS / PAUSE_S)):
        producer.produce("used", b"x", on_delivery=lambda error, _: delivered.append(error))
        producer.poll(PAUSE_S)
    assert producer.flush(30) == 0
    assert failures == []
    assert set(delivered) == {None}
    return len(delivered)


def test_hundreds_of_sessions_are_renewed(broker: SecuredBroker) -> None:
    source = random.Random(1)
    address, tls = Address(HOST, broker.ports[SHORT]), broker.context()

    async def use_all() -> tuple[list[int], list[int], list[int]]:
        door = asyncio.Semaphore(AT_A_TIME)
        ours = [
            CountedLogins(mechanism, with_password(mechanism, "alice", PASSWORD, {}), source.random)
            for mechanism in ["SCRAM-SHA-256", *["PLAIN"] * 9] * (OURS // 10)
        ]
        foreign = asyncio.gather(
            *(
                asyncio.to_thread(use_foreign, broker, mechanism)
                for mechanism in ["PLAIN", "SCRAM-SHA-256"] * FOREIGN
            )
        )
        counts, raw = await asyncio.gather(
            asyncio.gather(*(use_ours(address, login, tls, door) for login in ours)),
            asyncio.gather(*(use_raw(address, tls, door) for _ in range(RAW))),
        )
        return counts, raw, await foreign

    ours, raw, foreign = asyncio.run(use_all())
    assert len(ours) == OURS
    assert len(raw) == RAW
    assert min(ours) >= LOGINS_MIN, "each was renewed, or it would have ended"
    assert min(raw) >= LOGINS_MIN
    assert min(foreign) == int(SECONDS / PAUSE_S)
    assert broker.complaints() == [], "nobody was late, nobody was rejected"
    print(f"{sum(ours)} + {sum(raw)} logins on {OURS} + {RAW} connections")


@pytest.mark.parametrize("log_in_with", [log_in, log_in_by_scram])
def test_a_session_is_not_renewed_by_a_wrong_password(
    broker: SecuredBroker, log_in_with: Any
) -> None:
    broker.complaints()
    with broker.connect(SHORT) as wire:
        assert log_in_with(wire).error_code == 0
        assert metadata(wire).brokers
        answer = log_in_with(wire, "guess")
        assert answer.error_code == 58
        wire.expect_close()
    broker.expect_line("re-authentication failed")
