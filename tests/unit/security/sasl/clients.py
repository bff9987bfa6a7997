"""The client's side of the mechanisms, with every message in the test's hands."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode


class ScramClient:
    """A client that does what RFC 5802 says, or what a test wants instead."""

    def __init__(self, digest: str, name: str, password: str, nonce: str = "client-nonce") -> None:
        self.digest = digest
        self.password = password
        self.bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self.header = "n,,"
        self.exchanged = b""
        self.salted = b""

    def first(self, extensions: str = "") -> bytes:
        """Return the first message."""
        self.bare += extensions
        return (self.header + self.bare).encode()

    def final(self, challenge: bytes, *, nonce: str | None = None) -> bytes:
        """Return the last message, with the proof."""
        fields = dict(part.split("=", 1) for part in challenge.decode().split(","))
        self.salted = hashlib.pbkdf2_hmac(
            self.digest, self.password.encode(), b64decode(fields["s"]), int(fields["i"])
        )
        client_key = hmac.digest(self.salted, b"Client Key", self.digest)
        stored_key = hashlib.new(self.digest, client_key).digest()
        binding = b64encode(self.header.encode()).decode()
        bare = f"c={binding},r={fields['r'] if nonce is None else nonce}"
        self.exchanged = f"{self.bare},{challenge.decode()},{bare}".encode()
        signature = hmac.digest(stored_key, self.exchanged, self.digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{bare},p={b64encode(proof).decode()}".encode()

    def verifier(self) -> bytes:
        """Return what the broker must answer at the end."""
        server_key = hmac.digest(self.salted, b"Server Key", self.digest)
        return b"v=" + b64encode(hmac.digest(server_key, self.exchanged, self.digest))
