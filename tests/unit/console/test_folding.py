"""What happened to many partitions at once is told once."""

from __future__ import annotations

from typing import Any

from barnabas.console.folding import folded
from barnabas.console.window import DiaryEntry


def entry(subject: str, at_ms: int = 0, event: str = "leader.elected", **data: Any) -> DiaryEntry:
    return DiaryEntry(at_ms, event, subject, "broker-gone", "text", data, 1, 0)


def test_the_same_of_several_partitions_is_one() -> None:
    same = [entry(f"orders-{number}", number, leader=1, previous=2) for number in range(6)]
    [found] = folded(same)
    assert found.entry is same[0]
    assert (found.named, found.more) == (["orders-1", "orders-2", "orders-3"], 2)


def test_what_differs_stays_apart() -> None:
    first = entry("orders-0", leader=1, previous=2)
    others = [
        entry("orders-1", leader=3, previous=2),
        entry("orders-1", leader=1, previous=3),
        entry("orders-1", 1001, leader=1, previous=2),
        entry("orders-1", event="partition.offline", leader=1, previous=2),
        entry("group:orders", leader=1, previous=2),
        entry("orders-0", leader=1, previous=2),
    ]
    for other in others:
        assert [each.entry for each in folded([first, other])] == [first, other]
    assert folded([]) == []
