"""The newest entries of a broker: folded, bounded, found by subject."""

from __future__ import annotations

from barnabas.diary.ring import FOLD_MS, Ring
from barnabas.model.note import Note


def note(subject: str = "t-0", cause: str = "lag-time", **data: object) -> Note:
    return Note("isr.shrink", subject, cause, data)


def test_entries_are_numbered_in_order() -> None:
    ring = Ring(7)
    first, second = ring.write(note(), 1_000), ring.write(note("t-1"), 1_001)
    assert (first.number, first.broker, first.at_ms, first.count) == (1, 7, 1_000, 1)
    assert list(ring) == [first, second]
    assert ring.about("t-1") == [second]
    assert ring.about("t-2") == []


def test_repeats_within_ten_seconds_are_folded() -> None:
    ring = Ring(7)
    first = ring.write(note(behind=5, members=["a", "b"]), 1_000)
    again = ring.write(note(behind=9, members=["b", "c"]), 1_000 + FOLD_MS - 1)
    assert again is first
    assert (first.count, first.at_ms, first.last_ms) == (2, 1_000, 1_000 + FOLD_MS - 1)
    assert first.data == {"behind": 9, "members": ["a", "b", "c"]}
    later = ring.write(note(), 1_000 + FOLD_MS)
    assert later is not first
    assert len(ring) == 2


def test_another_cause_is_another_entry() -> None:
    ring = Ring(7)
    ring.write(note(), 1_000)
    assert ring.write(note(cause="broker-gone"), 1_000).count == 1


def test_a_clock_that_is_set_back_folds_nothing() -> None:
    ring = Ring(7)
    ring.write(note(), 50_000)
    assert ring.write(note(), 1_000).count == 1


def test_the_oldest_are_dropped() -> None:
    ring = Ring(7, size=3)
    for number in range(5):
        ring.write(note(f"t-{number % 2}"), number * FOLD_MS)
    assert [entry.number for entry in ring] == [3, 4, 5]
    assert [entry.number for entry in ring.about("t-1")] == [4]
    assert [entry.number for entry in ring.about("t-0")] == [3, 5]


def test_a_note_keeps_its_own_data() -> None:
    ring, data = Ring(7), {"behind": 1}
    entry = ring.write(Note("isr.shrink", "t-0", "lag-time", data), 1_000)
    ring.write(note(behind=2), 1_001)
    assert (data, entry.data) == ({"behind": 1}, {"behind": 2})
