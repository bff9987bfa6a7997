"""Principals: the identity on whose behalf a connection speaks."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """A typed name, written `User:alice`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")
"""Whoever speaks on a listener without authentication."""
