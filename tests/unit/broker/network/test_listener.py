"""One listener: its address."""

from __future__ import annotations

import asyncio
import socket

from barnabas.broker.network.connection import Connection
from barnabas.broker.network.connection_limits import ConnectionLimits
from barnabas.broker.network.listener import Listener, SocketOptions
from barnabas.config.broker import BrokerOptions
from barnabas.quotas.sampled_rate import Windows


def test_a_name_with_several_addresses_has_one_port() -> None:
    """`localhost` may mean 127.0.0.1 and ::1: a free port is the same on both."""

    async def bound_ports() -> set[int]:
        listener = make()
        await listener.bind()
        assert listener._server is not None
        ports = {each.getsockname()[1] for each in listener._server.sockets}
        assert listener.endpoint.port in ports
        await listener.close()
        return ports

    assert len(asyncio.run(bound_ports())) == 1


def test_a_connection_that_comes_as_the_listener_closes_is_closed() -> None:
    """It was accepted before, and its protocol is made in a later turn of the loop."""

    async def read_after_close() -> bytes:
        listener = make()
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            await listener.close()
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: Connection(listener, Silent()), ours)
            async with asyncio.timeout(60):
                return await loop.sock_recv(theirs, 1)

    assert asyncio.run(read_after_close()) == b""


def make() -> Listener:
    options = BrokerOptions.parse({"listeners": "PLAINTEXT://:0"})
    (endpoint,) = options.endpoints.bind
    limits = ConnectionLimits(Windows()).of(endpoint.name)
    return Listener(endpoint, SocketOptions(1000, -1, -1, 50, 1000), limits, Silent(), lambda: 0)


class Silent:
    """A dispatcher that nobody calls."""

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        raise AssertionError("no frame was sent")
