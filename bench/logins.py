"""Connections that do nothing but open: TLS handshakes and SASL logins, over raw sockets.

Each ends with a response of the broker, so that its side is complete, too. Sessions are never
resumed. What a client derives from its password is derived once: only the exchange is measured.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.requests import SIZE, Rate, api_versions
from bench.secured import PASSWORD, USER
from tools.processes import RunningBroker

SASL_HANDSHAKE_KEY, SASL_AUTHENTICATE_KEY = 17, 36
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def measure(broker: RunningBroker, act: Callable[[], None], threads: int, seconds: float) -> Rate:
    """Repeat an act on some threads; return the rate, and the broker's CPU for each."""
    cpu, began = broker.cpu_seconds(), time.monotonic()

    def repeat() -> int:
        done = 0
        while time.monotonic() - began < seconds:
            act()
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = sum(one.result() for one in [pool.submit(repeat) for _ in range(threads)])
    elapsed = time.monotonic() - began
    return Rate(done / elapsed, (broker.cpu_seconds() - cpu) / done * 1e6)


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Send one request and return its answer, without the size."""
    connection.sendall(request)
    (size,) = SIZE.unpack(_exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return data


def shake_hands(address: str, context: ssl.SSLContext) -> str:
    """Open a connection with TLS, use it once, close it, and return its version and cipher."""
    with context.wrap_socket(connect(address), server_hostname="127.0.0.1") as connection:
        ask(connection, api_versions())
        cipher = connection.cipher()
        return f"{connection.version()} {cipher[0] if cipher else ''}"


def log_in(address: str, mechanism: str) -> None:
    """Open a connection, log in and close it."""
    with connect(address) as connection:
        name = mechanism.encode()
        answer = ask(connection, _frame(SASL_HANDSHAKE_KEY, struct.pack(">h", len(name)) + name))
        (error,) = struct.unpack_from(">h", answer, 4)
        assert error == 0, f"SaslHandshake: error {error}"
        if mechanism == "PLAIN":
            _authenticate(connection, f"\0{USER}\0{PASSWORD}".encode())
        else:
            _scram(connection, HASHES[mechanism])


def _scram(connection: socket.socket, digest: str) -> None:
    first = f"n={USER},r={base64.b64encode(os.urandom(18)).decode()}"
    challenge = _authenticate(connection, f"n,,{first}".encode()).decode()
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    keys = _keys(digest, fields["s"], int(fields["i"]))
    last = f"c=biws,r={fields['r']}"
    signed = f"{first},{challenge},{last}".encode()
    signature = hmac.digest(keys.stored, signed, digest)
    proof = bytes(a ^ b for a, b in zip(keys.client, signature, strict=True))
    final = _authenticate(connection, f"{last},p={base64.b64encode(proof).decode()}".encode())
    expected = b"v=" + base64.b64encode(hmac.digest(keys.server, signed, digest))
    assert final == expected, "the broker does not know the password"


@dataclass(frozen=True)
class Keys:
    """What a client derives from its password."""

    client: bytes
    stored: bytes
    server: bytes


@functools.cache
def _keys(digest: str, salt: str, iterations: int) -> Keys:
    salted = hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), base64.b64decode(salt), iterations)
    client = hmac.digest(salted, b"Client Key", digest)
    stored = hashlib.new(digest, client).digest()
    return Keys(client, stored, hmac.digest(salted, b"Server Key", digest))


def _authenticate(connection: socket.socket, token: bytes) -> bytes:
    answer = ask(connection, _frame(SASL_AUTHENTICATE_KEY, SIZE.pack(len(token)) + token))
    # Correlation id, error code and message, the broker's token.
    error, length = struct.unpack_from(">hh", answer, 4)
    assert error == 0, f"SaslAuthenticate: error {error}"
    start = 8 + max(length, 0)
    (size,) = SIZE.unpack_from(answer, start)
    return answer[start + 4 : start + 4 + size]


def _frame(api_key: int, body: bytes) -> bytes:
    """A request in version 1 with correlation id 7 and client id `bench`."""
    head = struct.pack(">hhih5s", api_key, 1, 7, 5, b"bench")
    return SIZE.pack(len(head) + len(body)) + head + body
