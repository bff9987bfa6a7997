"""Texts behind URLs: what is sent, what is followed, and what ends without one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from barnabas.client.download import BYTES_MAX, DownloadFailed, check_url, download, read_file
from barnabas.model.errors import ConfigError


class Handler(BaseHTTPRequestHandler):
    """Answers by the path."""

    released = threading.Event()

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        if self.path == "/silent":
            self.released.wait(30)
            return
        moved = {"/away": "https://127.0.0.1:1/", "/moved": "/text", "/file": "file:///etc/hosts"}
        if self.path in moved:
            self.send_response(302)
            self.send_header("Location", moved[self.path])
            text = b""
        elif self.path == "/refused":
            self.send_response(401)
            text = b'{"error":"invalid_client"}'
        else:
            self.send_response(200)
            text = b"x" * (BYTES_MAX + 1) if self.path == "/huge" else b"text" + body
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    Handler.released.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        Handler.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


def test_a_text_is_returned_and_a_body_is_posted(url: str) -> None:
    assert download(f"{url}/text", headers={}) == b"text"
    assert download(f"{url}/moved", headers={}) == b"text"
    assert download(f"{url}/text", body=b" and more", headers={}) == b"text and more"


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/away", None, "redirected to another scheme, https"),
        ("/moved", b"secret", "redirected"),
        ("/huge", None, f"larger than {BYTES_MAX} bytes"),
        ("/silent", None, "timed out"),
    ],
)
def test_what_gives_no_text_says_why(url: str, path: str, body: bytes | None, why: str) -> None:
    with pytest.raises(DownloadFailed, match=f"^{re.escape(why)}$") as failure:
        download(url + path, body=body, headers={}, read_s_max=0.2)
    assert failure.value.status is None


def test_a_status_comes_with_the_answer(url: str) -> None:
    with pytest.raises(DownloadFailed, match="status 401") as failure:
        download(f"{url}/refused", body=b"", headers={})
    assert (failure.value.status, failure.value.body) == (401, b'{"error":"invalid_client"}')


def test_a_redirect_to_a_file_is_not_followed(url: str) -> None:
    with pytest.raises(DownloadFailed, match="status 302"):
        download(f"{url}/file", headers={})


def test_a_server_that_is_away_says_why() -> None:
    with serving() as gone:
        pass
    with pytest.raises(DownloadFailed, match="refused"):
        download(gone, headers={})


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a b"
    path.write_bytes(b"text")
    found = check_url(path.as_uri(), "some.url")
    assert found == str(path)
    assert read_file(found) == b"text"
    path.write_bytes(b"x" * (BYTES_MAX + 1))
    with pytest.raises(DownloadFailed, match="larger"):
        read_file(found)
    path.unlink()
    with pytest.raises(DownloadFailed, match="No such file"):
        read_file(found)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://x/", "must begin with https://"),
        ("x", "must begin with https://"),
        ("http:///path", "has no host"),
        ("https://[::1", "not a URL"),
    ],
)
def test_other_urls_are_refused_by_the_option(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(why)) as failure:
        check_url(url, "some.url")
    assert str(failure.value).startswith(f"some.url={url}: ")
    assert check_url("https://host/path", "some.url") is None
