"""Resets that can be undone, each by its user."""

from __future__ import annotations

import pytest

from barnabas.console import undo
from barnabas.console.undo import Undo, Undos
from barnabas.model.ids import TopicPartition

PARTITION = TopicPartition("orders", 0)


def test_only_who_has_reset_a_group_can_undo_it() -> None:
    undos = Undos()
    kept = Undo(1, {PARTITION: None})
    undos.keep("User:ana", "billing", kept)
    assert undos.of("User:ana", "billing") is kept
    assert undos.of("User:bob", "billing") is None
    assert undos.of("User:ana", "other") is None
    undos.drop("User:ana", "billing")
    undos.drop("User:ana", "billing")
    assert undos.of("User:ana", "billing") is None


def test_the_oldest_makes_room_and_a_newer_reset_replaces_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(undo, "GROUPS_MAX", 2)
    undos = Undos()
    for name in ("a", "b"):
        undos.keep("User:ana", name, Undo(1, {}))
    undos.keep("User:ana", "a", Undo(2, {}))
    undos.keep("User:ana", "c", Undo(3, {}))
    assert undos.of("User:ana", "b") is None
    again = undos.of("User:ana", "a")
    assert again is not None
    assert again.time_ms == 2
