"""Counting connections, on virtual time."""

from __future__ import annotations

from barnabas.broker.network.connection_limits import (
    UNUSED_MS_MAX,
    ConnectionLimits,
    ListenerLimits,
)
from barnabas.quotas.sampled_rate import Windows


def alone() -> tuple[ConnectionLimits, ListenerLimits]:
    limits = ConnectionLimits(Windows())
    return limits, limits.of("PLAINTEXT")


def test_a_full_broker_waits_until_one_leaves() -> None:
    """Whoever waits is woken once, and asks again."""
    limits, listener = alone()
    limits.connections_max = 2
    woken: list[int] = []
    assert [listener.admit(host, 0) for host in "ab"] == [None, None]
    assert listener.full == "2 are open (max.connections=2)"
    limits.when_room(lambda: woken.append(limits.total))
    listener.release("a")
    assert listener.full is None
    assert listener.admit("c", 0) is None
    listener.release("c")
    assert woken == [1]
    assert limits.total == listener.total == 1


def test_each_address_is_bounded() -> None:
    """One address at its limit does not touch the others; an override replaces the limit."""
    limits, listener = alone()
    limits.per_host_max, limits.per_host_overrides = 1, {"b": 2, "c": 0}
    assert listener.admit("a", 0) is None
    rejection = listener.admit("a", 0)
    assert rejection is not None
    assert "max.connections.per.ip=1" in rejection.reason
    assert rejection.after_ms == 0
    assert [listener.admit("b", 0), listener.admit("b", 0)] == [None, None]
    assert listener.admit("b", 0) is not None
    assert listener.admit("c", 0) is not None
    assert limits.total == 3
    listener.release("a")
    assert listener.admit("a", 0) is None


def test_accepting_waits_while_too_many_come() -> None:
    """A hundred at once at ten per second; the next waits its own share, at most a window."""
    limits, listener = alone()
    limits.creation_rate_max = 10
    assert [listener.arrive(0) for _ in range(101)] == [0] * 100 + [100]
    assert listener.arrive(100) == 100
    for _ in range(20):
        last = listener.arrive(100)
    assert last == 1000
    assert listener.throttles.value(100) > 100
    assert listener.pace == "max.connection.creation.rate=10"


def test_the_longer_wait_of_broker_and_listener_counts() -> None:
    limits = ConnectionLimits(Windows())
    listener = limits.of("OUT", "listener.name.out.")
    limits.creation_rate_max, listener.creation_rate_max = 10, 5
    assert [listener.arrive(0) for _ in range(51)] == [0] * 50 + [200]
    assert listener.pace == (
        "max.connection.creation.rate=10, listener.name.out.max.connection.creation.rate=5"
    )
    listener.creation_rate_max = 0
    assert listener.arrive(0) == 1000


def test_an_address_that_is_too_fast_is_closed_later_and_not_counted() -> None:
    """Nor for the broker and the listener; others have the default, or none."""
    limits, listener = alone()
    limits.creation_rate_max = 2
    limits.set_address_rate("a", 1)
    for _ in range(10):
        assert (listener.arrive(0), listener.admit("a", 0)) == (0, None)
    for _ in range(20):
        assert listener.arrive(0) == 0
        rejection = listener.admit("a", 0)
        assert rejection is not None
        assert rejection.after_ms == 1000
        assert "connection_creation_rate" in rejection.reason
    assert (limits.total, listener.total) == (10, 10)
    assert listener.address_throttles.value(0) == 1000
    assert listener.admit("b", 0) is None
    limits.set_address_rate(None, 0.1)
    assert listener.admit("b", 0) is None
    assert listener.admit("b", 0) is not None
    limits.set_address_rate(None, None)
    limits.set_address_rate("a", None)
    assert listener.admit("a", 0) is None
    assert listener.admit("b", 0) is None


def test_addresses_are_forgotten_after_an_hour() -> None:
    limits, listener = alone()
    limits.set_address_rate(None, 1)
    listener.admit("a", 0)
    listener.admit("b", 1)
    limits.expire(UNUSED_MS_MAX)
    assert list(limits._addresses) == ["b"]


def test_the_listener_between_brokers_is_not_limited_by_others() -> None:
    """It may exceed the broker's limit, and connections of others have to go."""
    limits = ConnectionLimits(Windows())
    inner, outer = limits.of("IN", "listener.name.in."), limits.of("OUT")
    limits.inter_broker = "IN"
    limits.connections_max, limits.creation_rate_max = 1, 1
    inner.connections_max = 2
    assert outer.admit("a", 0) is None
    assert outer.full is not None
    assert inner.full is None
    assert [inner.arrive(0) for _ in range(50)] == [0] * 50
    assert outer.arrive(0) == 0
    assert inner.admit("b", 0) is None
    assert limits.excess == 1
    assert inner.admit("b", 0) is None
    assert inner.full == "2 are open (listener.name.in.max.connections=2)"
    limits.keep({"IN"})  # it is the only one now
    assert not limits.is_protected("IN")
