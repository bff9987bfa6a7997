"""Fetched bytes become rows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.console.records import scanning
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import compile_filter, prune
from barnabas.console.records.filter_language import parse
from barnabas.console.records.rows import Kind, Outcome, Row
from barnabas.console.records.scanning import Scanned, Wanted, end_of, scan
from barnabas.kernels import Record
from barnabas.records.bounds import Bounds
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.legacy import encode_message

DECODER = Decoder("t", "value")


def batch(values: list[bytes], base: int, codec: str = "none", time: int = 1000) -> bytes:
    rows = [(time + each, b"k", value, ()) for each, value in enumerate(values)]
    return build_batch(rows, codec, base_offset=base)


def wanted(low: int, high: int, q: str = "", **more) -> Wanted:
    tree = parse(q)
    more = {"test": compile_filter(tree, 0), "pruning": prune(tree, 0)} | more
    return Wanted(0, low, high, DECODER, DECODER, **more)


def run(data: list[bytes], what: Wanted) -> Scanned:
    return scan([memoryview(each) for each in data], what, lambda: None)


def offsets(found: Scanned) -> list[int]:
    return [row.offset for row in found.rows]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_filters_whole_and_cut_batches(codec: str) -> None:
    data = batch([b"a", b"b", b"a"], 5, codec) + batch([b"a"], 8, codec)
    assert offsets(run([data], wanted(0, 100, "value = a"))) == [5, 7, 8]
    assert offsets(run([data], wanted(6, 8, "value = a"))) == [7]
    assert offsets(run([data[:-1]], wanted(0, 100))) == [5, 6, 7]
    assert end_of(memoryview(data)) == (5, 9)
    assert end_of(memoryview(data[:10])) is None


def test_batches_are_skipped_by_time_and_by_text() -> None:
    data = [batch([b"old"], 0, time=1), batch([b"new", b"needle"], 1), batch([b"hay"], 3, "gzip")]
    found = run(data, wanted(0, 10, "timestamp > 500"))
    assert (offsets(found), found.skipped) == ([1, 2, 3], 1)
    found = run(data, wanted(0, 10, "value contains needle"))
    assert (offsets(found), found.skipped, found.records) == ([2], 2, 4)
    hexadecimal = Wanted(
        0, 0, 10, DECODER, Decoder("t", "value", "hex"),
        compile_filter(parse("value contains 6e6565"), 0), prune(parse("value contains zz"), 0),
    )  # fmt: skip
    assert run(data, hexadecimal).skipped == 0


def test_holes_and_markers_are_rows_if_everything_is_wanted() -> None:
    marker = build_control_batch(
        ControlType.ABORT, producer_id=9, producer_epoch=0, coordinator_epoch=4, now_ms=5,
        base_offset=4,
    )  # fmt: skip
    data = [batch([b"a"], 2), marker, batch([b"b"], 7)]
    found = run(data, wanted(0, 10, everything=True))
    assert [(row.kind, row.offset, row.last_offset) for row in found.rows] == [
        (Kind.HOLE, 0, 1),
        (Kind.RECORD, 2, 2),
        (Kind.HOLE, 3, 3),
        (Kind.MARKER, 4, 4),
        (Kind.HOLE, 5, 6),
        (Kind.RECORD, 7, 7),
    ]
    assert found.rows[3].outcome is Outcome.ABORTED
    assert found.markers == [(4, 9, Outcome.ABORTED)]
    assert offsets(run(data, wanted(0, 10))) == [2, 7]
    assert run(data, wanted(0, 5, everything=True)).rows[-1].last_offset == 4


def test_a_batch_that_unpacks_to_too_much_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "UNPACKED", Bounds(record=1 << 20, batch=4 << 20))
    data = [batch([b"\0" * (8 << 20)], 0, "gzip"), batch([b"after"], 1)]
    found = run(data, wanted(0, 10))
    assert found.unreadable == 1
    assert [row.kind for row in found.rows] == [Kind.UNREADABLE, Kind.RECORD]
    assert "unpacks to more than" in found.rows[0].note or "must be at most" in found.rows[0].note


def test_only_as_many_rows_as_wanted_are_kept() -> None:
    data = [batch([b"v"] * 10, base) for base in range(0, 100, 10)]
    found = run(data, wanted(0, 100, rows_max=15, forward=True))
    assert offsets(found) == list(range(15))
    assert found.next_offset == 15
    found = run(data, wanted(0, 100, rows_max=15))
    kept = offsets(found)
    assert kept == list(range(found.first_offset, 100))
    assert 15 <= len(kept) <= 40


def test_old_messages_are_read() -> None:
    data = encode_message(Record(3, 77, b"k", b"old", ()), 1) + encode_message(
        Record(4, 78, b"k", b"older", ()), 1
    )
    found = run([data], wanted(0, 10, "value = older"))
    assert [(row.offset, row.timestamp) for row in found.rows] == [(4, 78)]


def test_gives_way_while_it_works() -> None:
    calls: list[int] = []
    data = batch([b"v"] * 1000, 0)
    scan([memoryview(data)], wanted(0, 1000), lambda: calls.append(1))
    assert len(calls) >= 10


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from(["none", "gzip", "zstd"]))
def test_damaged_bytes_never_raise(seed: int, flips: int, codec: str) -> None:
    chosen = random.Random(seed)
    data = bytearray(batch([b'{"a": 1}'] * 20, 0, codec) + batch([b"x"] * 3, 20))
    for _ in range(flips):
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    found = run([bytes(data)], wanted(0, 100, everything=True))
    assert all(isinstance(row, Row) for row in found.rows)
