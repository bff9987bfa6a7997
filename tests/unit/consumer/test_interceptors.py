"""Hooks see and may change what is read; a hook that fails is passed over."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.consumer.interceptors import Interceptors
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

A0 = TopicPartition("a", 0)


class Doubling:
    def on_consume(self, records: dict[TopicPartition, list[Any]]) -> Any:
        return {partition: [*found, *found] for partition, found in records.items()}


class Failing:
    def on_consume(self, records: Any) -> Any:
        raise RuntimeError("broken hook")

    def on_commit(self, offsets: Any) -> None:
        raise RuntimeError("broken hook")


class Watching:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_consume(self, records: Any) -> None:
        self.seen.append(records)

    def on_commit(self, offsets: Any) -> None:
        self.seen.append(offsets)

    def close(self) -> None:
        self.seen.append("closed")


def test_hooks_in_their_order(caplog: pytest.LogCaptureFixture) -> None:
    """Each hook gets what the one before made of it; a class is made into an object."""
    watching = Watching()
    hooks = Interceptors([Doubling, Failing(), Doubling(), watching])
    assert hooks
    assert hooks.on_consume({A0: [1]}) == {A0: [1, 1, 1, 1]}
    offsets = {A0: OffsetAndMetadata(5)}
    hooks.on_commit(offsets)
    hooks.close()
    assert watching.seen == [{A0: [1, 1, 1, 1]}, offsets, "closed"]
    assert [
        record.message.rpartition(" ")[2]
        for record in caplog.records
        if record.name.startswith("barnabas")
    ] == [
        "on_consume",
        "on_commit",
    ]


class Dropping:
    def on_consume(self, records: Any) -> Any:
        return {}


def test_a_hook_may_drop_all() -> None:
    assert Interceptors([Dropping()]).on_consume({A0: [1]}) == {}


def test_no_hooks() -> None:
    """Without hooks nothing is to be called, and what was read comes back as it is."""
    records: dict[TopicPartition, list[Any]] = {A0: []}
    assert not Interceptors()
    assert Interceptors().on_consume(records) is records
