"""Opening a connection: hosts with several addresses, and handshakes that end in the middle."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.errors import AuthenticationFailedError, ConnectError

SILENT = "203.0.113.1"


class Names(asyncio.SelectorEventLoop):
    """A loop on which every host has two addresses, and the first of them says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[str] = []

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        found = await super().getaddrinfo("127.0.0.1", port, **options)
        return [(*entry[:4], (SILENT, port)) for entry in found] + found

    async def create_connection(self, make: Any, host: Any = None, *rest: Any, **more: Any) -> Any:
        self.tried.append(host)
        if host == SILENT:
            await asyncio.Event().wait()
        return await super().create_connection(make, host, *rest, **more)


def test_an_address_that_says_nothing_leaves_time_for_the_next() -> None:
    loop = Names()

    async def conversation() -> int:
        async with ScriptedBroker({}) as broker:
            address = Address("broker", broker.address.port)
            connection = await Connection.open(address, client_id="t", connect_timeout_ms=500)
            connection.close()
            return broker.connections

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(conversation()) == 1
    assert loop.tried == [SILENT, "127.0.0.1"]


def open_with_tls(failure: ssl.SSLError, why: str) -> None:
    """Open a connection on a loop where the handshake fails so."""
    failure.reason = why  # as OpenSSL's own have it

    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *given: Any, **more: Any) -> Any:
            raise failure

    tls = ssl.create_default_context()
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(Connection.open(Address("127.0.0.1", 9), client_id="t", tls=tls))


@pytest.mark.parametrize("cut", [ssl.SSLEOFError(8, "eof"), ssl.SSLZeroReturnError(6, "closed")])
def test_a_handshake_that_was_cut_off_is_worth_another_attempt(cut: ssl.SSLError) -> None:
    with pytest.raises(ConnectError, match="it may not use TLS") as told:
        open_with_tls(cut, "UNEXPECTED_EOF_WHILE_READING")
    assert told.value.retriable


def test_a_handshake_that_was_refused_is_not() -> None:
    with pytest.raises(AuthenticationFailedError, match="no TLS connection") as told:
        open_with_tls(ssl.SSLError(1, "alert"), "SSLV3_ALERT_HANDSHAKE_FAILURE")
    assert not told.value.retriable
