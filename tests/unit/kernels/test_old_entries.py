"""Entries of magic 0 and 1 between batches: every kernel over several batches stops in front."""

from __future__ import annotations

from types import ModuleType as Kernels
from typing import Any

import pytest
from tests.old_segments import new_segment, old_segment

from barnabas.model.errors import CorruptRecordError

NEW, ROWS = new_segment(0, "none", 2)
OLD, _ = old_segment(10, 1, "none", 2)
MIXED = NEW + OLD


def cursor(kernels: Kernels, data: bytes) -> Any:
    return kernels.RecordCursor(data, "t", 0, 0, unpack=lambda codec, packed: packed)


def test_headers_end_in_front_of_an_old_entry(kernels: Kernels) -> None:
    assert kernels.scan_batches(MIXED) == kernels.scan_batches(NEW)
    with pytest.raises(CorruptRecordError, match="magic 1"):
        kernels.scan_batches(OLD)
    with pytest.raises(CorruptRecordError, match="magic 7"):
        kernels.scan_batches(NEW + OLD[:16] + b"\x07" + OLD[17:])


def test_a_cursor_ends_in_front_of_an_old_entry(kernels: Kernels) -> None:
    """The next fetch begins with it, and converts it on arrival."""
    reader = cursor(kernels, MIXED)
    reader.prepare(1 << 20)
    assert reader.survey()[0] == 10
    assert [record.offset for record in reader.take(100)] == [row.offset for row in ROWS]
    assert reader.take(100) == []
    assert (reader.exhausted, reader.progressed, reader.position) == (True, True, 10)
    with pytest.raises(CorruptRecordError, match="magic 1"):
        cursor(kernels, OLD).take(1)


def test_compaction_stops_in_front_of_an_old_entry(kernels: Kernels) -> None:
    slots = bytearray(24 * 100)
    position, added, full_at = kernels.map_batches(slots, 90, MIXED, 0, len(MIXED), 0)
    assert (position, added, full_at) == (len(NEW), 7, -1)
    out = bytearray(len(MIXED) * 2)
    position, size, changed = kernels.filter_batches(
        slots, MIXED, 0, len(MIXED), out, 0, 10, 0, 0, b""
    )
    assert (position, changed) == (len(NEW), True)
    assert sum(header.count for header in kernels.scan_batches(out[:size])) == 7
    wrong = NEW + OLD[:16] + b"\x07" + OLD[17:]
    with pytest.raises(CorruptRecordError, match="magic 7"):
        kernels.map_batches(slots, 90, wrong, 0, len(wrong), 0)
