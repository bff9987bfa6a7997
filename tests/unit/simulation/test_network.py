"""Cuts, latency and resets between hosts; connections themselves are in test_transport.py."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from barnabas.simulation.network import CONNECT_TIMEOUT
from barnabas.simulation.world import Host, World


class Echo(asyncio.Protocol):
    """Sends back what it gets, and counts its connections."""

    def __init__(self, host: Any) -> None:
        self.host = host

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.host.connections = getattr(self.host, "connections", 0) + 1

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def serve(host: Host) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Echo(host), host.name, 9092)
    await server.serve_forever()


class Collector(asyncio.Protocol):
    """Collects chunks; `complete` is done when as many bytes came as were expected."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.expected = 0
        self.error: Exception | None = None
        self.complete = asyncio.get_running_loop().create_future()
        self.lost = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)
        if sum(map(len, self.chunks)) == self.expected:
            self.complete.set_result(asyncio.get_running_loop().time())

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self.lost.set_result(None)


async def dial(name: str) -> tuple[asyncio.Transport, Collector]:
    return await asyncio.get_running_loop().create_connection(Collector, name, 9092)


async def ask(transport: asyncio.Transport, collector: Collector, data: bytes) -> float:
    """Send, await the echo, and return when it was complete."""
    collector.chunks.clear()
    collector.expected = len(data)
    collector.complete = asyncio.get_running_loop().create_future()
    transport.write(data)
    when = await collector.complete
    assert b"".join(collector.chunks) == data
    return when


def test_messages_take_their_latency():
    with World(seed=1, latency_ms=(50, 60)) as world:
        world.start("one", serve)

        async def scenario() -> float:
            connection = await dial("one")
            began = world.loop.time()
            return await ask(*connection, b"hello") - began

        took = world.run(scenario())
    assert 0.1 <= took <= 1.2


def test_streams_are_cut_at_boundaries_that_the_seed_decides():
    def boundaries(seed: int) -> list[int]:
        with World(seed) as world:
            world.start("one", serve)

            async def scenario() -> list[int]:
                transport, collector = await dial("one")
                await ask(transport, collector, bytes(range(256)) * 40)
                return [len(chunk) for chunk in collector.chunks]

            return world.run(scenario())

    seen = [boundaries(seed) for seed in range(10)]
    assert boundaries(3) == seen[3]
    assert len({tuple(sizes) for sizes in seen}) > 1
    assert any(len(sizes) > 1 for sizes in seen)


@pytest.mark.parametrize("both", [True, False])
def test_a_cut_holds_bytes_until_it_heals(both):
    with World(seed=2) as world:
        world.start("one", serve)

        async def scenario() -> None:
            connection = await dial("one")
            world.network.cut("driver", "one", both=both)
            world.loop.call_at(30, world.network.heal, "one", "driver")
            assert 30 <= await ask(*connection, b"held") < 31

        world.run(scenario())


def test_a_one_way_cut_lets_the_other_way_through():
    with World(seed=2) as world:
        host: Any = world.host("one")
        received: list[bytes] = []

        class Keep(Echo):
            def data_received(self, data: bytes) -> None:
                received.append(data)
                super().data_received(data)

        async def serve_and_keep(host: Host) -> None:
            loop = asyncio.get_running_loop()
            await loop.create_server(lambda: Keep(host), port=9092)

        world.start("one", serve_and_keep)

        async def scenario() -> None:
            transport, collector = await dial("one")
            world.network.cut("one", "driver", both=False)
            transport.write(b"to one")
            await asyncio.sleep(1)
            assert b"".join(received) == b"to one"
            assert collector.chunks == []
            world.network.heal_all()
            await asyncio.sleep(1)
            assert b"".join(collector.chunks) == b"to one"
            assert host.connections == 1

        world.run(scenario())


