"""What keys do: the order of tables, a pause, the help, the end. No terminal is needed for that."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from barnabas.cli.top.reading import GroupRow, TopicRow


class Order(StrEnum):
    """What tables are sorted by: the most first, or names in order."""

    LAG = "lag"
    SECONDS = "seconds"
    RATE = "rate"
    BYTES = "bytes"
    NAME = "name"


HELP = (
    "q  quit",
    "s  sort by the next of: " + ", ".join(Order),
    "l  lag in records      t  lag in seconds     r  records per second",
    "b  bytes per second    n  names",
    "space  pause and go on",
    "h or ?  this help, and back",
    "Fetches are timed without their wait for records.",
)
"""What the keys do, and what the tables do not say."""

_BY_KEY = {
    "l": Order.LAG,
    "t": Order.SECONDS,
    "r": Order.RATE,
    "b": Order.BYTES,
    "n": Order.NAME,
}


class Controls:
    """The state that keys change."""

    def __init__(self, order: Order = Order.LAG) -> None:
        self.order = order
        self.paused = False
        self.help = False
        self.ended = False

    def press(self, key: str) -> None:
        """Handle a key; unknown ones do nothing."""
        if key in ("q", "Q", "\x04"):
            self.ended = True
        elif key in ("h", "?"):
            self.help = not self.help
        elif key == " ":
            self.paused = not self.paused
        elif key == "s":
            orders = list(Order)
            self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        elif key in _BY_KEY:
            self.order = _BY_KEY[key]


def sorted_topics(rows: tuple[TopicRow, ...], order: Order) -> list[TopicRow]:
    """Return the busiest topics first: by records, or by bytes if that is the order."""
    if order is Order.NAME:
        return sorted(rows, key=lambda row: row.name)
    if order is Order.BYTES:
        return sorted(rows, key=_most(lambda row: (row.bytes_in, row.bytes_out, row.records_in)))
    return sorted(rows, key=_most(lambda row: (row.records_in, row.bytes_in)))


def sorted_groups(rows: tuple[GroupRow, ...], order: Order) -> list[GroupRow]:
    """Return the groups with the most lag first, or in another order."""
    if order is Order.NAME:
        return sorted(rows, key=lambda row: row.name)
    if order is Order.SECONDS:
        return sorted(rows, key=_most(lambda row: (row.lag_s, row.lag)))
    if order in (Order.RATE, Order.BYTES):
        return sorted(rows, key=_most(lambda row: (row.records_read, row.lag)))
    return sorted(rows, key=_most(lambda row: (row.lag, row.lag_s)))


def _most(numbers: Callable[[Any], tuple[float | None, ...]]) -> Callable[[Any], Any]:
    """Sort by numbers, the highest first and unknown ones last, then by name."""
    return lambda row: (
        *((0, -each) if each is not None else (1, 0.0) for each in numbers(row)),
        row.name,
    )
