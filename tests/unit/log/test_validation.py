"""What a leader refuses and with which code, and what it changes in what it takes."""

import pytest
from tests import bombs

from barnabas.kernels import crc32c, encode_varint
from barnabas.log.validation import NEWEST_VERSION, InvalidRecords, Rules, validate
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.records.batch import Record, iterate, read_header
from barnabas.records.builder import build_batch, recompress
from barnabas.records.compression import Codec
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.legacy import encode_message

NOW = 1_700_000_000_000
CODECS = ["gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def check(options):
    def run(data, *, version=NEWEST_VERSION, origin="client", **settings):
        return validate(data, Rules(options(**settings)), NOW, version, origin)

    return run


def patch(data, position, value):
    """Change bytes of a batch and make its CRC right again."""
    data[position : position + len(value)] = value
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    return data


def refused(code):
    return pytest.raises(RequestError, check=lambda failure: failure.code is code)


def test_a_good_batch_is_taken_as_it_is(check, batch):
    data = batch(3)
    records, header = check(data)
    assert records is data
    assert header == read_header(data)


@pytest.mark.parametrize("size", [0, 5, 16])
def test_no_batch_at_all(check, size):
    with refused(ErrorCode.INVALID_RECORD):
        check(bytes(size))


def test_a_cut_batch_is_corrupt_at_every_byte(check, batch):
    data = batch(2)
    for size in range(17, len(data)):
        with refused(ErrorCode.CORRUPT_MESSAGE):
            check(data[:size])


def test_a_cut_second_batch_is_left_out_and_a_whole_one_refused(check, batch):
    first, second = batch(2), batch(1)
    for size in range(len(second)):
        records, _ = check(first + second[:size])
        assert bytes(records) == bytes(first)
    with refused(ErrorCode.INVALID_RECORD):
        check(first + second)


@pytest.mark.parametrize("position", [21, 30, 50, 65, -1])
def test_any_changed_byte_is_corrupt(check, batch, position):
    data = batch(2)
    data[position] ^= 1
    with refused(ErrorCode.CORRUPT_MESSAGE):
        check(data)


@pytest.mark.parametrize(
    ("position", "value", "code"),
    [
        (0, b"\0\0\0\0\0\0\0\1", ErrorCode.INVALID_RECORD),
        (16, b"\1", ErrorCode.INVALID_RECORD),
        (16, b"\3", ErrorCode.INVALID_RECORD),
        (21, b"\0\x20", ErrorCode.INVALID_RECORD),
        (23, b"\0\0\0\5", ErrorCode.INVALID_RECORD),
        (23, b"\0\0\0\0", ErrorCode.INVALID_RECORD),
        (23, b"\xff\xff\xff\xff", ErrorCode.INVALID_RECORD),
        (43, b"\0\0\0\0\0\0\0\7", ErrorCode.INVALID_RECORD),
        (57, b"\0\0\0\0", ErrorCode.INVALID_RECORD),
        (57, b"\xff\xff\xff\xff", ErrorCode.INVALID_RECORD),
    ],
    ids=[
        "base offset",
        "magic 1",
        "magic 3",
        "control",
        "more offsets than records",
        "fewer offsets than records",
        "negative offsets",
        "producer without sequence",
        "no records",
        "negative count",
    ],
)
def test_headers_that_clients_must_not_send(check, batch, position, value, code):
    with refused(code):
        check(patch(batch(2), position, value))


def test_size_is_judged_before_the_crc(check, batch):
    data = batch(1, size=500)
    data[-1] ^= 1
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        check(data, max_message_bytes=300)


def test_a_batch_larger_than_a_segment(check, batch):
    with refused(ErrorCode.RECORD_LIST_TOO_LARGE):
        check(batch(1, size=500), segment_bytes=300)


def test_zstd_needs_version_7(check, batch):
    data = batch(3, codec="zstd")
    with refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
        check(bytearray(data), version=6)
    assert check(data, version=7)[0] is data


def test_a_compacted_topic_names_the_records_without_key(check):
    rows = [(NOW, b"k", b"v"), (NOW, None, b"v"), (NOW, b"k", b"v"), (NOW, None, b"v")]
    for codec in ["none", *CODECS]:
        data = bytearray(build_batch(rows, codec))
        with pytest.raises(InvalidRecords) as caught:
            check(data, cleanup_policy="compact")
        assert caught.value.code is ErrorCode.INVALID_RECORD
        assert [index for index, _ in caught.value.record_errors] == [1, 3]
        assert check(data)[1].count == 4


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_timestamps_outside_the_window(check, codec):
    rows = [(NOW - 11, b"k", b"v"), (NOW, b"k", b"v"), (NOW + 21, b"k", b"v"), (-1, b"k", b"v")]
    window = {"message_timestamp_before_max_ms": 10, "message_timestamp_after_max_ms": 20}
    with pytest.raises(InvalidRecords) as caught:
        check(bytearray(build_batch(rows, codec)), **window)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0, 2]
    inside = [(NOW - 10, b"k", b"v"), (NOW + 20, b"k", b"v"), (-1, b"k", b"v")]
    assert check(bytearray(build_batch(inside, codec)), **window)


