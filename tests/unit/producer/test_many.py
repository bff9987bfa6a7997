"""What became of many records of one call, also of those whose batch was cut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.producer.world import World

from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import InvalidRecordError
from barnabas.producer import many
from barnabas.producer.accumulator import PendingBatch, Segment
from barnabas.producer.many import ManyFuture, RecordRange, rows_appender


def send_many(world: World, rows: list[bytes], wait: Any = None) -> ManyFuture:
    segments: list[Segment] = []
    append = rows_appender(world.accumulator, "t", rows, 0)
    assert append(0, segments, False) == (len(rows), None)
    return ManyFuture(segments, wait)


def test_the_parts_of_a_batch_that_was_cut_count() -> None:
    """A part that was given up is told, and what was written is found where it is."""
    world = World()
    sent = send_many(world, [bytes([n]) * 30 for n in range(5)])
    [batch] = world.drain()
    world.settle(batch, ErrorCode.MESSAGE_TOO_LARGE)
    [first] = world.drain()
    [second] = world.drain()
    world.settle(first, 0, 10)
    assert not sent.is_done
    world.settle(second, ErrorCode.INVALID_RECORD)
    assert sent.is_done
    assert (sent.succeeded(), sent.failed()) == (False, True)
    assert isinstance(sent.exception, InvalidRecordError)
    with pytest.raises(InvalidRecordError):
        sent.get(0)
    assert sent.ranges() == [RecordRange("t", 0, 10, 3), RecordRange("t", 0, -1, 2)]


def test_parts_that_were_written() -> None:
    """All is well when each part of a batch that was cut is."""
    world = World()
    sent = send_many(world, [bytes([n]) * 30 for n in range(5)])
    [batch] = world.drain()
    world.settle(batch, ErrorCode.MESSAGE_TOO_LARGE)
    parts = [world.drain()[0], world.drain()[0]]
    world.settle(parts[0], 0, 10)
    world.settle(parts[1], 0, 20)
    assert sent.succeeded()
    assert sent.get(0) == [RecordRange("t", 0, 10, 3), RecordRange("t", 0, 20, 2)]


def test_all_batches_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for several batches takes no longer than waiting for one may."""
    now_s = 100.0
    waits: list[float | None] = []

    def wait(batch: PendingBatch, timeout: float | None) -> None:
        nonlocal now_s
        waits.append(timeout)
        now_s += 4
        batch.complete(0)

    monkeypatch.setattr(many, "time", SimpleNamespace(monotonic=lambda: now_s))
    sent = send_many(World(), [b"x" * 600] * 4, wait)
    assert len(sent.get(10)) == 4
    assert waits == [10, 6, 2, 0]
    waits.clear()
    send_many(World(), [b"x" * 600] * 2, wait).get()
    assert waits == [None, None]
