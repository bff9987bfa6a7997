"""Counting connections."""

from __future__ import annotations

from barnabas.broker.network.connection_limits import ConnectionLimits

MANY = 10**9


def test_the_total_is_bounded() -> None:
    """Who is refused is not counted; who leaves makes room."""
    limits = ConnectionLimits(2, MANY, {}, MANY)
    assert [limits.admit(host, 0) for host in "ab"] == [None, None]
    assert "max.connections=2" in (limits.admit("c", 0) or "")
    assert limits.total == 2
    limits.release("a")
    assert limits.admit("c", 0) is None


def test_each_address_is_bounded() -> None:
    """One address at its limit does not touch the others; an override replaces the limit."""
    limits = ConnectionLimits(MANY, 1, {"b": 2, "c": 0}, MANY)
    assert limits.admit("a", 0) is None
    assert "max.connections.per.ip=1" in (limits.admit("a", 0) or "")
    assert [limits.admit("b", 0), limits.admit("b", 0)] == [None, None]
    assert limits.admit("b", 0) is not None
    assert limits.admit("c", 0) is not None
    limits.release("a")
    assert limits.admit("a", 0) is None


def test_the_rate_is_bounded() -> None:
    """So many a second, and the next second again; refused ones do not count."""
    limits = ConnectionLimits(MANY, MANY, {}, 2)
    assert [limits.admit("a", 1000 + ms) is None for ms in (0, 1, 2, 999)] == [
        True,
        True,
        False,
        False,
    ]
    assert [limits.admit("a", 2000) is None for _ in range(3)] == [True, True, False]
    assert limits.total == 4


def test_limits_can_change_while_open() -> None:
    """A lower limit closes nobody and admits nobody until enough have left."""
    limits = ConnectionLimits(3, MANY, {}, MANY)
    for _ in range(3):
        assert limits.admit("a", 0) is None
    limits.connections_max = 1
    limits.release("a")
    assert limits.admit("a", 0) is not None
    limits.release("a")
    limits.release("a")
    assert limits.admit("a", 0) is None


def test_a_listener_is_bounded_within_the_broker() -> None:
    """Both must have room; who is refused by either is counted by none."""
    broker = ConnectionLimits(3, MANY, {}, MANY)
    inner = ConnectionLimits(MANY, within=broker, prefix="listener.name.in.")
    outer = ConnectionLimits(1, creation_rate_max=2, within=broker, prefix="listener.name.out.")
    assert outer.admit("a", 0) is None
    assert "(listener.name.out.max.connections=1)" in (outer.admit("a", 0) or "")
    assert (broker.total, outer.total) == (1, 1)
    assert [inner.admit("b", 0), inner.admit("b", 0)] == [None, None]
    outer.release("a")
    assert outer.admit("a", 1) is None
    outer.release("a")
    assert "(listener.name.out.max.connection.creation.rate=2)" in (outer.admit("a", 2) or "")
    assert inner.admit("b", 2) is None
    assert "(max.connections=3)" in (outer.admit("a", 5000) or "")
    assert (broker.total, inner.total, outer.total) == (3, 3, 0)
