"""Keys of bearer tokens from a server on loopback and from a file: exchanged, broken, away."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.unit.security.sasl.bearer import issuer, jwks

from barnabas.broker.network import signing_keys
from barnabas.broker.network.signing_keys import FetchedKeys
from barnabas.client.download import BYTES_MAX
from barnabas.model.errors import ConfigError

HOUR_MS = 3_600_000


class KeyServer:
    """Answers every request with the same text, and counts them."""

    def __init__(self) -> None:
        self.text = jwks(issuer())
        self.status = 200
        self.location = ""
        self.requests = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests += 1
                self.send_response(outer.status)
                if outer.location:
                    self.send_header("Location", outer.location)
                self.send_header("Content-Length", str(len(outer.text)))
                self.end_headers()
                self.wfile.write(outer.text)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"

    @contextmanager
    def serving(self) -> Iterator[KeyServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with KeyServer().serving() as running:
        yield running


@asynccontextmanager
async def fetched(url: str, refresh_ms: int = HOUR_MS) -> AsyncIterator[FetchedKeys]:
    keys = FetchedKeys(url, refresh_ms, 1, 5)
    try:
        await keys.start()
        yield keys
    finally:
        await keys.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing tells when a fetch is over
            await asyncio.sleep(0.002)


def test_keys_are_fetched_at_the_start_and_when_an_unknown_one_is_used(server: KeyServer) -> None:
    async def run() -> None:
        async with fetched(server.url) as fetching:
            keys = fetching.keys
            assert keys.find("one", "ES256", 0) is not None
            server.text = jwks(issuer("two", "RS256"))
            for now_ms in range(1000):
                assert keys.find("two", "RS256", now_ms) is None
            await until(lambda: keys.find("two", "RS256", 1000))
            assert keys.find("one", "ES256", 1000) is None
            await until(lambda: server.requests == 3)  # the key that is gone was asked for
            for now_ms in range(1000, 2000):
                keys.find("one", "ES256", now_ms)
            assert server.requests == 3

    asyncio.run(run())


def test_keys_are_refreshed_now_and_then(server: KeyServer) -> None:
    async def run() -> None:
        async with fetched(server.url, refresh_ms=5) as fetching:
            server.text = jwks(issuer("two", "RS256"))
            await until(lambda: any(key.key_id == "two" for key in fetching.keys._keys))

    asyncio.run(run())


def test_a_server_that_fails_later_costs_nothing(
    server: KeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with fetched(server.url, refresh_ms=5) as fetching:
            before = server.requests
            server.status = 500
            await until(lambda: server.requests > before + 5)
            assert len(fetching.keys) == 1
            server.status = 200
            await until(lambda: "fetched again" in caplog.text)

    caplog.set_level("INFO", "barnabas")
    asyncio.run(run())
    complaints = [each for each in caplog.records if "stay as they were" in each.getMessage()]
    assert len(complaints) == 1, "one line for all failures in a row"


@pytest.mark.parametrize("text", [b"", b"{}", b"x" * (BYTES_MAX + 1)])
def test_keys_that_cannot_be_had_fail_the_start(server: KeyServer, text: bytes) -> None:
    server.text = text

    async def run() -> None:
        async with fetched(server.url):
            pass

    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url=http:"):
        asyncio.run(run())


def test_a_server_that_is_away_fails_the_start() -> None:
    closed = KeyServer()
    closed._server.server_close()

    async def run() -> None:
        async with fetched(closed.url):
            pass

    with pytest.raises(ConfigError, match="cannot be fetched"):
        asyncio.run(run())


@pytest.mark.parametrize("location", ["file:///etc/passwd", "https://127.0.0.1:1/", "ftp://x/"])
def test_other_schemes_are_not_followed(server: KeyServer, location: str) -> None:
    server.status, server.location = 302, location

    async def run() -> None:
        async with fetched(server.url):
            pass

    with pytest.raises(ConfigError, match="cannot be fetched"):
        asyncio.run(run())


def test_other_schemes_are_refused() -> None:
    with pytest.raises(ConfigError, match="must begin with https://, http:// or file://"):
        FetchedKeys("ftp://example.org/keys", HOUR_MS, 1, 5)


def test_a_file_is_read_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "my keys.json"
    path.write_bytes(jwks(issuer()))
    monkeypatch.setattr(signing_keys, "FILE_LOOK_MS", 5)

    async def run() -> None:
        async with fetched(path.as_uri()) as fetching:
            assert fetching.keys.find("one", "ES256", 0) is not None
            other = path.with_suffix(".new")
            other.write_bytes(jwks(issuer("two", "RS256")))
            os.replace(other, path)
            await until(lambda: any(key.key_id == "two" for key in fetching.keys._keys))

    asyncio.run(run())


def test_keys_of_a_later_listener_are_fetched_in_the_background(server: KeyServer) -> None:
    async def run() -> None:
        keys = FetchedKeys(server.url, HOUR_MS, 1, 5)
        keys.begin()
        await until(lambda: len(keys.keys) == 1)
        await keys.stop()

    asyncio.run(run())
