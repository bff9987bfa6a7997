"""Kernels of compaction: keys into the map, batches through it."""

from __future__ import annotations

import struct
from array import array
from types import ModuleType as Kernels
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.kernels.batch_header import DELETE_HORIZON_BIT
from barnabas.kernels.contract import SLOT_SIZE
from barnabas.model.errors import CorruptRecordError
from barnabas.records.batch import Record, iterate, read_headers
from barnabas.records.builder import build_batch

Twins = tuple[Kernels, Kernels]

KEYS = st.one_of(st.none(), st.sampled_from([b"", b"a", b"b", b"c" * 55, b"d" * 56, b"e" * 200]))
VALUES = st.one_of(st.none(), st.binary(max_size=20))
TIMES = st.one_of(st.integers(0, 2000), st.integers(-(2**63), 2**63 - 1))
HEADERS = st.lists(st.tuples(st.text(max_size=3), VALUES), max_size=2).map(tuple)
BATCH = st.lists(st.tuples(TIMES, KEYS, VALUES, HEADERS), min_size=1, max_size=6)


def lay_out(batches: list[list[Any]], **settings: Any) -> tuple[bytes, int]:
    """Return the batches behind each other with their offsets, and the next offset."""
    parts, offset = [], 0
    for rows in batches:
        parts.append(build_batch(rows, base_offset=offset, **settings))
        offset += len(rows)
    return b"".join(parts), offset


def run(
    kernels: Kernels,
    data: bytes,
    map_end: int,
    *,
    slots: bytearray | None = None,
    now_ms: int = 5000,
    horizon_ms: int = 9000,
    retained: tuple[int, ...] = (),
) -> bytes:
    """Map and filter all of the data, which must be plain."""
    if slots is None:
        slots = bytearray(64 * SLOT_SIZE)
        position, _, full_at = kernels.map_batches(slots, 60, data, 0, len(data), 0)
        assert (position, full_at) == (len(data), -1)
    out = bytearray(2 * len(data) + 1000)
    position, size, _ = kernels.filter_batches(
        slots, data, 0, len(data), out, 0, map_end, now_ms, horizon_ms, array("q", retained)
    )
    assert position == len(data)
    return bytes(out[:size])


@given(st.lists(BATCH, min_size=1, max_size=5), st.data())
def test_twins_agree_on_map_and_batches(twins: Twins, batches: list[Any], data: Any) -> None:
    raw, end = lay_out(batches)
    map_end = data.draw(st.integers(0, end + 1))
    start_offset = data.draw(st.integers(0, end))
    room = data.draw(st.integers(0, 8))
    retained = array("q", sorted(data.draw(st.sets(st.integers(0, end)))))
    horizon = data.draw(TIMES)
    answers = []
    for kernels in twins:
        slots = bytearray(9 * SLOT_SIZE)
        mapped = kernels.map_batches(slots, room, raw, 0, len(raw), start_offset)
        out = bytearray(3 * len(raw))
        end_of = kernels.filter_batches(
            slots, raw, 0, len(raw), out, 0, map_end, 5000, horizon, retained
        )
        again = bytearray(3 * len(raw))
        later = kernels.filter_batches(
            slots, out, 0, end_of[1], again, 0, map_end, horizon, 1, retained
        )
        answers.append((mapped, slots, end_of, out[: end_of[1]], later, again[: later[1]]))
    assert answers[0] == answers[1]


@given(st.binary(max_size=60), st.integers(-1, 5), st.integers(-5, 5))
def test_twins_refuse_the_same_bytes(twins: Twins, data: bytes, count: int, shift: int) -> None:
    def answers_of(kernels: Kernels) -> tuple[list[Any], bytearray]:
        slots = bytearray(8 * SLOT_SIZE)
        end, answers = len(data), []
        for call in (
            lambda: kernels.map_records(slots, 5, data, 0, end, count, 0, 0),
            lambda: kernels.filter_records(slots, data, 0, end, count, 0, 9, False, shift),
            lambda: kernels.map_batches(slots, 5, data, 0, end, 0),
        ):
            try:
                answers.append(call())
            except CorruptRecordError as failure:
                answers.append(str(failure))
        return answers, slots

    assert answers_of(twins[0]) == answers_of(twins[1])


@given(st.lists(BATCH, min_size=1, max_size=5))
def test_the_last_record_of_each_key_stays_as_it_was(kernels: Kernels, batches: list[Any]) -> None:
    raw, end = lay_out(batches)
    last: dict[bytes, Record] = {}
    for record in iterate(raw):
        if record.key is not None:
            last[record.key] = record
    assert list(iterate(run(kernels, raw, end))) == sorted(last.values(), key=lambda r: r.offset)


def test_records_beyond_the_map_all_stay(kernels: Kernels) -> None:
    raw, _ = lay_out([[(1, b"a", b"1"), (1, None, b"2")], [(1, None, b"3"), (1, b"a", b"4")]])
    assert [r.offset for r in iterate(run(kernels, raw, 2))] == [2, 3]