def test_connecting_through_a_cut_waits_and_gives_up_in_the_end():
    with World(seed=2) as world:
        world.start("one", serve)
        world.host("two")

        async def scenario() -> None:
            await asyncio.sleep(0.1)
            world.network.isolate("one")
            began = world.loop.time()
            with pytest.raises(TimeoutError):
                await dial("one")
            assert world.loop.time() - began == CONNECT_TIMEOUT
            world.loop.call_later(5, world.network.heal_all)
            began = world.loop.time()
            await dial("one")
            assert 5 <= world.loop.time() - began < 6

        world.run(scenario())


def test_a_caller_that_gives_up_leaves_no_connection():
    with World(seed=2, latency_ms=(100, 100)) as world:
        world.start("one", serve)

        async def scenario() -> None:
            await asyncio.sleep(0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.15):
                    await dial("one")
            await asyncio.sleep(5)

        world.run(scenario())
        assert world.network.reset("driver", "one") == 0


def test_a_reset_breaks_both_ends():
    with World(seed=2) as world:
        host: Any = world.host("one")
        lost: list[Exception | None] = []

        class Watch(Echo):
            def connection_lost(self, exc: Exception | None) -> None:
                lost.append(exc)

        async def serve_and_watch(host: Host) -> None:
            loop = asyncio.get_running_loop()
            await loop.create_server(lambda: Watch(host), port=9092)

        world.start("one", serve_and_watch)

        async def scenario() -> None:
            transport, collector = await dial("one")
            await ask(transport, collector, b"x")
            assert world.network.reset("driver", "one") == 1
            await collector.lost
            assert isinstance(collector.error, ConnectionResetError)
            assert [type(error) for error in lost] == [ConnectionResetError]
            assert transport.is_closing()
            await ask(*await dial("one"), b"again")
            assert host.connections == 2

        world.run(scenario())


def test_a_connection_that_breaks_at_birth_is_made_and_then_lost():
    with World(seed=2, latency_ms=(100, 100)) as world:
        world.start("one", serve)

        async def scenario() -> None:
            await asyncio.sleep(1)
            # The server's end exists, and the client has not heard of it yet.
            world.loop.call_later(0.15, world.network.reset, "driver", "one")
            transport, collector = await dial("one")
            assert not collector.lost.done(), "the caller has the first turn"
            assert transport.is_closing()
            await collector.lost
            assert isinstance(collector.error, ConnectionResetError)

        world.run(scenario())


def test_names_and_ports_that_are_not_there():
    with World(seed=2) as world:
        world.host("one")
        world.start("two", serve)

        async def serve_as_another(host: Host) -> None:
            with pytest.raises(OSError, match="not an address"):
                await asyncio.get_running_loop().create_server(asyncio.Protocol, "two", 1)

        checked = world.start("three", serve_as_another)

        async def scenario() -> None:
            await checked
            with pytest.raises(ConnectionRefusedError):
                await dial("one")
            with pytest.raises(ConnectionRefusedError):
                await dial("localhost")
            with pytest.raises(socket.gaierror, match="nowhere"):
                await dial("nowhere")
            assert await world.loop.getaddrinfo("two", 5) == [
                (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("two", 5))
            ]

        world.run(scenario())


def test_a_channel_keeps_order_through_cuts_and_failing_receivers():
    with World(seed=6, latency_ms=(0, 20)) as world:
        world.host("one")
        channel = world.network.channel("driver", "one", world.context)
        seen: list[int] = []

        def fail() -> None:
            raise ValueError("receiver")

        async def scenario() -> None:
            for number in range(100):
                channel.send(lambda number=number: seen.append(number))  # type: ignore[misc]
                if number == 30:
                    world.network.cut("driver", "one")
                if number == 60:
                    channel.send(fail)
                    world.network.heal_all()
                await asyncio.sleep(0.002)
            await asyncio.sleep(2)

        world.loop.set_exception_handler(lambda loop, context: None)
        world.run(scenario())
        assert seen == list(range(100))
