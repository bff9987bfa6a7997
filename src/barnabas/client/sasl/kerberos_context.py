"""One exchange of the system's Kerberos library, for both sides; every call may block."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """Kerberos has no ticket for us, or does not accept what the other side sent."""


class KerberosContext:
    """A security context of the package gssapi."""

    def __init__(self, library: Any, **arguments: Any) -> None:
        """Begin a context with the arguments of gssapi.SecurityContext; raise Refused."""
        self.error: type[Exception] = library.exceptions.GSSError
        try:
            self.context = library.SecurityContext(**arguments)
        except self.error as failure:
            raise Refused(str(failure)) from failure

    def step(self, token: bytes | None) -> tuple[bytes, bool]:
        """Return what to send, and whether the context is complete; None begins."""
        try:
            return self.context.step(token) or b"", self.context.complete
        except self.error as failure:
            raise Refused(str(failure)) from failure

    def wrap(self, message: bytes) -> bytes:
        """Return a message with proof of its origin."""
        try:
            return bytes(self.context.wrap(message, False).message)
        except self.error as failure:
            raise Refused(str(failure)) from failure

    def unwrap(self, message: bytes) -> bytes:
        """Return a message whose origin was proved."""
        try:
            return bytes(self.context.unwrap(message).message)
        except self.error as failure:
            raise Refused(str(failure)) from failure
