"""A broker with a TLS listener, and connections to it that see every byte inside of TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tests.certificates import Authority, Issued
from tests.unit.broker.serving import Serving, Wire

ROOT = Authority("root")
BROKER = ROOT.issue("broker")
CLIENT = ROOT.issue("alice")


class EncryptedServing(Serving):
    """One broker that listens with TLS alone; its stores are in a directory of its own."""

    def __init__(self, directory: Path, options: Mapping[str, object] | None = None) -> None:
        self.directory = directory
        self.key_store = BROKER.write_pem(directory / "broker.pem")
        self.trust_store = ROOT.write(directory / "trusted.pem")
        secured = {
            "listeners": "SSL://127.0.0.1:0",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.key_store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.trust_store,
            **(options or {}),
        }
        super().__init__(directory / "data", secured)

    def client_context(self, issued: Issued | None = None, **more: object) -> ssl.SSLContext:
        """Return a context that trusts the broker, with a certificate of its own if given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ROOT.pem)
        for name, value in more.items():
            setattr(context, name, value)
        if issued is not None:
            path = issued.write_pem(self.directory / "client.pem")
            context.load_cert_chain(path)
        return context

    def connect_encrypted(
        self, issued: Issued | None = None, context: ssl.SSLContext | None = None
    ) -> Wire:
        """Open a connection and shake hands; the end of it must be told in TLS, too."""
        wire = self.connect()
        wire.socket = (context or self.client_context(issued)).wrap_socket(
            wire.socket, server_hostname="127.0.0.1", suppress_ragged_eofs=False
        )
        return wire

    def connect_two_ways(self) -> Wire:
        """Open a connection that one thread may write to while another one reads from it."""
        wire = self.connect()
        wire.socket = cast(socket.socket, TwoWayTls(wire.socket, self.client_context()))
        return wire


class TwoWayTls:
    """TLS on a socket, for one thread that writes and one that reads at the same time.

    OpenSSL forbids two threads in one connection, and `ssl.SSLSocket` locks it only from Python
    3.13 on: before, 8 of 250 connections saw an end that the broker had not sent.
    """

    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        self._plain = plain
        self._lock = threading.Lock()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(self._outgoing.read())
                self._take()
        plain.sendall(self._outgoing.read())

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), 16_384):
            with self._lock:
                self._tls.write(data[start : start + 16_384])
                sealed = self._outgoing.read()
            self._plain.sendall(sealed)

    def recv(self, count: int) -> bytes:
        while True:
            with self._lock, contextlib.suppress(ssl.SSLWantReadError):
                return self._tls.read(count)
            self._take()

    def close(self) -> None:
        self._plain.close()

    def _take(self) -> None:
        arrived = self._plain.recv(65_536)
        with self._lock:
            if arrived:
                self._incoming.write(arrived)
            else:
                self._incoming.write_eof()
