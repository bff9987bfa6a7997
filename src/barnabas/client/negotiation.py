"""Which version of an API to speak with a peer: the highest that both know.

`PeerVersions` holds what the peer said in its ApiVersions answer. `version_for_retry` reads the
answer of a peer that did not understand the version of our ApiVersions request itself.
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
        """Return whether the peer serves an API in this version or a later one."""
        return key in self.ranges and self.ranges[key].highest >= version

    def pick(self, key: int, name: str, ours: VersionRange) -> int:
        """Return the highest version of an API that is both in `ours` and the peer's."""
        theirs = self.ranges.get(key)
        if theirs is None:
            raise UnsupportedApiError(f"{self.peer} does not serve {name} (API {key})")
        version = min(ours.highest, theirs.highest)
        if version < max(ours.lowest, theirs.lowest):
            raise UnsupportedApiError(
                f"{self.peer} serves {name} (API {key}) in versions {theirs}, we need {ours}"
            )
        return version


def version_for_retry(ours: VersionRange, theirs: VersionRange | None) -> int:
    """Return the ApiVersions version to ask again with after UNSUPPORTED_VERSION.

    Old brokers answer with an empty list, which means version 0.
    """
    return max(ours.lowest, min(ours.highest, theirs.highest if theirs is not None else 0))
