"""Messages of the formats before batches become batches, with their offsets and times."""

from __future__ import annotations

import pytest
from tests.old_segments import Row, old_entries

from barnabas.kernels import Record, RecordCursor
from barnabas.model.errors import CorruptRecordError
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.records.compression import TooLargeError
from barnabas.records.conversion import LOOSE_BYTES_MAX, to_batches
from barnabas.records.legacy import encode_message


def read(data: bytes, position: int = 0) -> list[tuple[int, int, bytes | None, bytes | None]]:
    cursor = RecordCursor(to_batches(data), "t", 0, position, unpack=lambda *packed: packed[1])
    return [(r.offset, r.timestamp, r.key, r.value) for r in cursor.take(100)]


def test_both_old_formats() -> None:
    """Offsets stay, also over gaps; magic 0 has no timestamp."""
    old = encode_message(Record(7, -1, b"k", b"a"), 0) + encode_message(
        Record(9, 1234, None, None), 1
    )
    assert read(old) == [(7, -1, b"k", b"a"), (9, 1234, None, None)]
    assert read(old, 8) == [(9, 1234, None, None)]


def test_old_before_new() -> None:
    """A log that was upgraded in between is read through."""
    old = encode_message(Record(3, 5, None, b"old"), 1)
    new = bytes(build_batch([(6, None, b"new")], base_offset=4))
    assert read(old + new) == [(3, 5, None, b"old"), (4, 6, None, b"new")]


def test_a_cut_message() -> None:
    """The last message may be cut off, as a batch may be."""
    old = encode_message(Record(0, 5, None, b"whole"), 1)
    assert read(old + old[:-1]) == [(0, 5, None, b"whole")]


def test_new_formats_are_not_touched() -> None:
    """Batches are returned as they are, without a copy."""
    new = bytes(build_batch([(6, None, b"new")]))
    assert to_batches(new) is new
    assert to_batches(b"") == b""


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_what_unpacks_to_much_is_packed_again(magic: int, codec: str) -> None:
    """A fetch of small wrappers may unpack to a hundred times as much."""
    rows = [Row(n, 5 if magic else -1, b"k", bytes(1 << 20)) for n in range(12)]
    old = b"".join(old_entries([row], magic, codec) for row in rows)
    converted = to_batches(old)
    assert len(converted) < LOOSE_BYTES_MAX + len(old) + 1000
    found = [Row(r.offset, r.timestamp, r.key, r.value) for r in iterate(converted)]
    assert found == rows
    headers = read_headers(converted)
    assert {header.codec.name.lower() for header in headers} == {"none", codec}
    assert [header.base_offset for header in headers] == list(range(12))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_what_precedes_an_entry_that_unpacks_to_too_much_comes_first(codec: str) -> None:
    small, large = Row(0, 5, b"k", b"v"), Row(1, 6, b"k", bytes(5000))
    good, bad = old_entries([small], 1, codec), old_entries([large], 1, codec)
    found = list(iterate(to_batches(good + bad + good, unpacked_max=1000)))
    assert [(r.offset, r.value) for r in found] == [(0, b"v")]
    with pytest.raises(TooLargeError, match="1000"):
        to_batches(bad + good, unpacked_max=1000)


def test_what_precedes_a_damaged_message_comes_first() -> None:
    good = encode_message(Record(0, 5, None, b"good"), 1)
    damaged = bytearray(encode_message(Record(1, 5, None, b"damaged"), 1))
    damaged[-1] ^= 1
    packed = old_entries([Row(0, 5, b"k", b"v")], 1, "gzip")
    assert read(packed + damaged) == [(0, 5, b"k", b"v")]
    with pytest.raises(CorruptRecordError, match="CRC"):
        to_batches(bytes(damaged) + good)
