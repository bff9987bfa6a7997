"""Keys, and the orders of tables."""

from __future__ import annotations

from barnabas.cli.top.controls import Controls, Order, sorted_groups, sorted_topics
from barnabas.cli.top.reading import GroupRow, TopicRow


def pressed(*keys: str) -> Controls:
    controls = Controls()
    for key in keys:
        controls.press(key)
    return controls


def test_keys() -> None:
    assert pressed("q").ended
    assert pressed("\x04").ended
    assert not pressed("x", "\x1b").ended
    assert pressed("h").help
    assert not pressed("h", "?").help
    assert pressed(" ").paused
    assert not pressed(" ", " ").paused
    orders = list(Order)
    assert [pressed(*"s" * count).order for count in range(len(orders) + 1)] == [*orders, orders[0]]
    assert [pressed(key).order for key in "ltrbn"] == [
        Order.LAG,
        Order.SECONDS,
        Order.RATE,
        Order.BYTES,
        Order.NAME,
    ]


def topic(name: str, records: float | None, size: float | None) -> TopicRow:
    return TopicRow(name, 1, records, size, None, 0, 0)


def group(name: str, lag: int, lag_s: float | None, read: float | None) -> GroupRow:
    return GroupRow(name, "Stable", 1, lag, lag_s, False, None, read, None)


def test_the_busiest_come_first_and_the_unknown_last() -> None:
    rows = (topic("a", None, 5.0), topic("c", 1.0, 9.0), topic("b", 1.0, 9.0), topic("d", 7.0, 0.0))
    assert [row.name for row in sorted_topics(rows, Order.LAG)] == ["d", "b", "c", "a"]
    assert [row.name for row in sorted_topics(rows, Order.BYTES)] == ["b", "c", "a", "d"]
    assert [row.name for row in sorted_topics(rows, Order.NAME)] == ["a", "b", "c", "d"]


def test_groups_by_lag_in_records_or_seconds() -> None:
    rows = (group("a", 5, 9.0, 1.0), group("b", 7, 1.0, None), group("c", 5, None, 3.0))
    assert [row.name for row in sorted_groups(rows, Order.LAG)] == ["b", "a", "c"]
    assert [row.name for row in sorted_groups(rows, Order.SECONDS)] == ["a", "b", "c"]
    assert [row.name for row in sorted_groups(rows, Order.RATE)] == ["c", "a", "b"]
    assert [row.name for row in sorted_groups(rows, Order.NAME)] == ["a", "b", "c"]
