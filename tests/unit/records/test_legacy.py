"""Message sets of magic 0 and 1: reading, nesting, and conversion in both directions."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.kernels import Record, assign_offsets
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError
from barnabas.records.batch import inspect, iterate, read_header
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec, compress
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.legacy import down_convert, encode_message, iterate_messages, up_convert

T0 = 1_700_000_000_000
OLD_CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4]


def record(offset: int, value: bytes | None = b"v", magic: int = 1) -> Record:
    return Record(offset, T0 + offset if magic else -1, b"k", value)


def message_set(offsets: list[int], magic: int) -> bytes:
    return b"".join(encode_message(record(offset, magic=magic), magic) for offset in offsets)


def wrapper(
    content: bytes, offset: int, magic: int, codec: Codec = Codec.GZIP, attributes: int = 0
) -> bytes:
    packed = Record(offset, T0 + 99, None, compress(codec, content))
    return encode_message(packed, magic, attributes | codec)


def resealed(message: bytearray) -> bytes:
    message[12:16] = zlib.crc32(message[16:]).to_bytes(4, "big")
    return bytes(message)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_read_and_a_cut_one_is_ignored(magic: int) -> None:
    data = message_set([5, 6, 9], magic)
    expected = [record(offset, magic=magic) for offset in (5, 6, 9)]
    assert list(iterate_messages(data)) == expected
    for cut in (1, 5, 20):
        assert list(iterate_messages(memoryview(data)[:-cut])) == expected[:2]
    assert list(iterate_messages(data[:10])) == []
    assert list(iterate_messages(b"")) == []


@pytest.mark.parametrize("magic", [0, 1])
def test_null_keys_and_values(magic: int) -> None:
    nothing = Record(0, T0 if magic else -1, None, None)
    empty = Record(1, T0 if magic else -1, b"", b"")
    data = encode_message(nothing, magic) + encode_message(empty, magic)
    assert list(iterate_messages(data)) == [nothing, empty]


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_offsets_inside_a_wrapper(codec: Codec) -> None:
    """Absolute in magic 0; relative in magic 1, where the wrapper has the last one's."""
    absolute = wrapper(message_set([7, 8, 9], 0), 9, 0, codec)
    assert [r.offset for r in iterate_messages(absolute)] == [7, 8, 9]
    relative = wrapper(message_set([0, 1, 3], 1), 103, 1, codec)
    assert [r.offset for r in iterate_messages(relative)] == [100, 101, 103]
    not_assigned = wrapper(message_set([0, 1, 2], 1), 0, 1, codec)
    assert [r.offset for r in iterate_messages(not_assigned)] == [0, 1, 2]


def test_timestamps_inside_a_wrapper_unless_the_broker_stamped_it() -> None:
    content = message_set([0, 1], 1)
    assert [r.timestamp for r in iterate_messages(wrapper(content, 1, 1))] == [T0, T0 + 1]
    stamped = wrapper(content, 1, 1, attributes=8)
    assert [r.timestamp for r in iterate_messages(stamped)] == [T0 + 99, T0 + 99]


def test_magic_0_accepts_the_wrong_lz4_header_checksum() -> None:
    packed = bytearray(compress("lz4", message_set([0, 1], 0)))
    packed[6] ^= 0x55
    data = encode_message(Record(1, -1, None, bytes(packed)), 0, Codec.LZ4)
    assert len(list(iterate_messages(data))) == 2
    with pytest.raises(CorruptRecordError):
        list(iterate_messages(encode_message(Record(1, T0, None, bytes(packed)), 1, Codec.LZ4)))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_inside_a_wrapper_is_refused(magic: int) -> None:
    inner = wrapper(message_set([0], magic), 0, magic)
    with pytest.raises(CorruptRecordError, match="compressed message inside a compressed"):
        list(iterate_messages(wrapper(inner, 0, magic)))


def test_wrappers_share_one_limit() -> None:
    one = wrapper(message_set([0], 1), 0, 1)
    size = len(message_set([0], 1))
    assert len(list(iterate_messages(one * 3, limit=3 * size))) == 3
    with pytest.raises(CorruptRecordError, match="unpacks to more than"):
        list(iterate_messages(one * 3, limit=3 * size - 1))


