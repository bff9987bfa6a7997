"""`barnabas diary`: entries as lines and as documents."""

from __future__ import annotations

import argparse
import time

import pytest

from barnabas.cli.diary import document, line, lines, since
from barnabas.diary.entry import Entry

JOINED = Entry(
    1,
    7,
    1_000,
    "isr.expand",
    "orders-3",
    "caught-up",
    {"from": [1], "to": [1, 2]},
    last_ms=1_000,
)


def test_a_line_for_people() -> None:
    text = "ISR 1 → 1, 2: broker 2 caught up"
    assert line(JOINED) == f"1970-01-01 00:00:01 UTC  orders-3  {text}"
    assert line(JOINED, subject=False) == f"1970-01-01 00:00:01 UTC  {text}"


def test_a_line_says_how_often_it_was_repeated() -> None:
    again = Entry(
        1, 7, 1_000, "isr.expand", "orders-3", "caught-up", JOINED.data, count=3, last_ms=9_000
    )
    assert line(again).endswith("(3 times until 1970-01-01 00:00:09 UTC)")


def test_a_document_for_machines() -> None:
    found = document(JOINED)
    assert found["sentence"] == "ISR 1 → 1, 2: broker 2 caught up"
    assert (found["at"], found["broker"], found["count"]) == (1_000, 7, 1)
    assert found["data"] == {"from": [1], "to": [1, 2]}


def test_since_takes_ages_and_times() -> None:
    assert since("@5000") == 5_000
    assert since("1970-01-01T00:00:01Z") == 1_000
    assert since("1h") < time.time() * 1000 - 3_500_000
    with pytest.raises(argparse.ArgumentTypeError, match="neither an age"):
        since("soon")


def test_what_happened_to_many_partitions_at_once_is_one_line() -> None:
    def gone(subject: str, at_ms: int = 1_000, broker: int = 2) -> Entry:
        data = {"from": [1, broker], "to": [1], "removed": [broker]}
        return Entry(1, 7, at_ms, "isr.shrink", subject, "broker-gone", data, last_ms=at_ms)

    entries = [gone(f"t-{number}") for number in range(6)]
    entries += [gone("u-0", broker=3), gone("u-1", at_ms=9_000, broker=3), JOINED]
    begin = "1970-01-01 00:00:01 UTC  t-0  ISR 1, 2 → 1: broker 2 is gone"
    first, *others = lines(entries)
    assert first == f"{begin}; likewise t-1, t-2, t-3 and 2 more"
    assert [text.split()[3] for text in others] == ["u-0", "u-1", "orders-3"]
    assert next(lines([JOINED], "orders-3")) == line(JOINED, subject=False)
