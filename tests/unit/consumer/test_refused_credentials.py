"""A consumer that brokers no longer let in says so in its polls, and goes on when they do again."""

from __future__ import annotations

import asyncio

import pytest
from tests.network.scripted_broker import CLOSE
from tests.unit.consumer.scripted import P, Scripted, simulate

from barnabas.aio import AIOKafkaConsumer
from barnabas.errors import AuthenticationFailedError
from barnabas.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


class Door:
    """Lets clients in, or does not."""

    is_open = True

    def authenticate(
        self, request: SaslAuthenticateRequest, version: int
    ) -> SaslAuthenticateResponse:
        if self.is_open:
            return SaslAuthenticateResponse()
        return SaslAuthenticateResponse(error_code=58, error_message="alice has gone")

    def handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(mechanisms=["PLAIN"])


async def read(consumer: AIOKafkaConsumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    async with asyncio.timeout(60):
        while len(values) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                values += [record.value for record in records]
    return values


def test_polls_tell_of_credentials_that_are_refused_until_they_are_taken_again() -> None:
    async def story() -> None:
        door = Door()
        more = {
            SaslHandshakeRequest: door.handshake,
            SaslAuthenticateRequest: door.authenticate,
        }
        async with Scripted(more=more) as brokers:
            brokers.append(6)

            def answer(*_: object) -> object:
                if len(brokers.fetches) == 2:  # the first brings three records
                    door.is_open = False
                return NotImplemented if door.is_open else CLOSE

            brokers.answer = answer
            consumer = AIOKafkaConsumer(
                bootstrap_servers=brokers.bootstrap,
                auto_offset_reset="earliest",
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_plain_username="alice",
                sasl_plain_password="secret",
                reconnect_backoff_ms=5,
                reconnect_backoff_max_ms=20,
                retry_backoff_ms=5,
            )
            consumer.assign([P])
            async with consumer:
                assert await read(consumer, 3) == [b"0", b"1", b"2"]
                with pytest.raises(AuthenticationFailedError, match="alice has gone"):
                    await read(consumer, 3)
                door.is_open = True
                values: list[bytes] = []
                async with asyncio.timeout(60):
                    while len(values) < 3:
                        try:
                            values += await read(consumer, 1)
                        except AuthenticationFailedError:
                            continue  # of an attempt before the door was open again
                assert values == [b"3", b"4", b"5"]

    simulate(story())
