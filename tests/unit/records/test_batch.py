"""Headers, inspection and iteration of batches, plain and compressed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.kernels import Fault, Record, assign_offsets, stamp_timestamp
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError
from barnabas.records.batch import (
    inspect,
    iterate,
    magic_of,
    read_batch,
    read_header,
    read_headers,
    unpack,
)
from barnabas.records.bounds import Bounds
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec
from barnabas.records.control import ControlType, build_control_batch

T0 = 1_700_000_000_000
ROWS = [(T0 + i, b"k%d" % i, b"value %d" % i) for i in range(50)]
CODECS = list(Codec)


def at(offset: int, batch: bytes) -> bytes:
    placed = bytearray(batch)
    assign_offsets(placed, 0, offset, 1)
    return bytes(placed)


@pytest.mark.parametrize("codec", CODECS)
def test_header_properties(codec: Codec) -> None:
    batch = build_batch(
        ROWS, codec, base_offset=10, producer_id=7, producer_epoch=1, base_sequence=2**31 - 10
    )
    header = read_header(batch)
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (10, 59, 60)
    assert header.last_sequence == 39  # wrapped
    assert header.codec is codec
    assert header.producer_id == 7
    assert (header.is_transactional, header.is_control, header.is_append_time) == (False,) * 3
    assert header.timestamp_type == 0
    assert header.delete_horizon_ms is None
    assert replace(header, attributes=0x40).delete_horizon_ms == T0
    assert replace(header, base_sequence=-1).last_sequence == -1


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_iterated_one_after_another(codec: Codec) -> None:
    marker = build_control_batch(
        ControlType.ABORT, producer_id=1, producer_epoch=0, coordinator_epoch=0, now_ms=T0
    )
    data = at(0, build_batch(ROWS[:20], codec)) + at(20, marker) + at(21, build_batch(ROWS[20:]))
    cut_tail = memoryview(data + build_batch(ROWS)[:70])
    records = list(iterate(cut_tail))
    assert [record.offset for record in records] == [*range(20), *range(21, 51)]
    assert [(r.timestamp, r.key, r.value) for r in records] == ROWS
    assert len(list(iterate(cut_tail, control=True))) == 51
    assert [header.base_offset for header in read_headers(cut_tail)] == [0, 20, 21]


@pytest.mark.parametrize("codec", CODECS)
def test_inspection_looks_into_compressed_batches(codec: Codec) -> None:
    rows = [(T0, b"k", b"a"), (T0 + 9, None, b"b"), (T0 + 3, b"k", b"c")]
    batch = build_batch(rows, codec)
    found = inspect(b"xx" + batch, 2, require_key=True, timestamp_max=T0 + 8)
    assert found.header == read_header(batch)
    assert (found.max_timestamp, found.offset_delta_of_max) == (T0 + 9, 1)
    assert found.faults == ((1, Fault.KEY),)
    assert inspect(batch, timestamp_max=T0 + 8).faults == ((1, Fault.TIMESTAMP),)


def test_inspection_does_not_believe_the_headers_max_timestamp() -> None:
    batch = bytearray(build_batch(ROWS, "zstd"))
    stamp_timestamp(batch, 0, False, 5)
    assert inspect(batch).max_timestamp == T0 + 49


def test_inspection_is_bounded() -> None:
    batch = build_batch([(T0, None, bytes(100_000))], "zstd")
    with pytest.raises(CorruptRecordError, match="limit of 99999") as caught:
        inspect(batch, limit=99_999)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_an_unknown_codec_is_refused() -> None:
    batch = bytearray(build_batch(ROWS))
    batch[22] = 6
    stamp_timestamp(batch, 0, False, T0)
    for read in (inspect, lambda data: list(iterate(data))):
        with pytest.raises(CorruptRecordError) as caught:
            read(batch)
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_wrong_crc_is_found_unless_it_was_checked_before() -> None:
    batch = bytearray(build_batch(ROWS))
    batch[17] ^= 1
    with pytest.raises(CorruptRecordError, match="CRC"):
        list(iterate(batch))
    assert len(list(iterate(batch, check_crc=False))) == 50


@pytest.mark.parametrize("codec", CODECS)
def test_append_time_is_every_records_time(codec: Codec) -> None:
    batch = build_batch(ROWS, codec, append_time=42)
    assert read_header(batch).is_append_time
    assert {record.timestamp for record in iterate(batch)} == {42}


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_is_read_lazily_and_in_chunks(codec: Codec) -> None:
    batch = build_batch(ROWS, codec)
    reader: Any = read_batch(b"x" + batch, read_header(batch), 1)
    assert len(reader.take(7)) == 7
    assert next(reader).key == b"k7"
    assert reader.remaining == 42


def test_unpack_copies_nothing_that_is_not_compressed() -> None:
    batch = build_batch(ROWS)
    packed = build_batch(ROWS, "gzip")
    plain = unpack(batch, read_header(batch))
    assert isinstance(plain, memoryview)
    assert plain.obj is batch
    assert unpack(packed, read_header(packed)) == plain


def test_magic_is_where_all_formats_have_it() -> None:
    batch = build_batch(ROWS)
    assert magic_of(batch) == 2
    assert magic_of(b"x" + batch, 1) == 2
    assert magic_of(batch[:16]) is None


@pytest.mark.parametrize("codec", CODECS)
@given(st.data())
def test_damage_is_corrupt_and_nothing_else(codec: Codec, data: st.DataObject) -> None:
    """Without the CRC's help: a batch that was damaged before it was sealed."""
    batch = bytearray(build_batch(ROWS[:4], codec))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(17, len(batch) - 1))] = data.draw(st.integers(0, 255))
    stamp_timestamp(batch, 0, False, T0)
    for read in (
        lambda: list(iterate(batch, check_crc=False, control=True, bounds=Bounds(batch=100_000))),
        lambda: inspect(batch, limit=100_000),
        lambda: list(iterate(batch[: data.draw(st.integers(0, len(batch)))])),
    ):
        try:
            found = read()
        except CorruptRecordError:
            continue
        assert isinstance(found, list | tuple)


def test_record_is_the_kernels_record() -> None:
    (record,) = iterate(build_batch([(T0, b"k", None, (("a", b"b"),))]))
    assert record == Record(0, T0, b"k", None, (("a", b"b"),))