def test_malformed_wrappers() -> None:
    inner = message_set([0, 1], 1)
    with pytest.raises(CorruptRecordError, match="inside a compressed message is truncated"):
        list(iterate_messages(wrapper(inner[:-1], 1, 1)))
    with pytest.raises(CorruptRecordError, match="without inner messages"):
        list(iterate_messages(wrapper(b"", 1, 1)))
    with pytest.raises(CorruptRecordError, match="magic 0 inside one of magic 1"):
        list(iterate_messages(wrapper(message_set([0], 0), 1, 1)))
    with pytest.raises(CorruptRecordError, match="without a value"):
        list(iterate_messages(encode_message(Record(0, T0, None, None), 1, Codec.GZIP)))
    with pytest.raises(CorruptRecordError) as caught:
        list(iterate_messages(wrapper(inner, 1, 1, Codec.ZSTD)))
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    far = encode_message(Record(2**63 - 1, T0, None, b""), 1)
    far += encode_message(Record(0, T0, None, b""), 1)
    with pytest.raises(CorruptRecordError, match="not a 64-bit number"):
        list(iterate_messages(wrapper(far, 2**63 - 1, 1)))


def test_malformed_messages() -> None:
    message = bytearray(encode_message(record(0), 1))
    broken = bytearray(message)
    broken[20] ^= 1
    with pytest.raises(CorruptRecordError, match="message has CRC"):
        list(iterate_messages(broken))
    with pytest.raises(CorruptRecordError, match="magic 2") as caught:
        list(iterate_messages(build_batch([(T0, None, b"")])))
    assert caught.value.code is ErrorCode.INVALID_RECORD
    with pytest.raises(CorruptRecordError, match="3 bytes is smaller"):
        list(iterate_messages(bytes(8) + b"\0\0\0\3abc"))
    for position, size in ((26, 100), (26, -2), (31, 2), (31, 0)):  # key and value lengths
        wrong = bytearray(message)
        wrong[position : position + 4] = size.to_bytes(4, "big", signed=True)
        with pytest.raises(CorruptRecordError, match="do not add up"):
            list(iterate_messages(resealed(wrong)))


@given(st.data())
def test_damage_is_corrupt_and_nothing_else(data: st.DataObject) -> None:
    magic = data.draw(st.integers(0, 1))
    codec = data.draw(st.sampled_from(OLD_CODECS))
    content = bytearray(message_set([0, 1, 2], magic))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (resealed(content), wrapper(bytes(content), 2, magic, codec)):
        try:
            found = list(iterate_messages(damaged, limit=10_000))
        except CorruptRecordError:
            continue
        assert len(found) <= 3


@pytest.mark.parametrize("magic", [0, 1])
def test_up_conversion_makes_one_batch(magic: int) -> None:
    data = message_set([4, 5], magic) + wrapper(message_set([0, 1], magic), 7, magic, Codec.LZ4)
    batch = up_convert(data)
    found = inspect(batch)
    assert found.header.codec is Codec.LZ4
    assert (found.header.count, found.header.base_offset, found.faults) == (4, 0, ())
    times = [T0 + 4, T0 + 5, T0, T0 + 1] if magic else [-1] * 4
    assert list(iterate(batch)) == [Record(i, time, b"k", b"v") for i, time in enumerate(times)]
    assert read_header(up_convert(data, codec="none")).codec is Codec.NONE


def test_up_conversion_of_nothing_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="empty message set") as caught:
        up_convert(message_set([0], 1)[:-1])
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, *OLD_CODECS])
def test_down_conversion_drops_headers_and_markers(magic: int, codec: Codec) -> None:
    rows = [(T0 + i, b"k", b"v%d" % i, (("h", b"x"),)) for i in range(3)]
    marker = build_control_batch(
        ControlType.COMMIT,
        producer_id=1,
        producer_epoch=0,
        coordinator_epoch=0,
        now_ms=T0,
        base_offset=13,
    )
    after = bytearray(build_batch(rows, append_time=T0 + 50))
    assign_offsets(after, 0, 14, 0)
    data = build_batch(rows, codec, base_offset=10) + marker + after
    converted = down_convert(data + after[:-1], magic, from_offset=11)
    found = list(iterate_messages(converted))
    assert [r.offset for r in found] == [11, 12, 14, 15, 16]
    assert [r.value for r in found] == [b"v1", b"v2", b"v0", b"v1", b"v2"]
    assert {r.headers for r in found} == {()}
    times = [T0 + 1, T0 + 2, T0 + 50, T0 + 50, T0 + 50] if magic else [-1] * 5
    assert [r.timestamp for r in found] == times
    assert down_convert(marker, magic) == b""
    if magic == 1:
        assert converted[-len(encode_message(found[-1], 1)) + 17] == 8  # LogAppendTime


def test_down_conversion_of_zstd_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        down_convert(build_batch([(T0, None, b"")], "zstd"), 1)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
