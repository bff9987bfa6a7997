"""The console's socket: lazy, handed over whole, limited, and closed with the broker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from barnabas.console import hosting as hosting_module
from barnabas.console import server as server_module
from barnabas.console.address import ConsoleAddress
from barnabas.console.hosting import hosting_of
from barnabas.console.server import ConsoleServer
from barnabas.model.errors import ConfigError

ANY_PORT = ConsoleAddress("127.0.0.1", 0)


async def hello(request: Request) -> PlainTextResponse:
    body = await request.body()
    return PlainTextResponse(f"hello {len(body)}")


async def forever(request: Request) -> StreamingResponse:
    async def pieces() -> Any:
        yield b"first"
        await asyncio.Event().wait()

    return StreamingResponse(pieces())


def app() -> Starlette:
    return Starlette(
        routes=[
            Route("/", hello, methods=["GET", "POST"]),
            Route("/forever", forever),
        ]
    )


def serving(
    scenario: Callable[[ConsoleServer], Awaitable[None]],
    load: Callable[[], Any] = lambda: hosting_of(app),
) -> None:
    async def play() -> None:
        server = ConsoleServer(ANY_PORT, load)
        await server.start()
        try:
            async with asyncio.timeout(60):
                await scenario(server)
        finally:
            await server.stop()

    asyncio.run(play())


async def ask(server: ConsoleServer, request: bytes) -> bytes:
    """Send bytes, and return everything up to the end."""
    reader, writer = await asyncio.open_connection(*server.address)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


def get(path: str = "/") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def test_nothing_is_loaded_before_a_browser_connects() -> None:
    loads: list[int] = []

    def load() -> Any:
        loads.append(1)
        return hosting_of(app)

    async def scenario(server: ConsoleServer) -> None:
        assert server.address.port > 0
        assert server.url == f"http://127.0.0.1:{server.address.port}/"
        assert not server.is_loaded
        assert loads == []
        answers = await asyncio.gather(*(ask(server, get()) for _ in range(20)))
        assert all(each.startswith(b"HTTP/1.1 200 OK") for each in answers)
        assert all(each.endswith(b"hello 0") for each in answers)
        assert server.is_loaded
        assert loads == [1]
        assert (await ask(server, get())).endswith(b"hello 0")

    serving(scenario, load)


def test_what_was_sent_before_is_not_lost() -> None:
    async def scenario(server: ConsoleServer) -> None:
        body = b"x" * (3 * server_module.HELD_BYTES_MAX)
        head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        answer = await ask(server, head % len(body) + body)
        assert answer.endswith(b"hello %d" % len(body))

    serving(scenario)


def test_a_browser_that_leaves_while_it_is_loaded_is_no_problem() -> None:
    async def scenario(server: ConsoleServer) -> None:
        _, writer = await asyncio.open_connection(*server.address)
        writer.write(get())
        writer.close()
        await writer.wait_closed()
        assert (await ask(server, get())).endswith(b"hello 0")

    serving(scenario)


def test_without_the_packages_a_page_says_what_to_install(
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempts: list[int] = []

    def load() -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            raise ImportError("No module named 'starlette'")
        return hosting_of(app)

    async def scenario(server: ConsoleServer) -> None:
        answer = await ask(server, get())
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"pip install 'barnabas[console]'" in answer
        assert "install barnabas[console]" in caplog.text
        assert (await ask(server, get())).endswith(b"hello 0"), "it was installed meanwhile"

    serving(scenario, load)


def test_a_bug_while_it_is_loaded_closes_the_connections(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def load() -> Any:
        raise ZeroDivisionError

    async def scenario(server: ConsoleServer) -> None:
        with pytest.raises(ConnectionResetError):
            await ask(server, get())
        assert "could not be loaded" in caplog.text

    serving(scenario, load)


def test_an_address_in_use_is_an_error_that_says_what_to_do() -> None:
    async def scenario(server: ConsoleServer) -> None:
        second = ConsoleServer(server.address, lambda: hosting_of(app))
        with pytest.raises(ConfigError, match=r"cannot listen on .*--console HOST:PORT"):
            await second.start()
        await second.stop()

    serving(scenario)


def test_stopping_ends_live_streams(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: ConsoleServer) -> None:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(get("/forever"))
        await reader.readuntil(b"first")
        await server.stop()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        assert caplog.records == [], "that is no error"

    serving(scenario)


def test_a_client_that_sends_its_head_slowly_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting_module, "HEAD_S_MAX", 0.05)

    async def scenario(server: ConsoleServer) -> None:
        keep = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for first in (b"", b"GET / HT", keep + b"GET / HT"):
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(first)
            try:
                while await reader.read(1000):
                    pass
            except ConnectionResetError:
                pass
            writer.close()

    serving(scenario)


def test_a_head_that_is_too_large_is_rejected() -> None:
    async def scenario(server: ConsoleServer) -> None:
        large = b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 2 * hosting_module.HEAD_BYTES_MAX
        assert (await ask(server, large)).startswith(b"HTTP/1.1 400 ")
        assert (await ask(server, b"\x16\x03\x01 not HTTP\r\n\r\n")).startswith(b"HTTP/1.1 400 ")

    serving(scenario)


def test_there_is_a_limit_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting_module, "CONNECTIONS_MAX", 3)

    async def scenario(server: ConsoleServer) -> None:
        await ask(server, get())
        held = [await asyncio.open_connection(*server.address) for _ in range(3)]
        with pytest.raises((ConnectionError, AssertionError)):
            assert b"hello" in await ask(server, get())
        for _, writer in held:
            writer.close()
            await writer.wait_closed()

    serving(scenario)
