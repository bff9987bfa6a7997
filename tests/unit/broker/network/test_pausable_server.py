"""A server that accepts nothing for a while, on both loops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from barnabas.broker.network.pausable_server import PausableServer


class Greeting(asyncio.Protocol):
    """Counts connections and greets them."""

    def __init__(self, made: list[Greeting]) -> None:
        self._made = made

    def connection_made(self, transport: Any) -> None:
        self._made.append(self)
        transport.write(b"hello")


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_connections_wait_in_the_kernel_while_it_is_paused(loop: Callable[[], Any]) -> None:
    """They are opened, not accepted; then they are served."""
    made: list[Greeting] = []

    async def story() -> None:
        running = asyncio.get_running_loop()
        server = await running.create_server(
            lambda: Greeting(made), "127.0.0.1", 0, backlog=50, start_serving=False
        )
        pausable = PausableServer(server, lambda: Greeting(made), 50)
        address = pausable.sockets[0].getsockname()
        await pausable.start_serving()
        assert await hello(address) == b"hello"
        for expected in (2, 4):
            pausable.pause()
            clients = [connect(address) for _ in range(2)]
            # A round trip of another server: what was to be accepted is by now.
            other = await running.create_server(lambda: Greeting([]), "127.0.0.1", 0)
            assert await hello(other.sockets[0].getsockname()) == b"hello"
            other.close()
            assert len(made) == expected - 1
            pausable.resume()
            for client in clients:
                with client:
                    assert await running.sock_recv(client, 5) == b"hello"
        pausable.pause()
        pausable.resume()
        pausable.close()
        if pausable._resuming is not None:
            await pausable._resuming
        with socket.socket() as late, pytest.raises(ConnectionRefusedError):
            late.connect(address)

    async def hello(address: tuple[str, int]) -> bytes:
        with connect(address) as client:
            return await asyncio.get_running_loop().sock_recv(client, 5)

    def connect(address: tuple[str, int]) -> socket.socket:
        client = socket.create_connection(address, 60)
        client.setblocking(False)
        return client

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(story(), 60))
    assert len(made) == 5
