"""A client of HTTP that sees every byte."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
from collections.abc import Mapping
from typing import NamedTuple

DEADLINE_S = 60.0


class Reply(NamedTuple):
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    """Without the framing of chunks, and unpacked."""

    @property
    def text(self) -> str:
        return self.body.decode()


class Client:
    """One connection."""

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> None:
        self.socket: socket.socket = socket.create_connection(address, DEADLINE_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def request(self, path: str, method: str = "GET", **fields: str) -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: broker"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def reply(self, *, is_head: bool = False) -> Reply:
        """Read one answer."""
        line = self._line()
        assert line.startswith(b"HTTP/1.1 "), line
        status = int(line.split()[1])
        headers = {}
        while (field := self._line()) != b"\r\n":
            assert field.endswith(b"\r\n"), field
            name, _, value = field.decode("latin-1").rstrip("\r\n").partition(": ")
            headers[name] = value
        body = b"" if is_head else self._body(headers)
        if headers.get("Content-Encoding") == "gzip" and body:
            body = gzip.decompress(body)
        return Reply(status, headers, body)

    def _line(self) -> bytes:
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the connection ended before the answer did")
        return line

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if "Content-Length" in headers:
            return self.file.read(int(headers["Content-Length"]))
        if headers.get("Transfer-Encoding") != "chunked":
            return self.file.read()
        parts = []
        while size := int(self._line(), 16):
            parts.append(self.file.read(size))
            assert self._line() == b"\r\n"
        assert self._line() == b"\r\n"
        return b"".join(parts)

    def get(self, path: str, **fields: str) -> Reply:
        self.request(path, **fields)
        return self.reply()

    def expect_close(self) -> None:
        """Wait until the connection ends, without another byte."""
        with contextlib.suppress(ConnectionResetError):
            assert self.file.read(1) == b""


def get(address: tuple[str, int], path: str, **fields: str) -> Reply:
    """Ask once."""
    with Client(address) as client:
        return client.get(path, **fields)
