"""Who shall lead: each occasion as a table of replicas, in-sync ones and live ones."""

from __future__ import annotations

import pytest

from barnabas.controller.election import (
    Elected,
    elect_any,
    elect_in_sync,
    elect_preferred,
    elect_proven,
    elect_target,
    elect_without,
)
from barnabas.controller.leadership import Leadership


def led(leader: int, *isr: int) -> Leadership:
    return Leadership(leader, 4, isr, 9)


@pytest.mark.parametrize(
    ("present", "alive", "elected"),
    [
        (led(1, 1, 2, 3), {2, 3}, Elected(2, (2, 3))),
        (led(1, 1, 3), {2, 3}, Elected(3, (3,))),
        (led(1, 3, 2, 1), {2, 3}, Elected(2, (3, 2))),
        (led(1, 1), {2, 3}, None),
        (led(-1, 2), {1, 2, 3}, Elected(2, (2,))),
        (led(1, 1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3))),
        (led(1, 1, 2, 3), set(), None),
        (led(1, 1, 9), {9}, None),
    ],
)
def test_in_sync(present: Leadership, alive: set[int], elected: Elected | None) -> None:
    """The first replica, in the order of the assignment, that lives and is in sync."""
    assert elect_in_sync((1, 2, 3), present, alive) == elected


@pytest.mark.parametrize(
    ("present", "alive", "elected"),
    [
        (led(1, 1, 2), {2, 3}, Elected(2, (2,))),
        (led(1, 1), {2, 3}, Elected(2, (2,), True)),
        (led(1, 1), {3}, Elected(3, (3,), True)),
        (led(1, 1), {9}, None),
    ],
)
def test_any(present: Leadership, alive: set[int], elected: Elected | None) -> None:
    """Whoever lives, but only where nobody in sync does; then records may be missing."""
    assert elect_any((1, 2, 3), present, alive) == elected


@pytest.mark.parametrize(
    ("target", "present", "alive", "elected"),
    [
        ((4, 5), led(1, 1, 4, 5), {1, 4, 5}, Elected(4, (1, 4, 5))),
        ((4, 5), led(1, 1, 5), {1, 4, 5}, Elected(5, (1, 5))),
        ((4, 5), led(1, 1, 4, 5), {1, 5}, Elected(5, (1, 4, 5))),
        ((4, 5), led(1, 1), {1, 4, 5}, None),
    ],
)
def test_target(
    target: tuple[int, ...], present: Leadership, alive: set[int], elected: Elected | None
) -> None:
    """One of those that shall hold the partition; the in-sync replicas stay."""
    assert elect_target(target)((1, 4, 5), present, alive) == elected


@pytest.mark.parametrize(
    ("present", "alive", "elected"),
    [
        (led(2, 2, 1), {1, 2}, Elected(1, (2, 1))),
        (led(2, 2), {1, 2}, None),
        (led(2, 1, 2), {2}, None),
    ],
)
def test_preferred(present: Leadership, alive: set[int], elected: Elected | None) -> None:
    """The first replica or nobody."""
    assert elect_preferred((1, 2, 3), present, alive) == elected


@pytest.mark.parametrize(
    ("leaving", "present", "alive", "elected"),
    [
        ({1}, led(1, 1, 2), {1, 2, 3}, Elected(2, (2,))),
        ({1, 2}, led(1, 1, 2, 3), {1, 2, 3}, Elected(3, (3,))),
        ({1}, led(1, 1), {1, 2, 3}, None),
        ({3}, led(1, 1, 3), {1, 2, 3}, Elected(1, (1,))),
        ({1}, led(1, 1, 2), {1}, None),
    ],
)
def test_without(
    leaving: set[int], present: Leadership, alive: set[int], elected: Elected | None
) -> None:
    """Another one in sync, and those who leave are in sync no longer."""
    assert elect_without(leaving)((1, 2, 3), present, alive) == elected


@pytest.mark.parametrize(
    ("unproven", "present", "alive", "elected"),
    [
        ({2}, led(1, 1, 2, 3), {1, 2, 3}, Elected(1, (1, 3))),
        ({1}, led(1, 1, 2, 3), {1, 2, 3}, Elected(2, (2, 3))),
        (set(), led(1, 1, 2, 3), {1, 3}, Elected(1, (1, 3))),
        ({1, 2}, led(1, 1, 2), {1, 2, 3}, Elected(1, (1, 2))),
        ({2}, led(-1, 2), {1, 2, 3}, Elected(2, (2,))),
        ({2}, led(1, 1, 2), {3}, None),
    ],
)
def test_proven(
    unproven: set[int], present: Leadership, alive: set[int], elected: Elected | None
) -> None:
    """Whoever has lived on; where nobody in sync has, those who are back."""
    assert elect_proven(unproven)((1, 2, 3), present, alive) == elected
