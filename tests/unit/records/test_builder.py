"""Whole batches from records or rows, and batches packed anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.kernels import TRANSACTIONAL_BIT, BatchBuilder, Record
from barnabas.model.errors import CorruptRecordError, InvalidValueError
from barnabas.records.batch import inspect, iterate, read_header
from barnabas.records.bounds import Bounds
from barnabas.records.builder import build_batch, finish, recompress
from barnabas.records.compression import Codec

T0 = 1_700_000_000_000
ROWS = [(T0 + i, b"key", b"value " * i, (("n", b"%d" % i),)) for i in range(30)]


def test_records_and_rows_make_the_same_batch() -> None:
    records = [Record(1000 + i, *row) for i, row in enumerate(ROWS)]
    assert build_batch(records) == build_batch(ROWS) == build_batch(iter(ROWS))
    assert [record.offset for record in iterate(build_batch(records, base_offset=3))] == list(
        range(3, 33)
    )


def test_a_batch_has_at_least_one_record() -> None:
    with pytest.raises(InvalidValueError, match="without a record"):
        build_batch([])


def test_a_builder_is_finished_with_a_codec_by_name() -> None:
    builder = BatchBuilder()
    builder.append_many(ROWS)
    size = builder.size
    batch = finish(builder, "zstd", 1, attributes=TRANSACTIONAL_BIT, producer_id=3)
    header = read_header(batch)
    assert header.codec is Codec.ZSTD
    assert header.is_transactional
    assert header.producer_id == 3
    assert len(batch) < size
    assert inspect(batch).faults == ()


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_packing_anew_changes_the_codec_and_nothing_else(source: Codec, target: Codec) -> None:
    batch = build_batch(
        ROWS,
        source,
        base_offset=9,
        leader_epoch=4,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        transactional=True,
    )
    header = read_header(batch)
    packed = recompress(b"x" + batch, header, target, position=1)
    found = inspect(packed).header
    assert found.codec is target
    differing = {"size": 0, "crc": 0, "attributes": 0}
    assert replace(found, **differing) == replace(header, **differing)
    assert found.attributes & ~7 == header.attributes & ~7
    assert list(iterate(packed)) == list(iterate(batch))


def test_packing_anew_keeps_append_time() -> None:
    batch = build_batch(ROWS, append_time=77)
    packed = recompress(batch, read_header(batch), "gzip", level=9)
    assert {record.timestamp for record in iterate(packed)} == {77}


def test_packing_anew_is_bounded() -> None:
    batch = build_batch([(T0, None, bytes(100_000))], "gzip")
    with pytest.raises(CorruptRecordError, match="more than 1000 bytes"):
        recompress(batch, read_header(batch), "lz4", bounds=Bounds(batch=1000))
