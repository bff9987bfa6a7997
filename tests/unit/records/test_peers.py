"""Batches exchanged with the record builders and readers of aiokafka and kafka-python."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.records.batch import inspect, iterate, read_header
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec
from barnabas.records.legacy import down_convert, iterate_messages

T0 = 1_700_000_000_000
ROWS = [
    (
        T0 + 3 * i,
        None if i % 4 == 0 else b"key-%d" % i,
        None if i % 7 == 0 else b"some value %d" % i * (i % 50),
        (("h", b"x"), ("é", b"")) if i % 5 == 0 else (),
    )
    for i in range(400)
]
OLD_ROWS = [(time, key, value, ()) for time, key, value, _ in ROWS]


class Peer:
    """Another client's classes for records; the batch builders share their arguments."""

    def __init__(self, default: Any, legacy: Any) -> None:
        self.batch = default.DefaultRecordBatch
        self.builder = default.DefaultRecordBatchBuilder
        self.legacy_builder = legacy.LegacyRecordBatchBuilder
        self.legacy_batch = legacy.LegacyRecordBatch

    def build(self, codec: Codec, **state: Any) -> bytes:
        options = {
            "producer_id": -1,
            "producer_epoch": -1,
            "base_sequence": -1,
            "is_transactional": False,
            **state,
        }
        builder = self.builder(magic=2, compression_type=int(codec), batch_size=1 << 20, **options)
        for index, (timestamp, key, value, headers) in enumerate(ROWS):
            assert builder.append(index, timestamp, key, value, list(headers)) is not None
        return bytes(builder.build())

    def read(self, data: bytes) -> list[tuple[Any, ...]]:
        batch = self.batch(data)
        assert batch.validate_crc()
        return [
            (
                record.timestamp,
                None if record.key is None else bytes(record.key),
                None if record.value is None else bytes(record.value),
                tuple((name, bytes(value)) for name, value in record.headers),
            )
            for record in batch
        ]

    def build_legacy(self, magic: int, codec: Codec) -> bytes:
        builder = self.legacy_builder(magic, int(codec), 1 << 20)
        for index, (timestamp, key, value, _) in enumerate(OLD_ROWS):
            assert builder.append(index, timestamp, key, value) is not None
        return bytes(builder.build())


def aiokafka() -> Peer:
    from aiokafka.record import default_records, legacy_records

    return Peer(default_records, legacy_records)


def kafka_python() -> Peer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own imports
        from kafka.record import default_records, legacy_records
    return Peer(default_records, legacy_records)


# kafka-python has gzip only, unless packages that we do not need are installed.
PAIRS = [(aiokafka, codec) for codec in Codec] + [
    (kafka_python, codec) for codec in (Codec.NONE, Codec.GZIP)
]
OLD_PAIRS = [(peer, codec) for peer, codec in PAIRS if codec is not Codec.ZSTD]


@pytest.mark.parametrize(("load", "codec"), PAIRS)
def test_we_read_what_they_build(load: Callable[[], Peer], codec: Codec) -> None:
    batch = load().build(
        codec, producer_id=77, producer_epoch=2, base_sequence=5, is_transactional=True
    )
    found = inspect(batch)
    assert (found.faults, found.max_timestamp) == ((), ROWS[-1][0])
    assert found.header.codec is codec
    assert found.header.is_transactional
    header = found.header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 2, 5)
    assert header.count == len(ROWS)
    assert [(r.timestamp, r.key, r.value, r.headers) for r in iterate(batch)] == ROWS


@pytest.mark.parametrize(("load", "codec"), PAIRS)
def test_they_read_what_we_build(load: Callable[[], Peer], codec: Codec) -> None:
    assert load().read(build_batch(ROWS, codec)) == ROWS


@pytest.mark.parametrize("load", [aiokafka, kafka_python])
def test_uncompressed_batches_are_the_same_bytes(load: Callable[[], Peer]) -> None:
    theirs = load().build(Codec.NONE)
    # The leader epoch of a batch that was not appended has no meaning: clients write 0 or -1.
    ours = build_batch(ROWS, leader_epoch=read_header(theirs).leader_epoch)
    assert ours == theirs


@pytest.mark.parametrize(
    ("load", "codec", "magic"),
    [(*pair, 1) for pair in OLD_PAIRS]
    + [(*pair, 0) for pair in OLD_PAIRS if pair[1] is not Codec.LZ4],  # which aiokafka refuses
)
def test_we_read_their_message_sets(load: Callable[[], Peer], codec: Codec, magic: int) -> None:
    found = list(iterate_messages(load().build_legacy(magic, codec)))
    assert [(r.key, r.value) for r in found] == [row[1:3] for row in OLD_ROWS]
    assert [r.offset for r in found] == list(range(len(OLD_ROWS)))
    assert [r.timestamp for r in found] == [row[0] if magic else -1 for row in OLD_ROWS]


@pytest.mark.parametrize("load", [aiokafka, kafka_python])
@pytest.mark.parametrize("magic", [0, 1])
def test_they_read_our_down_converted_messages(load: Callable[[], Peer], magic: int) -> None:
    data = down_convert(build_batch(ROWS[:1], base_offset=6), magic)
    batch = load().legacy_batch(data, magic)
    assert batch.validate_crc()
    (record,) = batch
    assert (record.offset, record.key, record.value) == (6, *ROWS[0][1:3])
    assert record.timestamp == (T0 if magic else None)