def test_one_bad_timestamp_decides_the_code(check):
    rows = [(NOW, None, b"v"), (0, b"k", b"v")]
    with refused(ErrorCode.INVALID_TIMESTAMP):
        check(
            bytearray(build_batch(rows)),
            cleanup_policy="compact",
            message_timestamp_before_max_ms=10,
        )


def test_append_time_replaces_what_the_producer_said(check):
    rows = [(5, b"k", b"v"), (9, b"k", b"v")]
    for codec in ["none", "gzip"]:
        data = bytearray(build_batch(rows, codec))
        stamped, header = check(data, message_timestamp_type="LogAppendTime")
        assert stamped is data
        assert header.max_timestamp == NOW
        assert [r.timestamp for r in iterate(stamped)] == [NOW, NOW]


def test_append_time_claimed_by_a_producer(check):
    rows = [(NOW, b"k", b"v"), (NOW + 1, b"k", b"v")]
    claimed = build_batch(rows, append_time=NOW + 1)
    with pytest.raises(InvalidRecords) as caught:
        check(bytearray(claimed), message_timestamp_type="LogAppendTime")
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0, 1]
    without = build_batch([(-1, b"k", b"v")], append_time=-1)
    with refused(ErrorCode.INVALID_TIMESTAMP):
        check(bytearray(without))
    records, header = check(bytearray(claimed))
    assert not read_header(records).is_append_time
    assert header.max_timestamp == NOW + 1
    assert len(list(iterate(records))) == 2


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_wrong_max_timestamp_is_mended(check, batch, codec):
    data = patch(batch(3, codec=codec), 35, (NOW + 999).to_bytes(8, "big"))
    records, header = check(data)
    assert header.max_timestamp == NOW + 2
    assert len(list(iterate(records))) == 3


@pytest.mark.parametrize("target", ["uncompressed", *CODECS])
@pytest.mark.parametrize("source", ["none", *CODECS])
def test_the_topics_codec_wins(check, batch, source, target):
    identity = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 5, "transactional": True}
    data = batch(20, size=50, codec=source, **identity)
    records, header = check(bytearray(data), compression_type=target)
    assert header == read_header(records)
    assert header.codec.name.lower() == ("none" if target == "uncompressed" else target)
    assert [(r.offset, r.value) for r in iterate(records)] == [
        (r.offset, r.value) for r in iterate(data)
    ]
    assert header.max_timestamp == NOW + 19
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (7, 5, True)


def test_a_batch_that_unpacks_beyond_the_limit_is_refused(check, batch):
    data = batch(1, size=5000, codec="gzip")
    with refused(ErrorCode.MESSAGE_TOO_LARGE):
        check(data, compression_type="uncompressed", max_message_bytes=1000)


def test_damaged_compressed_bytes_are_corrupt(check, batch):
    data = batch(5, size=100, codec="gzip")
    data[90:100] = bytes(10)
    with refused(ErrorCode.CORRUPT_MESSAGE):
        check(patch(data, 90, bytes(10)))


def test_wrong_offset_deltas_are_refused_plain_and_mended_compressed(check, batch):
    plain = batch(2)
    at = plain.index(b"v" * 10) + 10 + 1 + 3  # second record: length, attributes, timestamp delta
    assert plain[at] == 2
    broken = patch(plain, at, b"\x08")
    with refused(ErrorCode.INVALID_RECORD):
        check(bytearray(broken))
    packed = recompress(broken, read_header(broken), "gzip")
    records, _ = check(packed)
    assert [r.offset for r in iterate(records)] == [0, 1]
    assert read_header(records).codec.name == "GZIP"


def test_coordinators_may_write_markers_which_stay_uncompressed(check):
    marker = build_control_batch(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=2, now_ms=NOW
    )
    with refused(ErrorCode.INVALID_RECORD):
        check(bytearray(marker))
    records, _ = check(bytearray(marker), origin="coordinator", compression_type="zstd")
    assert bytes(records) == marker


def test_old_formats_become_one_batch(check):
    for magic, timestamps in ((0, [-1, -1]), (1, [NOW, NOW + 1])):
        messages = b"".join(
            encode_message(Record(i, NOW + i, b"k", b"v%d" % i, ()), magic) for i in range(2)
        )
        records, header = check(messages, version=2)
        found = list(iterate(records))
        assert [(r.offset, r.timestamp, r.value) for r in found] == [
            (0, timestamps[0], b"v0"),
            (1, timestamps[1], b"v1"),
        ]
        assert header.count == 2
        with refused(ErrorCode.CORRUPT_MESSAGE):
            check(messages[:-1] + b"x", version=2)
        with refused(ErrorCode.INVALID_RECORD):
            check(messages, version=3)


