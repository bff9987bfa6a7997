"""One listener: its address."""

from __future__ import annotations

import asyncio

from barnabas.broker.connection import Connection
from barnabas.broker.connection_limits import ConnectionLimits
from barnabas.broker.listener import Listener, SocketOptions
from barnabas.config.broker import BrokerOptions


def test_a_name_with_several_addresses_has_one_port() -> None:
    """`localhost` may mean 127.0.0.1 and ::1: a free port is the same on both."""

    async def bound_ports() -> set[int]:
        options = BrokerOptions.parse({"listeners": "PLAINTEXT://:0"})
        (endpoint,) = options.endpoints.bind
        limits = ConnectionLimits(10, 10, {}, 10)
        socket_options = SocketOptions(1000, -1, -1, 50, 1000)
        listener = Listener(endpoint, socket_options, limits, Silent(), lambda: 0)
        await listener.bind()
        assert listener._server is not None
        ports = {each.getsockname()[1] for each in listener._server.sockets}
        assert listener.endpoint.port in ports
        await listener.close()
        return ports

    assert len(asyncio.run(bound_ports())) == 1


class Silent:
    """A dispatcher that nobody calls."""

    def dispatch(self, connection: Connection, frame: memoryview) -> None:
        raise AssertionError("no frame was sent")
