"""Positions survive as records; what is not one is rejected."""

from __future__ import annotations

import pytest

from barnabas.mirror.positions import MirrorPositions, PositionsError
from barnabas.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 3)


def reloaded(*written: MirrorPositions) -> MirrorPositions:
    positions = MirrorPositions()
    for each in written:
        for key, value in each.rows():
            positions.load(key, value)
    return positions


def test_what_was_written_is_found_again() -> None:
    positions = MirrorPositions()
    positions.move(ORDERS, 10, "id")
    positions.move(ORDERS, 25, "id")
    positions.move(TopicPartition("ö", 0), 1, "other")
    again = reloaded(positions)
    assert again.find(ORDERS, "id") == 25
    assert again.find(TopicPartition("ö", 0), "other") == 1
    assert again.find(TopicPartition("orders", 4), "id") is None
    assert not again.changed


def test_only_what_changed_since_the_last_commit_is_written() -> None:
    positions = MirrorPositions()
    positions.move(ORDERS, 10, "id")
    assert positions.changed
    positions.written()
    assert not positions.changed
    positions.move(TopicPartition("other", 0), 1, "x")
    assert [key for key, _ in positions.rows()] == [b'["other", 0]']


def test_a_topic_that_was_created_again_starts_over() -> None:
    positions = MirrorPositions()
    positions.move(ORDERS, 10, "before")
    assert positions.find(ORDERS, "after") is None


def test_a_tombstone_forgets() -> None:
    positions = MirrorPositions()
    positions.move(ORDERS, 10, "id")
    [(key, _)] = positions.rows()
    positions.load(key, None)
    assert positions.find(ORDERS, "id") is None
    assert not positions


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"orders", b"{}"),
        (b'["orders"]', b"{}"),
        (b'["orders", 1]', b"12"),
        (b'["orders", 1]', b'{"next": "many", "topic_id": ""}'),
        (b"\xff", None),
    ],
)
def test_what_no_mirror_wrote_is_rejected(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(PositionsError, match="is not a position of a mirror"):
        MirrorPositions().load(key, value)
