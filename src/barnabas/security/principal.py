"""Principals: the identity of a connection."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """A typed name, written `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""The principal of connections to a listener without authentication."""
