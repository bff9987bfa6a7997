"""The compiled kernels and the reference give the same answer, or the same error, to any bytes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType as Kernels
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.kernels.batch_header import HEADER_SIZE
from barnabas.kernels.contract import Columns
from barnabas.model.errors import CorruptRecordError

Twins = tuple[Kernels, Kernels]

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.one_of(st.integers(-1, 2000), INT64)
BYTES = st.one_of(st.none(), st.binary(max_size=80))
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3).map(tuple)
ROWS = st.lists(st.tuples(TIMES, BYTES, BYTES, HEADERS), min_size=1, max_size=12)


def both(twins: Twins, call: Callable[[Kernels], Any]) -> Any:
    """Return the answer that both twins give; fail if they differ."""
    answers = []
    for kernels in twins:
        try:
            answers.append(("answer", call(kernels)))
        except (CorruptRecordError, ValueError) as failure:
            answers.append((type(failure).__name__, str(failure)))
    assert answers[0] == answers[1]
    return answers[0][1]


def build(kernels: Kernels, rows: list[Any], limit: int = 0) -> tuple[int, bytearray]:
    builder = kernels.BatchBuilder(limit)
    taken = builder.append_many(rows)
    return taken, builder.finish(base_offset=5, leader_epoch=1, producer_id=9)


def fields_of(records: Any) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]


def columns_of(columns: Columns) -> list[Any]:
    return [getattr(columns, name) for name in Columns.__slots__]


def read_all(kernels: Kernels, data: bytes, count: int) -> list[tuple[Any, ...]]:
    return fields_of(kernels.read_records(data, 0, len(data), count, 3, 1000))


@given(ROWS, st.integers(0, 600))
def test_builders_write_the_same_bytes(twins: Twins, rows: list[Any], limit: int) -> None:
    taken, batch = both(twins, lambda kernels: build(kernels, rows, limit))
    assert 1 <= taken <= len(rows)
    header = both(twins, lambda kernels: kernels.check_batch(batch))
    records = both(twins, lambda kernels: read_all(kernels, bytes(batch[61:]), header.count))
    assert [record[2:] for record in records] == [row[1:] for row in rows[:taken]]


@given(ROWS, st.integers(-1, 2000), st.integers(-1, 2000), st.booleans())
def test_validation_finds_the_same_faults(
    twins: Twins, rows: list[Any], low: int, high: int, require_key: bool
) -> None:
    _, batch = build(twins[0], rows)
    both(twins, lambda kernels: kernels.inspect_batch(batch, 0, -1, low, high, require_key))


@settings(max_examples=300)
@given(ROWS, st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=4), st.data())
def test_damaged_records_are_read_alike(
    twins: Twins, rows: list[Any], changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    _, batch = build(twins[0], rows)
    records = bytearray(batch[HEADER_SIZE:])
    for position, byte in changes:
        records[position % len(records)] = byte
    cut = bytes(records[: data.draw(st.integers(0, len(records)))])
    count = data.draw(st.integers(-1, len(rows) + 1))
    for damaged in (bytes(records), cut):
        size = len(damaged)
        both(twins, lambda k, d=damaged, n=size: k.validate_records(d, 0, n, count, 1000, 0, 1500))  # type: ignore[misc]
        both(twins, lambda k, d=damaged: read_all(k, d, count))  # type: ignore[misc]
        both(
            twins,
            lambda k, d=damaged, n=size: columns_of(k.records_to_columns(d, 0, n, count, 3, 1000)),  # type: ignore[misc]
        )


@settings(max_examples=300)
@given(ROWS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=3), st.data())
def test_damaged_headers_are_scanned_and_patched_alike(
    twins: Twins, rows: list[Any], changes: list[tuple[int, int]], data: st.DataObject
) -> None:
    _, batch = build(twins[0], rows)
    for position, byte in changes:
        batch[position] = byte
    damaged = (
        bytes(batch[: data.draw(st.integers(0, len(batch)))])
        if data.draw(st.booleans())
        else bytes(batch)
    )
    for call in ("scan_batch", "scan_batches", "check_batch", "inspect_batch"):
        both(twins, lambda kernels, call=call: getattr(kernels, call)(damaged))  # type: ignore[misc]

    def patch(kernels: Kernels) -> bytes:
        target = bytearray(damaged)
        kernels.stamp_timestamp(target, 0, True, 77)
        kernels.stamp_producer(target, 0, 2**62, 2**15 - 1, 2**31 - 1, True)
        kernels.assign_offsets(target, 0, 2**63 - 1, -(2**31))
        kernels.check_batch(target)
        return bytes(target)

    both(twins, patch)


@given(st.binary(max_size=200))
def test_any_bytes_are_scanned_alike(twins: Twins, data: bytes) -> None:
    both(twins, lambda kernels: kernels.scan_batches(data))
    both(twins, lambda kernels: kernels.inspect_batch(data))
    both(twins, lambda kernels: read_all(kernels, data, 2))
