"""PLAIN (RFC 4616): user name and password in clear, so to be used only over TLS."""

from __future__ import annotations


class Plain:
    """Sends name and password, and expects nothing back."""

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()
        self.done = False

    async def first(self) -> bytes:
        return self._message

    async def next(self, challenge: bytes) -> bytes:
        self.done = True
        return b""
