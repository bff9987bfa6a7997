"""How many connections a broker takes: in all, from one address, and per second.

Plain counting; time is passed in. Who is over a limit is told why, so that one log line can say it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from barnabas.model.errors import ConfigError


class ConnectionLimits:
    """Counts open connections against `max.connections`, `….per.ip` and `….creation.rate`."""

    def __init__(
        self,
        connections_max: int,
        per_host_max: int,
        per_host_overrides: Mapping[str, int],
        creation_rate_max: int,
    ) -> None:
        self.connections_max = connections_max
        self.per_host_max = per_host_max
        self.per_host_overrides = dict(per_host_overrides)
        self.creation_rate_max = creation_rate_max
        self._open: Counter[str] = Counter()
        self._total = 0
        self._second = 0
        self._created = 0

    @property
    def total(self) -> int:
        """Return how many connections are open."""
        return self._total

    def admit(self, host: str, now_ms: int) -> str | None:
        """Count a new connection; return the reason if it must be closed instead."""
        if self._total >= self.connections_max:
            return f"{self._total} connections are open (max.connections={self.connections_max})"
        limit = self.per_host_overrides.get(host, self.per_host_max)
        if self._open[host] >= limit:
            return f"{self._open[host]} connections from {host} (max.connections.per.ip={limit})"
        second = now_ms // 1000
        if second != self._second:
            self._second, self._created = second, 0
        if self._created >= self.creation_rate_max:
            return (
                f"{self._created} connections this second "
                f"(max.connection.creation.rate={self.creation_rate_max})"
            )
        self._created += 1
        self._total += 1
        self._open[host] += 1
        return None

    def release(self, host: str) -> None:
        """Count an admitted connection out."""
        self._total -= 1
        self._open[host] -= 1
        if not self._open[host]:
            del self._open[host]


def parse_overrides(text: str) -> dict[str, int]:
    """Read `max.connections.per.ip.overrides`: `host:limit,[v6]:limit`."""
    overrides: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, limit = item.rpartition(":")
        if not colon or not host or not limit.isdigit():
            raise ConfigError(
                f"max.connections.per.ip.overrides: {item!r} is not host:limit, "
                "such as 127.0.0.1:50"
            )
        overrides[host.strip("[]")] = int(limit)
    return overrides
