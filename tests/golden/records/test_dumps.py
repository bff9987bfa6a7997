"""Batches byte for byte, as Apache Kafka's own classes write and read them."""

from __future__ import annotations

from barnabas.kernels import Record, assign_offsets, check_batch, crc32c, stamp_producer
from barnabas.records.batch import (
    inspect,
    iterate,
    read_header,
    read_headers,
    stamp_append_time,
    stamp_create_time,
)
from barnabas.records.builder import build_batch, recompress
from barnabas.records.compression import Codec, compress, decompress
from barnabas.records.control import ControlType, Marker, build_control_batch, read_marker
from barnabas.records.legacy import encode_message, iterate_messages

T0 = 1_700_000_000_000
RECORDS = [
    Record(0, T0, b"k1", b"hello"),
    Record(1, T0 + 5, None, b"v2", (("h", b"x"), ("n", None))),
]
RECORD_BYTES = bytes.fromhex(
    "1a 00 00 00 04 6b 31 0a 68 65 6c 6c 6f 00 1e 00 0a 02 01 04 76 32 04 02 68 02 78 02 6e 01"
)

PRODUCED = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 4f ff ff ff ff
02 9d 16 3e f9 00 00 00 00 00 01 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 02 1a 00 00
00 04 6b 31 0a 68 65 6c 6c 6f 00 1e 00 0a 02 01
04 76 32 04 02 68 02 78 02 6e 01
""")
APPENDED_START = bytes.fromhex("""
00 00 00 00 00 00 00 64 00 00 00 4f 00 00 00 03
02 9d 16 3e f9 00 00 00 00 00 01 00 00 01 8b cf
""")
APPEND_TIME_START = bytes.fromhex("""
00 00 00 00 00 00 00 64 00 00 00 4f 00 00 00 03
02 d3 67 87 bb 00 08 00 00 00 01 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 6b 09 ff ff ff ff ff
""")
TRANSACTIONAL_START = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 4f ff ff ff ff
02 32 7d d6 00 00 10 00 00 00 01 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 05 00 00 00 00 00
00 0f a0 00 00 00 00 00 00 00 00 00 02 1a 00 00
""")
COMMIT = bytes.fromhex("""
00 00 00 00 00 00 00 66 00 00 00 42 00 00 00 03
02 7c 16 f0 e6 00 30 00 00 00 00 00 00 01 8b cf
e5 68 09 00 00 01 8b cf e5 68 09 00 00 00 00 00
00 0f a0 00 00 ff ff ff ff 00 00 00 01 20 00 00
00 08 00 00 00 01 0c 00 00 00 00 00 07 00
""")
GZIP = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 63 ff ff ff ff
02 9f 0f ee bb 00 01 00 00 00 01 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 02 1f 8b 08
00 00 00 00 00 02 ff 93 62 60 60 60 c9 36 e4 ca
48 cd c9 c9 67 90 63 e0 62 62 64 29 33 62 61 ca
60 aa 60 ca 63 04 00 2e f5 24 9e 1e 00 00 00
""")
LZ4 = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 5e ff ff ff ff
02 04 b9 51 23 00 03 00 00 00 01 00 00 01 8b cf
e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff
ff ff ff ff ff ff ff ff ff 00 00 00 02 04 22 4d
18 60 40 82 1e 00 00 80 1a 00 00 00 04 6b 31 0a
68 65 6c 6c 6f 00 1e 00 0a 02 01 04 76 32 04 02
68 02 78 02 6e 01 00 00 00 00
""")
MESSAGE_V1 = bytes.fromhex("""
00 00 00 00 00 00 00 00 00 00 00 1d 9e 34 95 96
01 00 00 00 01 8b cf e5 68 00 00 00 00 02 6b 31
00 00 00 05 68 65 6c 6c 6f
""")


def test_checksum_check_value() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_a_produced_batch_is_built_and_read() -> None:
    assert build_batch(RECORDS) == PRODUCED
    assert PRODUCED[61:] == RECORD_BYTES
    assert list(iterate(PRODUCED)) == RECORDS
    (header,) = read_headers(PRODUCED)
    assert header.crc == 0x9D163EF9
    assert inspect(PRODUCED) == (header, T0 + 5, 1, ())


def test_the_leader_assigns_offset_and_epoch_under_the_same_crc() -> None:
    batch = bytearray(PRODUCED)
    assign_offsets(batch, 0, 100, 3)
    assert batch == APPENDED_START + PRODUCED[32:]
    assert check_batch(batch).crc == 0x9D163EF9
    assert [record.offset for record in iterate(batch)] == [100, 101]


def test_append_time_gets_a_new_crc_and_can_be_taken_back() -> None:
    batch = bytearray(PRODUCED)
    assign_offsets(batch, 0, 100, 3)
    assert stamp_append_time(batch, T0 + 777) == 0xD36787BB
    assert batch == APPEND_TIME_START + PRODUCED[48:]
    assert read_header(batch).timestamp_type == 1
    assert {record.timestamp for record in iterate(batch)} == {T0 + 777}
    stamp_create_time(batch, T0 + 5)
    assert batch == APPENDED_START + PRODUCED[32:]


def test_a_transactional_batch_built_and_stamped_after_the_fact() -> None:
    built = build_batch(
        RECORDS, producer_id=4000, producer_epoch=0, base_sequence=0, transactional=True
    )
    assert built == TRANSACTIONAL_START + PRODUCED[64:]
    assert read_header(built).is_transactional
    stamped = bytearray(PRODUCED)
    assert stamp_producer(stamped, 0, 4000, 0, 0, True) == 0x327DD600
    assert stamped == built


def test_a_commit_marker_is_built_and_read() -> None:
    built = build_control_batch(
        ControlType.COMMIT,
        producer_id=4000,
        producer_epoch=0,
        coordinator_epoch=7,
        now_ms=T0 + 9,
        base_offset=102,
        leader_epoch=3,
    )
    assert built == COMMIT
    assert list(iterate(COMMIT)) == []
    (record,) = iterate(COMMIT, control=True)
    assert record.offset == 102
    assert read_marker(record) == Marker(ControlType.COMMIT, 7)


def test_gzip_is_read() -> None:
    assert read_header(GZIP).codec is Codec.GZIP
    assert check_batch(GZIP).crc == 0x9F0FEEBB
    assert list(iterate(GZIP)) == RECORDS
    assert decompress("gzip", GZIP[61:], 30) == RECORD_BYTES


def test_lz4_is_written_and_read_as_java_does() -> None:
    assert build_batch(RECORDS, "lz4") == LZ4
    assert compress("lz4", RECORD_BYTES) == LZ4[61:]
    assert list(iterate(LZ4)) == RECORDS
    assert recompress(LZ4, read_header(LZ4), "none") == PRODUCED
    assert recompress(PRODUCED, read_header(PRODUCED), "lz4") == LZ4


def test_a_message_of_magic_1_is_written_and_read() -> None:
    assert encode_message(RECORDS[0], 1) == MESSAGE_V1
    assert list(iterate_messages(MESSAGE_V1)) == [RECORDS[0]]
