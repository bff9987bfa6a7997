"""Reading records lazily: order, chunks, damage, and the buffer that is held meanwhile."""

from __future__ import annotations

import pickle
from types import ModuleType as Kernels
from typing import Any

import pytest

from barnabas.kernels.batch_header import HEADER_SIZE
from barnabas.model.errors import CorruptRecordError

T0 = 1_700_000_000_000


@pytest.fixture
def batch(kernels: Kernels) -> bytearray:
    builder = kernels.BatchBuilder()
    builder.append_many([(T0 + i, b"%d" % i, b"v" * i) for i in range(10)])
    return builder.finish()


def reader(kernels: Kernels, batch: bytes | bytearray, count: int = 10) -> Any:
    return kernels.read_records(batch, HEADER_SIZE, len(batch), count, 100, T0)


def test_chunks_and_single_records_mix(kernels: Kernels, batch: bytearray) -> None:
    records = reader(kernels, batch)
    assert records.remaining == 10
    first = next(records)
    assert first == kernels.Record(100, T0, b"0", b"")
    assert [r.offset for r in records.take(4)] == [101, 102, 103, 104]
    assert records.remaining == 5
    assert [r.timestamp for r in records] == [T0 + i for i in range(5, 10)]
    assert records.take(3) == []
    assert records.take(-1) == []
    assert records.remaining == 0


def test_append_time_replaces_all_timestamps(kernels: Kernels, batch: bytearray) -> None:
    records = kernels.read_records(batch, HEADER_SIZE, len(batch), 10, 0, T0, 42)
    assert {r.timestamp for r in records} == {42}


def test_the_buffer_is_free_again_after_the_last_record(kernels: Kernels, batch: bytearray) -> None:
    records = reader(kernels, batch)
    records.take(10)
    del records
    batch += b"more"


def test_damage_is_reported_when_it_is_reached(kernels: Kernels, batch: bytearray) -> None:
    cut = bytes(batch[:-2])
    records = reader(kernels, cut)
    assert len(records.take(9)) == 9
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="record 9 of the batch: the record runs"):
            next(records)


def test_leftover_bytes_are_damage(kernels: Kernels, batch: bytearray) -> None:
    records = reader(kernels, batch, count=9)
    records.take(8)
    with pytest.raises(CorruptRecordError, match="left over"):
        records.take(1)
    with pytest.raises(CorruptRecordError, match="left over"):
        reader(kernels, batch, count=0)
    with pytest.raises(CorruptRecordError, match="negative"):
        reader(kernels, batch, count=-1)
    assert list(kernels.read_records(b"", 0, 0, 0, 0, 0)) == []


def test_a_range_outside_the_buffer_is_a_bug_of_the_caller(kernels: Kernels) -> None:
    for start, end in ((0, 5), (-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="of a buffer of 4 bytes"):
            kernels.read_records(b"abcd", start, end, 1, 0, 0)


def test_a_header_name_that_is_not_utf8_is_readable(kernels: Kernels) -> None:
    data = bytes.fromhex("12 00 00 00 01 01 02 02 ff 01")
    (record,) = kernels.read_records(data, 0, len(data), 1, 0, T0)
    assert record.headers == (("\ufffd", None),)


def test_records_compare_hash_print_and_pickle_by_their_fields(kernels: Kernels) -> None:
    record = kernels.Record(5, T0, b"k", None, (("h", b"x"),))
    same = kernels.Record(5, T0, b"k", None, (("h", b"x"),))
    assert record == same
    assert hash(record) == hash(same)
    assert record != kernels.Record(6, T0, b"k", None, (("h", b"x"),))
    assert record != (5, T0, b"k", None)
    assert repr(record) == (
        f"Record(offset=5, timestamp={T0}, key=b'k', value=None, headers=(('h', b'x'),))"
    )
    assert pickle.loads(pickle.dumps(record)) == record
