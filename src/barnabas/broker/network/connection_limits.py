"""Limits of connections: in total, on one listener, from one address, and per second.

Plain counting; time is passed in. A rejection returns its reason, for the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

UNBOUNDED = 2**31 - 1


class ConnectionLimits:
    """Counts open connections against `max.connections`, `….per.ip` and `….creation.rate`.

    Limits of one listener count `within` those of the broker: a connection must pass both.
    """

    def __init__(
        self,
        connections_max: int,
        per_host_max: int = UNBOUNDED,
        per_host_overrides: Mapping[str, int] = MappingProxyType({}),
        creation_rate_max: int = UNBOUNDED,
        *,
        within: ConnectionLimits | None = None,
        prefix: str = "",
    ) -> None:
        self.connections_max = connections_max
        self.per_host_max = per_host_max
        self.per_host_overrides = per_host_overrides
        self.creation_rate_max = creation_rate_max
        self._all = [self] if within is None else [within, self]
        self._prefix = prefix
        """The prefix of its options' names."""
        self._open: Counter[str] = Counter()
        self._total = 0
        self._second = 0
        self._created = 0

    @property
    def total(self) -> int:
        """Return how many connections are open."""
        return self._total

    def admit(self, host: str, now_ms: int) -> str | None:
        """Count a new connection; return the reason if it is rejected instead."""
        for limits in self._all:
            reason = limits._refusal(host, now_ms)
            if reason is not None:
                return reason
        for limits in self._all:
            limits._created += 1
            limits._total += 1
            limits._open[host] += 1
        return None

    def release(self, host: str) -> None:
        """Uncount an admitted connection."""
        for limits in self._all:
            limits._total -= 1
            limits._open[host] -= 1
            if not limits._open[host]:
                del limits._open[host]

    def _refusal(self, host: str, now_ms: int) -> str | None:
        prefix = self._prefix
        if self._total >= self.connections_max:
            return (
                f"{self._total} connections are open "
                f"({prefix}max.connections={self.connections_max})"
            )
        limit = self.per_host_overrides.get(host, self.per_host_max)
        count = self._open.get(host, 0)
        if count >= limit:
            return f"{count} connections from {host} (max.connections.per.ip={limit})"
        second = now_ms // 1000
        if second != self._second:
            self._second, self._created = second, 0
        if self._created >= self.creation_rate_max:
            return (
                f"{self._created} connections this second "
                f"({prefix}max.connection.creation.rate={self.creation_rate_max})"
            )
        return None
