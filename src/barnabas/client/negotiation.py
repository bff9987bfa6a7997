"""Which version of an API to use with a peer: the highest that both support.

`PeerVersions` holds the peer's ApiVersions response. `version_for_retry` reads the response of a
peer that does not support the version of our ApiVersions request itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.errors import UnsupportedApiError


class VersionRange(NamedTuple):
    """The versions from `lowest` to `highest`, both included."""

    lowest: int
    highest: int

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}" if self.lowest != self.highest else f"{self.lowest}"


class PeerVersions:
    """The APIs that a peer serves, by key; `picked` is a cache for callers."""

    __slots__ = ("peer", "picked", "ranges")

    def __init__(self, peer: str, ranges: Iterable[tuple[int, int, int]]) -> None:
        self.peer = peer
        self.picked: dict[object, int] = {}
        self.ranges = {key: VersionRange(lowest, highest) for key, lowest, highest in ranges}

    def supports(self, key: int, version: int = 0) -> bool:
        """Return whether the peer supports an API in this version or a later one."""
        return key in self.ranges and self.ranges[key].highest >= version

    def pick(self, key: int, name: str, ours: VersionRange) -> int:
        """Return the highest version of an API that is both in `ours` and the peer's."""
        theirs = self.ranges.get(key)
        if theirs is None:
            raise UnsupportedApiError(f"{self.peer} does not support {name} (API {key})")
        version = min(ours.highest, theirs.highest)
        if version < max(ours.lowest, theirs.lowest):
            raise UnsupportedApiError(
                f"{self.peer} supports {name} (API {key}) in versions {theirs}, "
                f"this client needs {ours}"
            )
        return version


def version_for_retry(ours: VersionRange, theirs: VersionRange | None) -> int:
    """Return the ApiVersions version to retry with after UNSUPPORTED_VERSION.

    Old brokers respond with an empty list, which means version 0.
    """
    return max(ours.lowest, min(ours.highest, theirs.highest if theirs is not None else 0))
