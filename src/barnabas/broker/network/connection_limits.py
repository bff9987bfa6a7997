"""Limits of connections: how many, from where, and how fast new ones come.

Plain counting; time is passed in. A new connection first *arrives*: while the broker or its
listener gets too many per second, or has too many, the listener waits and accepts no others. Then
it is *admitted*, unless its address has too many connections or opens them too fast. The listener
between brokers, if there are others, is not limited by what the others have, only by its own
limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from barnabas.quotas.sampled_rate import SampledAverage, SampledRate, Windows

UNBOUNDED = 2**31 - 1
UNUSED_MS_MAX = 3_600_000


class Rejection(NamedTuple):
    """Why a connection is closed, and after which time."""

    reason: str
    after_ms: int = 0


class _AddressRate:
    __slots__ = ("rate", "used_ms")

    def __init__(self, windows: Windows) -> None:
        self.rate = SampledRate(windows)
        self.used_ms = 0


class ConnectionLimits:
    """The limits of a broker; `of` returns those of one listener."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.connections_max = UNBOUNDED
        self.per_host_max = UNBOUNDED
        self.per_host_overrides: Mapping[str, int] = MappingProxyType({})
        self.creation_rate_max = UNBOUNDED
        self.inter_broker: str | None = None
        """The name of the listener between brokers."""
        self.total = 0
        """How many connections are open."""
        self.rate = SampledRate(windows)
        self._listeners: dict[str, ListenerLimits] = {}
        self._open: Counter[str] = Counter()
        self._waiting: dict[Callable[[], None], None] = {}
        self._rate_of: dict[str | None, float] = {}
        """Connections per second by address; None is the default."""
        self._addresses: dict[str, _AddressRate] = {}

    def of(self, listener: str, prefix: str = "") -> ListenerLimits:
        """Return the limits of a listener; `prefix` is that of its options' names."""
        if listener not in self._listeners:
            self._listeners[listener] = ListenerLimits(self, listener, prefix)
        return self._listeners[listener]

    def keep(self, listeners: set[str]) -> None:
        """Forget the limits of listeners that no longer exist."""
        self._listeners = {
            name: limits for name, limits in self._listeners.items() if name in listeners
        }

    def set_address_rate(self, address: str | None, limit: float | None) -> None:
        """Set or remove the connections per second of an address; None is the default."""
        if limit is None:
            self._rate_of.pop(address, None)
        else:
            self._rate_of[address] = limit

    def is_protected(self, listener: str) -> bool:
        """Return whether a listener is not limited by the connections of others."""
        return listener == self.inter_broker and len(self._listeners) > 1

    @property
    def excess(self) -> int:
        """How many connections must be closed."""
        return max(self.total - self.connections_max, 0)

    def when_room(self, wake: Callable[[], None]) -> None:
        """Call once when there may be room: a connection has left, or the limits have changed."""
        self._waiting[wake] = None

    def room_made(self) -> None:
        """Wake the listeners that wait, in the order in which they began to."""
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()

    def expire(self, now_ms: int) -> None:
        """Forget the rates of addresses that were not seen for an hour."""
        for host, address in list(self._addresses.items()):
            if now_ms - address.used_ms >= UNUSED_MS_MAX:
                del self._addresses[host]

    def address_throttle_ms(self, host: str, now_ms: int) -> int:
        """Count a connection of an address; return the time for which it is too fast.

        Then it is not counted.
        """
        limit = self._rate_of.get(host, self._rate_of.get(None))
        if limit is None:
            return 0
        address = self._addresses.get(host)
        if address is None:
            address = self._addresses[host] = _AddressRate(self.windows)
        address.used_ms = now_ms
        throttle_ms = recorded(address.rate, limit, self.windows, now_ms)
        if throttle_ms:
            address.rate.record(-1, now_ms)
        return throttle_ms

    def count(self, host: str) -> str | None:
        """Count a connection; return the reason if its address has too many instead."""
        limit = self.per_host_overrides.get(host, self.per_host_max)
        count = self._open[host]
        if count >= limit:
            return f"{count} connections from {host} (max.connections.per.ip={limit})"
        self._open[host] += 1
        self.total += 1
        return None

    def uncount(self, host: str) -> None:
        """Uncount a connection that has left."""
        self.total -= 1
        self._open[host] -= 1
        if not self._open[host]:
            del self._open[host]


class ListenerLimits:
    """The limits of one listener, within those of its broker."""

    def __init__(self, broker: ConnectionLimits, name: str, prefix: str) -> None:
        self.broker = broker
        self.connections_max = UNBOUNDED
        self.creation_rate_max = UNBOUNDED
        self.total = 0
        self.rate = SampledRate(broker.windows)
        self.throttles = SampledAverage(broker.windows)
        """How long accepting waited."""
        self.address_throttles = SampledAverage(broker.windows)
        """How long connections of addresses that open them too fast were kept."""
        self._name = name
        self._prefix = prefix

    def arrive(self, now_ms: int) -> int:
        """Count a new connection; return how long accepting has to wait for it."""
        broker, wait_ms = self.broker, 0
        if not broker.is_protected(self._name):
            wait_ms = recorded(broker.rate, broker.creation_rate_max, broker.windows, now_ms)
        own_ms = recorded(self.rate, self.creation_rate_max, broker.windows, now_ms)
        wait_ms = max(wait_ms, own_ms)
        if wait_ms:
            self.throttles.record(wait_ms, now_ms)
        return wait_ms

    @property
    def full(self) -> str | None:
        """Why accepting has to wait until a connection closes; None if there is room."""
        broker = self.broker
        if broker.total >= broker.connections_max and not broker.is_protected(self._name):
            return f"{broker.total} are open (max.connections={broker.connections_max})"
        if self.total >= self.connections_max:
            return f"{self.total} are open ({self._prefix}max.connections={self.connections_max})"
        return None

    @property
    def pace(self) -> str:
        """The limits that make accepting wait for a time."""
        own, of_all = self.creation_rate_max, self.broker.creation_rate_max
        limits = [] if of_all == UNBOUNDED else [f"max.connection.creation.rate={of_all}"]
        if own not in (of_all, UNBOUNDED):
            limits.append(f"{self._prefix}max.connection.creation.rate={own}")
        return ", ".join(limits)

    def admit(self, host: str, now_ms: int) -> Rejection | None:
        """Count a connection that has arrived, or return why it is rejected."""
        throttle_ms = self.broker.address_throttle_ms(host, now_ms)
        if throttle_ms:
            self.address_throttles.record(throttle_ms, now_ms)
            self.rate.record(-1, now_ms)
            if not self.broker.is_protected(self._name):
                self.broker.rate.record(-1, now_ms)
            too_fast = f"{host} opens connections too fast (connection_creation_rate)"
            return Rejection(too_fast, throttle_ms)
        reason = self.broker.count(host)
        if reason is not None:
            return Rejection(reason)
        self.total += 1
        return None

    def release(self, host: str) -> None:
        """Uncount an admitted connection, which may make room for another."""
        self.total -= 1
        self.broker.uncount(host)
        self.broker.room_made()


def recorded(rate: SampledRate, limit: float, windows: Windows, now_ms: int) -> int:
    """Count a connection; return for how long it is too fast, at most a window."""
    rate.record(1, now_ms)
    if limit == UNBOUNDED:
        return 0
    if limit <= 0:
        return windows.size_ms
    return min(rate.throttle_ms(limit, now_ms), windows.size_ms)