def test_read_only_bytes_are_copied_when_they_must_change(check, batch):
    data = bytes(batch(1))
    records, _ = check(data, message_timestamp_type="LogAppendTime")
    assert records is not data
    assert data == bytes(batch(1))


LARGE = {"max_message_bytes": 16_000_000, "barnabas_unpacked_record_max_bytes": 1 << 20}


@pytest.mark.parametrize("settings", [{}, {"compression_type": "uncompressed"}])
@pytest.mark.parametrize("codec", CODECS)
def test_a_record_that_unpacks_to_too_much_is_too_large(check, codec, settings):
    data = bombs.batch(Codec.of(codec), bombs.one_record(80 << 20))
    with pytest.raises(
        RequestError, match=r"record of 8388[0-9]+ bytes.*unpacked.record"
    ) as caught:
        check(bytearray(data), **LARGE, **settings)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_many_records_are_taken_whatever_they_unpack_to(check, codec):
    data = bytearray(bombs.batch(Codec.of(codec), bombs.many_records(40_000, 100), 40_000))
    records, header = check(data, **LARGE)
    assert records is data
    assert header.count == 40_000


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("target", CODECS)
def test_many_records_are_packed_anew_in_pieces(check, codec, target):
    data = bytearray(bombs.batch(Codec.of(codec), bombs.many_records(20_000, 100), 20_000))
    records, header = check(data, compression_type=target, **LARGE)
    assert read_header(records).codec is Codec.of(target)
    assert header == read_header(records)
    found = [(record.offset, record.value) for record in iterate(records)]
    assert found == [(offset, bytes(100)) for offset in range(20_000)]


def test_packing_anew_ends_at_the_first_byte_too_many(check):
    data = bytearray(bombs.batch(Codec.ZSTD, bombs.many_records(40_000, 100), 40_000))
    with pytest.raises(
        RequestError, match=r"more than 1048588 bytes.*max\.message\.bytes"
    ) as caught:
        check(data, compression_type="uncompressed")
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_faults_of_later_chunks_have_the_index_in_the_batch(check):
    data = bytearray(bombs.batch(Codec.ZSTD, _keyless(20_000, 15_000), 20_000))
    with pytest.raises(InvalidRecords) as caught:
        check(data, cleanup_policy="compact", **LARGE)
    assert caught.value.record_errors[0][0] == 15_000
    data = bytearray(bombs.batch(Codec.ZSTD, bombs.many_records(20_000, 100), 20_001))
    with pytest.raises(InvalidRecords) as caught:
        check(data, **LARGE)
    assert [index for index, _ in caught.value.record_errors] == [20_000]


def test_wrong_offset_deltas_of_a_large_batch_are_mended_within_the_bound(check):
    data = bytearray(bombs.batch(Codec.ZSTD, bombs.many_records(20_000, 100, 7), 20_000))
    records, _ = check(data, max_message_bytes=16_000_000)
    assert [record.offset for record in iterate(records)] == list(range(20_000))
    with pytest.raises(RequestError, match=r"needed whole.*offset deltas") as caught:
        check(data, max_message_bytes=100_000, barnabas_unpacked_record_max_bytes=1 << 20)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_an_old_message_that_unpacks_to_too_much_is_too_large(check, codec, magic):
    content = bombs.one_message(magic, 40 << 20)
    data = bombs.wrapper(Codec.of(codec), content, magic)
    with pytest.raises(RequestError, match=rf"message of magic {magic}.*unpacked.record") as caught:
        check(data, version=magic + 1)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    small = bombs.wrapper(Codec.of(codec), bombs.one_message(magic, 2 << 20), magic)
    assert read_header(check(small, version=magic + 1)[0]).count == 1


def test_of_many_faults_the_first_are_named(check):
    data = bytearray(bombs.batch(Codec.ZSTD, _keyless(40_000, 0), 40_000))
    with pytest.raises(InvalidRecords) as caught:
        check(data, cleanup_policy="compact", **LARGE)
    assert [index for index, _ in caught.value.record_errors] == list(range(10_000))
    data = bytearray(bombs.batch(Codec.ZSTD, _keyless(40_000, 40_000), 40_000))
    patch(data, 21, (Codec.ZSTD | 8).to_bytes(2, "big"))  # claims append time
    with pytest.raises(InvalidRecords) as caught:
        check(data, message_timestamp_type="LogAppendTime", **LARGE)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == list(range(10_000))


def _keyless(count, first):
    """Yield records of which those from one on have no key."""
    for index in range(count):
        key = b"\x01" if index >= first else encode_varint(1) + b"k"
        body = b"\0\0" + encode_varint(index) + key + encode_varint(90) + bytes(90) + b"\0"
        yield encode_varint(len(body)) + body