def test_a_tombstone_gets_a_horizon_once_and_goes_when_it_has_passed(kernels: Kernels) -> None:
    raw, end = lay_out([[(100, b"a", b"1")], [(150, b"a", None), (170, b"b", b"2")]])
    first = run(kernels, raw, end, now_ms=5000, horizon_ms=9000)
    (header,) = read_headers(first)
    assert header.delete_horizon_ms == 9000
    assert header.max_timestamp == 170
    assert [(r.offset, r.timestamp, r.value) for r in iterate(first)] == [
        (1, 150, None),
        (2, 170, b"2"),
    ]
    assert run(kernels, first, end, now_ms=8999, horizon_ms=12345) == first
    third = run(kernels, first, end, now_ms=9000, horizon_ms=12345)
    assert [(r.offset, r.timestamp, r.value) for r in iterate(third)] == [(2, 170, b"2")]


def test_a_batch_that_reaches_beyond_the_map_gets_no_horizon(kernels: Kernels) -> None:
    raw, _ = lay_out([[(1, b"a", None), (1, b"b", b"1")]])
    assert run(kernels, raw, 1) == raw


def test_an_emptied_batch_stays_where_it_is_asked_for(kernels: Kernels) -> None:
    rows = [[(1, b"a", b"1"), (7, b"a", b"2")], [(3, b"a", b"3")]]
    raw, end = lay_out(rows, producer_id=9, producer_epoch=1, base_sequence=5)
    header, last = read_headers(run(kernels, raw, end, retained=(1,)))
    assert (header.base_offset, header.last_offset, header.count) == (0, 1, 0)
    assert (header.base_timestamp, header.max_timestamp, header.size) == (-1, 7, 61)
    assert (header.producer_id, header.base_sequence, header.last_sequence) == (9, 5, 6)
    assert last.base_offset == 2
    assert len(read_headers(run(kernels, raw, end))) == 1


def test_append_time_stays(kernels: Kernels) -> None:
    raw, end = lay_out([[(1, b"a", b"1"), (2, b"b", b"2")], [(1, b"a", None)]], append_time=777)
    for header in read_headers(run(kernels, raw, end)):
        assert (header.max_timestamp, header.is_append_time) == (777, True)
    assert [r.timestamp for r in iterate(run(kernels, raw, end))] == [777, 777]


def test_special_and_cut_batches_are_left_to_the_caller(kernels: Kernels) -> None:
    plain = build_batch([(1, b"a", b"1")])
    slots = bytearray(8 * SLOT_SIZE)
    for special in (
        build_batch([(1, b"a", b"1")], "gzip"),
        build_batch([(1, b"a", b"1")], transactional=True, producer_id=1),
        plain[:-1],
        plain[:60],
    ):
        data = plain + special
        assert kernels.map_batches(slots, 5, data, 0, len(data), 0)[0] == len(plain)
        out = bytearray(1000)
        done = kernels.filter_batches(slots, data, 0, len(data), out, 0, 5, 0, 0, b"")
        assert done == (len(plain), len(plain), False)


def test_a_full_map_says_where(kernels: Kernels) -> None:
    raw, _ = lay_out([[(1, b"a", b"1")], [(1, b"a", b"2"), (1, None, b""), (1, b"b", b"3")]])
    slots = bytearray(8 * SLOT_SIZE)
    first = len(build_batch([(1, b"a", b"1")]))
    assert kernels.map_batches(slots, 1, raw, 0, len(raw), 0) == (first, 1, 3)
    assert kernels.find_offset(slots, b"a") == 1
    assert kernels.find_offset(slots, b"b") == -1


def test_out_is_never_overrun(kernels: Kernels) -> None:
    raw, end = lay_out([[(1, b"a", None)]] * 3)
    out = bytearray(len(raw) // 3 + 11)
    slots = bytearray(8 * SLOT_SIZE)
    position, size, changed = kernels.filter_batches(
        slots, raw, 0, len(raw), out, 0, end, 0, 2**62, b""
    )
    assert (position, changed) == (len(raw) // 3, True)
    assert struct.unpack_from(">h", out, 21)[0] == DELETE_HORIZON_BIT
    assert size <= len(out)


def test_flipped_bits_are_found(kernels: Kernels) -> None:
    raw = bytearray(build_batch([(1, b"a", b"1")]))
    raw[-2] ^= 1
    slots = bytearray(8 * SLOT_SIZE)
    with pytest.raises(CorruptRecordError, match="CRC"):
        kernels.map_batches(slots, 5, raw, 0, len(raw), 0)
    with pytest.raises(CorruptRecordError, match="CRC"):
        kernels.filter_batches(slots, raw, 0, len(raw), bytearray(99), 0, 5, 0, 0, b"")
