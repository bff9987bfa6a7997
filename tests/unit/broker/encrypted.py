"""A broker with a TLS listener, and connections to it that see every byte inside of TLS."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

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
