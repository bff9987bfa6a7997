"""Compression: what we write, what we accept, what we refuse, and how little memory that takes."""

from __future__ import annotations

import gzip
import subprocess
import sys
import textwrap
import zlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, InvalidValueError
from barnabas.records import compression
from barnabas.records.compression import Codec, compress, decompress

CODECS = list(Codec)
PACKERS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
SAMPLE = b"".join(b'{"id": %d, "name": "n%d"}' % (i, i * 7919 % 1000) for i in range(9000))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", SAMPLE, bytes(300_000), SAMPLE[:65536]])
def test_what_is_packed_comes_back(codec: Codec, data: bytes) -> None:
    packed = compress(codec, memoryview(data))
    assert decompress(codec, packed) == data
    assert decompress(codec, bytearray(packed), len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_one_byte_above_the_limit_is_refused_by_name(codec: Codec) -> None:
    packed = compress(codec, SAMPLE)
    limit = len(SAMPLE) - 1
    with pytest.raises(CorruptRecordError, match=f"limit of {limit} bytes") as caught:
        decompress(codec, packed, limit)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", PACKERS)
def test_concatenated_members_are_read_to_the_end(codec: Codec) -> None:
    packed = compress(codec, b"first ") + compress(codec, b"second")
    assert decompress(codec, packed) == b"first second"
    with pytest.raises(CorruptRecordError, match="limit of 11"):
        decompress(codec, packed, 11)


@pytest.mark.parametrize("codec", PACKERS)
def test_every_cut_is_damage(codec: Codec) -> None:
    """A snappy stream may end between its blocks: there it has no end mark to miss."""
    packed = compress(codec, SAMPLE[:2000])
    for end in [*range(1, 40), len(packed) // 2, len(packed) - 1]:
        if codec is Codec.SNAPPY and end == 16:
            continue
        with pytest.raises(CorruptRecordError):
            decompress(codec, packed[:end])


@pytest.mark.parametrize("codec", PACKERS)
@given(st.data())
def test_damage_is_corrupt_or_harmless_but_nothing_else(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, SAMPLE[:500]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decompress(codec, packed, 1000)
    except CorruptRecordError:
        return
    assert len(found) <= 1000


@pytest.mark.parametrize("codec", PACKERS)
@given(st.binary(max_size=60))
def test_noise_is_corrupt(codec: Codec, noise: bytes) -> None:
    prefix = {
        Codec.GZIP: b"\x1f\x8b\x08\0",
        Codec.SNAPPY: b"\x82SNAPPY\0",
        Codec.LZ4: b"\x04\x22\x4d\x18",
        Codec.ZSTD: b"\x28\xb5\x2f\xfd",
    }[codec]
    for data in (noise, prefix + noise):
        try:
            found = decompress(codec, data, 5000)
        except CorruptRecordError:
            continue
        assert len(found) <= 5000


def test_unknown_codecs_are_refused() -> None:
    assert Codec.of("zstd") is Codec.of(4) is Codec.ZSTD
    for codec in (5, 7, "brotli"):
        with pytest.raises(CorruptRecordError, match=f"codec {codec}: must be 0 to 4") as caught:
            compress(codec, b"")
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(
    ("codec", "levels"),
    [("gzip", [-1, 1, 3, 4, 6, 7, 9]), ("lz4", [1, 9, 10, 17]), ("zstd", [-5, 1, 3, 19, 22])],
)
def test_levels_of_kafkas_range(codec: str, levels: list[int]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, SAMPLE, level)) == SAMPLE
    for level in (levels[-1] + 1, -200_000, 0 if codec != "zstd" else 23):
        with pytest.raises(InvalidValueError, match=f"{codec} level"):
            compress(codec, b"", level)
    assert len(compress(codec, SAMPLE, levels[-1])) < len(compress(codec, SAMPLE, levels[1]))


def test_gzip_is_read_by_others_and_from_others() -> None:
    assert gzip.decompress(compress("gzip", SAMPLE)) == SAMPLE
    for level in (0, 1, 9):
        assert decompress("gzip", gzip.compress(SAMPLE, level)) == SAMPLE


def test_gzip_without_isal_is_the_same_format(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = compress("gzip", SAMPLE)
    monkeypatch.setattr(compression, "fast_zlib", None)
    slow = compress("gzip", SAMPLE)
    assert decompress("gzip", fast) == decompress("gzip", slow) == SAMPLE
    with pytest.raises(CorruptRecordError, match="is truncated"):
        decompress("gzip", slow[:-3])
    with pytest.raises(CorruptRecordError, match="damaged gzip"):
        decompress("gzip", b"\0" + slow)
    with pytest.raises(CorruptRecordError, match="limit of 10"):
        decompress("gzip", slow, 10)


def test_gzip_checks_its_own_checksum_and_size() -> None:
    packed = bytearray(compress("gzip", SAMPLE))
    packed[-6] ^= 1
    with pytest.raises(CorruptRecordError):
        decompress("gzip", packed)
    assert zlib.crc32(SAMPLE) != 0


def test_snappy_is_a_xerial_stream_of_32_kib_blocks() -> None:
    packed = compress("snappy", bytes(70_000))
    assert packed[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    sizes = []
    position = 16
    while position < len(packed):
        size = int.from_bytes(packed[position : position + 4], "big")
        block = packed[position + 4 : position + 4 + size]
        sizes.append(cramjam.snappy.decompress_raw_len(block))
        position += 4 + size
    assert sizes == [32768, 32768, 70_000 - 65536]


def test_snappy_accepts_a_bare_block_and_any_version_numbers() -> None:
    bare = bytes(cramjam.snappy.compress_raw(SAMPLE))
    assert decompress("snappy", bare) == SAMPLE
    little = b"\x82SNAPPY\0\1\0\0\0\1\0\0\0" + len(bare).to_bytes(4, "big") + bare
    assert decompress("snappy", little) == SAMPLE


def test_a_snappy_block_cannot_claim_what_it_cannot_hold() -> None:
    with pytest.raises(CorruptRecordError, match="cannot hold"):
        decompress("snappy", b"\xff\xff\xff\xff\x03\x00a", 1 << 30)


# In a process of its own: what is left of its address space is the limit and a little more, so an
# unpacker that trusts its input fails with MemoryError instead of CorruptRecordError.
EXPLODE = textwrap.dedent("""
    import gc, resource
    import cramjam
    from barnabas.model.errors import CorruptRecordError
    from barnabas.records.compression import compress, decompress

    MIB = 1 << 20
    zeros = bytes(MIB)
    member = compress("gzip", bytes(16 * MIB))
    snappy = bytes(cramjam.snappy.compress_raw(zeros))
    lz4 = compress("lz4", bytes(65536))[7:-4]
    repeated = 128 * 1024 << 3  # and the byte to repeat, 0, follows the three of the header
    bombs = {                                                     # about 1 GiB each
        "gzip": member * 64,
        "snappy": compress("snappy", b"") + (len(snappy).to_bytes(4, "big") + snappy) * 1024,
        "lz4": compress("lz4", b"")[:7] + lz4 * 16384 + bytes(4),
        # One frame, a window of 128 KiB, 8192 blocks that repeat a byte 128 Ki times.
        "zstd": bytes.fromhex("28b52ffd 00 38")
        + (repeated | 2).to_bytes(4, "little") * 8191
        + (repeated | 3).to_bytes(4, "little"),
    }
    limit = 8 * MIB
    decompress("zstd", compress("zstd", zeros))  # loads what is loaded once
    gc.collect()
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 4 * limit, resource.RLIM_INFINITY))
    for codec, bomb in bombs.items():
        try:
            decompress(codec, bomb, limit)
            print(codec, "was unpacked")
        except CorruptRecordError as refused:
            print(codec, refused)
""")


@pytest.mark.skipif(sys.platform != "linux", reason="measures its address space in /proc")
def test_exploding_input_is_refused_within_a_small_memory_bound() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", EXPLODE], capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        f"{codec} the records decompress to more than the limit of {8 << 20} bytes"
        for codec in ("gzip", "snappy", "lz4", "zstd")
    ]
