"""Connections of HTTP clients: answers in order, and a limit to whatever a client does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http import HTTPStatus

import pytest
from tests.unit.broker.monitoring.http_client import Client, get
from tests.unit.broker.serving import wait_for

from barnabas.broker.monitoring import http_connection
from barnabas.broker.monitoring.http_connection import Answer, HttpConnection
from barnabas.broker.monitoring.http_request import BadRequest, HttpRequest

CONNECTIONS_MAX = 5
LARGE = b"x" * (16 << 20)


class Server:
    """Connections on a loop of their own, and what they answer."""

    def __init__(self) -> None:
        self.connections: dict[HttpConnection, None] = {}
        self.served: list[str] = []
        self.address = ("", 0)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(60)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        server = await self._loop.create_server(
            partial(HttpConnection, self.connections, CONNECTIONS_MAX, self._respond),
            "127.0.0.1",
            0,
        )
        self.address = server.sockets[0].getsockname()
        self._ready.set()
        await self._end.wait()
        server.close()
        for connection in list(self.connections):
            connection.abort()
            await connection.closed.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)

    async def _respond(self, request: HttpRequest) -> Answer:
        self.served.append(request.path)
        if request.path == "/chunks":
            return Answer(HTTPStatus.OK, {}, self._chunks(b"one ", b"two ", b"three"))
        if request.path == "/large":
            return Answer(HTTPStatus.OK, {}, self._chunks(*[LARGE] * 4))
        if request.path == "/torn":
            return Answer(HTTPStatus.OK, {}, self._torn())
        if request.path == "/bug":
            raise ZeroDivisionError
        if request.path == "/no":
            raise BadRequest(HTTPStatus.UNAUTHORIZED, "not for you")
        return Answer.of_text(f"{request.path}\n")

    async def _chunks(self, *chunks: bytes) -> AsyncIterator[bytes]:
        for chunk in chunks:
            await asyncio.sleep(0)
            yield chunk

    async def _torn(self) -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError("the rest is missing")


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def test_one_connection_serves_many_requests(server: Server) -> None:
    with Client(server.address) as client:
        assert client.get("/a").text == "/a\n"
        chunked = client.get("/chunks")
        assert (chunked.text, chunked.headers["Transfer-Encoding"]) == ("one two three", "chunked")
        assert client.get("/b").text == "/b\n"


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with Client(server.address) as client:
        for path in ("/chunks", "/a", "/chunks", "/b"):
            client.request(path)
        assert [client.reply().text for _ in range(4)] == [
            "one two three",
            "/a\n",
            "one two three",
            "/b\n",
        ]


def test_a_request_may_come_in_pieces(server: Server) -> None:
    with Client(server.address) as client:
        for piece in (b"GET /a HT", b"TP/1.1\r\nHost: a\r", b"\n\r", b"\n"):
            client.send(piece)
        assert client.reply().text == "/a\n"


def test_head_has_the_headers_alone(server: Server) -> None:
    with Client(server.address) as client:
        client.request("/a", "HEAD")
        assert client.reply(is_head=True).headers["Content-Length"] == "3"
        client.request("/chunks", "HEAD")
        assert client.reply(is_head=True).status == 200
        assert client.get("/b").text == "/b\n"


def test_clients_of_http_1_0_know_the_end_by_the_connection(server: Server) -> None:
    with Client(server.address) as client:
        client.send(b"GET /chunks HTTP/1.0\r\n\r\n")
        reply = client.reply()
        assert reply.text == "one two three"
        assert "Transfer-Encoding" not in reply.headers
        client.expect_close()


def test_a_client_may_close_its_side_and_read_on(server: Server) -> None:
    with Client(server.address) as client:
        client.request("/chunks")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.reply().text == "one two three"
        client.expect_close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + b"x" * 100, 405),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 400),
        (b"GET /" + b"a" * 10_000_000, 431),
    ],
)
def test_what_is_malformed_is_answered_once_and_closed(
    server: Server, sent: bytes, status: int
) -> None:
    with Client(server.address) as client:
        try:
            client.send(sent)
        except (BrokenPipeError, ConnectionResetError):
            return  # it sends on although it was answered
        assert client.reply().status == status
        client.expect_close()
    assert server.served == []


@pytest.mark.parametrize(("path", "status"), [("/no", 401), ("/bug", 500)])
def test_errors_of_a_path_keep_the_connection(
    server: Server, path: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(server.address) as client:
        reply = client.get(path)
        assert reply.status == status
        assert client.get("/a").status == 200
    if status == 401:
        assert reply.headers["WWW-Authenticate"] == "Bearer"
    logged = [each.getMessage() for each in caplog.records]
    assert logged == (["metrics: /bug could not be answered"] if status == 500 else [])


def test_an_incomplete_answer_is_seen_as_one(server: Server) -> None:
    with Client(server.address) as client:
        client.request("/torn")
        with pytest.raises(ConnectionResetError):  # there is no last chunk
            client.reply()


def test_more_connections_than_allowed_get_one_answer(server: Server) -> None:
    clients = [Client(server.address) for _ in range(CONNECTIONS_MAX)]
    wait_for(lambda: len(server.connections) == CONNECTIONS_MAX, "all are connected")
    for _ in range(20):
        with Client(server.address) as client:
            try:
                reply = client.reply()
            except ConnectionResetError:
                continue  # beyond twice the limit nothing is said
            assert (reply.status, reply.text) == (503, "too many connections\n")
    assert clients[0].get("/a").text == "/a\n"
    for client in clients:
        client.close()
    wait_for(lambda: not server.connections, "all are gone")
    assert get(server.address, "/b").text == "/b\n"


def test_an_idle_connection_is_closed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "IDLE_S_MAX", 0.05)
    with Client(server.address) as client:
        assert client.get("/a").text == "/a\n"
        client.expect_close()


def test_a_head_that_does_not_end_is_answered(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "HEAD_S_MAX", 0.05)
    with Client(server.address) as client:
        client.send(b"GET /metr")
        reply = client.reply()
        assert (reply.status, reply.text) == (408, "the head did not arrive in 0.05 s\n")
        client.expect_close()


def test_a_client_that_does_not_read_is_dropped(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "ANSWER_S_MAX", 0.2)
    with Client(server.address) as client:
        client.request("/large")
        wait_for(lambda: server.served == ["/large"], "it is being answered")
        assert get(server.address, "/a").text == "/a\n"
        wait_for(lambda: not server.connections, "the slow one is dropped")
        with pytest.raises(ConnectionResetError):
            client.reply()
