"""Principals: the identity of a connection."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.model.errors import InvalidValueError


class Principal(NamedTuple):
    """A typed name, written `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""The principal of connections to a listener without authentication."""


def parse_principal(text: str) -> Principal:
    """Return the principal that is written `Type:name`; the name may contain colons."""
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise InvalidValueError(f"principal {text!r} must be written Type:name, as in User:alice")
    return Principal(kind, name)
