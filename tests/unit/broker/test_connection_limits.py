"""Counting connections."""

from __future__ import annotations

import pytest

from barnabas.broker.connection_limits import ConnectionLimits, parse_overrides
from barnabas.model.errors import ConfigError

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


def test_overrides() -> None:
    """host:limit, IPv6 addresses in brackets or not."""
    assert parse_overrides("") == {}
    assert parse_overrides(" 10.0.0.1:5, [::1]:7 ,fe80::1:9") == {
        "10.0.0.1": 5,
        "::1": 7,
        "fe80::1": 9,
    }
    for bad in ("10.0.0.1", ":5", "10.0.0.1:", "10.0.0.1:many", "10.0.0.1:-1"):
        with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
            parse_overrides(bad)
