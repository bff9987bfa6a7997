"""Compressed records in chunks: what is held, where it stops, what is left to the reader."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.bombs import MEGABYTE, many_records, one_record, packed

from barnabas.config.broker import BrokerOptions
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.topic import TopicOptions
from barnabas.kernels import encode_varint, validate_records
from barnabas.kernels.contract import Fault
from barnabas.records import bounded_decompression as chunks
from barnabas.records.bounded_decompression import CHUNK_BYTES, Chunk, unpack_chunks
from barnabas.records.bounds import (
    BATCH_MAX,
    BATCH_OPTION,
    RECORD_MAX,
    RECORD_OPTION,
    Bounds,
)
from barnabas.records.compression import Codec, TooLargeError, compress, decompress
from barnabas.records.packing import Packing

CODECS = [codec for codec in Codec if codec]


def unpacked(codec: Codec, data: bytes, count: int, bounds: Bounds = Bounds()) -> Iterable[Chunk]:  # noqa: B008
    found = unpack_chunks(codec, memoryview(data), count, bounds)
    assert not isinstance(found, bytes)
    return found


def faults(found: Iterable[Chunk]) -> list[tuple[int, Fault]]:
    """Return what a reader of the chunks finds wrong."""
    wrong: list[tuple[int, Fault]] = []
    index = 0
    for data, count in found:
        wrong += validate_records(data, 0, len(data), count, 0, first=index)[2]
        index += count
    return wrong


def test_the_defaults_are_those_of_the_options() -> None:
    for section in (BrokerOptions, TopicOptions, ConsumerOptions):
        assert section.options[RECORD_OPTION].default == RECORD_MAX
    for section in (BrokerOptions, TopicOptions):
        assert section.options[BATCH_OPTION].default == BATCH_MAX


@pytest.mark.parametrize("codec", CODECS)
def test_few_bytes_are_unpacked_at_once(codec: Codec) -> None:
    records = b"".join(many_records(1000, 100))
    assert unpack_chunks(codec, memoryview(compress(codec, records)), 1000) == records


@pytest.mark.parametrize("codec", CODECS)
def test_many_bytes_come_in_chunks_of_whole_records(codec: Codec) -> None:
    records = b"".join(many_records(5000, 1000))
    found = [(bytes(data), n) for data, n in unpacked(codec, compress(codec, records), 5000)]
    assert len(found) >= 4
    assert b"".join(data for data, _ in found) == records
    assert sum(count for _, count in found) == 5000
    # A codec's block is added to what was left of the chunk before.
    assert max(len(data) for data, _ in found) <= 2 * CHUNK_BYTES
    assert faults(iter(found)) == []


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_record_is_a_chunk_of_its_own(codec: Codec) -> None:
    parts = [many_records(10, 100), one_record(5 * MEGABYTE), many_records(10, 100, 11)]
    found = list(unpacked(codec, packed(codec, itertools.chain(*parts)), 21))
    assert sum(count for _, count in found) == 21
    assert max(len(data) for data, _ in found) < 11 * MEGABYTE


@pytest.mark.parametrize("codec", CODECS)
def test_a_record_beyond_its_bound_is_refused_before_it_is_unpacked(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = 0

    def counting(*arguments: object) -> Iterable[object]:
        nonlocal seen
        for piece in unpack_pieces(*arguments):  # type: ignore[arg-type]
            seen += len(piece)
            yield piece

    unpack_pieces = chunks.unpack_pieces  # type: ignore[attr-defined]
    monkeypatch.setattr(chunks, "unpack_pieces", counting)
    parts = [many_records(10, 100), one_record(300 * MEGABYTE)]
    found = iter(unpacked(codec, packed(codec, itertools.chain(*parts)), 11))
    assert next(found)[1] == 10
    with pytest.raises(TooLargeError, match=f"record of 3145[0-9]+ bytes.*{RECORD_OPTION}"):
        next(found)
    assert seen <= 4 * MEGABYTE


def test_what_a_batch_unpacks_to_is_bounded() -> None:
    data = packed(Codec.ZSTD, many_records(5000, 1000))
    with pytest.raises(TooLargeError, match=f"more than 3000000 bytes.*{BATCH_OPTION}"):
        list(unpacked(Codec.ZSTD, data, 5000, Bounds(batch=3_000_000)))
    assert faults(unpacked(Codec.ZSTD, data, 5000, Bounds(batch=6_000_000))) == []


def test_a_record_in_proportion_to_its_batch_is_taken() -> None:
    """Bytes that do not shrink are no trick, whatever the bound."""
    noise = random.Random(1).randbytes(3 * MEGABYTE)
    head = b"\0\0\0" + encode_varint(-1) + encode_varint(len(noise))
    record = encode_varint(len(head) + len(noise) + 1) + head + noise + b"\0"
    ((found, count),) = unpacked(Codec.ZSTD, compress("zstd", record), 1, Bounds(10))
    assert (found, count) == (record, 1)
    with pytest.raises(TooLargeError, match="record of 3145"):
        list(unpacked(Codec.ZSTD, packed(Codec.ZSTD, one_record(len(noise))), 1, Bounds(10)))


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_wrong_is_left_to_the_reader(codec: Codec) -> None:
    records = b"".join(many_records(2000, 1000))
    for data, count, wrong in (
        (records, 2001, (2000, Fault.CUT)),
        (records, 1999, (1999, Fault.LEFTOVER)),
        (records[:-1], 2000, (1999, Fault.CUT)),
        (records + b"\x01", 2001, (2000, Fault.LENGTH)),  # a length of -1
        (records + b"\xff" * 9, 2001, (2000, Fault.VARINT)),
    ):
        assert faults(unpacked(codec, compress(codec, data), count)) == [wrong]


def test_what_cannot_be_unpacked_in_pieces_is_bounded() -> None:
    """A bare block of snappy, linked lz4 blocks, a window of zstd."""
    records = b"".join(one_record(30 * MEGABYTE))
    bare = bytes(cramjam.snappy.compress_raw(records))
    linked = lz4.frame.compress(records, block_linked=True, block_size=lz4.frame.BLOCKSIZE_MAX64KB)
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    wide = packer.compress(records) + packer.flush()
    for codec, data in ((Codec.SNAPPY, bare), (Codec.LZ4, linked), (Codec.ZSTD, wide)):
        with pytest.raises(TooLargeError, match=f"needed whole.*{RECORD_OPTION}"):
            list(unpacked(codec, data, 1))
        ((found, count),) = unpacked(codec, data, 1, Bounds(record=40 * MEGABYTE))
        assert (len(found), count) == (len(records), 1)


@pytest.mark.parametrize("codec", list(Codec))
@given(pieces=st.lists(st.binary(max_size=200_000), max_size=4), level=st.sampled_from([None, 3]))
def test_packing_in_pieces_is_packing(codec: Codec, pieces: list[bytes], level: int | None) -> None:
    packing = Packing(codec, level)
    for piece in pieces:
        packing.add(bytearray(piece))
    result = bytes(packing.finish())
    assert packing.size == len(result)
    if b"".join(pieces) or codec is not Codec.SNAPPY:
        assert decompress(codec, result) == b"".join(pieces)
