"""Zstandard frames: the walk that bounds the output before anything is unpacked."""

from __future__ import annotations

import cramjam
import pytest

from barnabas.model.errors import CorruptRecordError
from barnabas.records import zstd_frame
from barnabas.records.compression import compress, decompress

SAMPLE = b"".join(b"%d," % (i * i) for i in range(60_000))


def bound_of(frame: bytes) -> int:
    return sum(bound for _, _, bound in zstd_frame.walk(memoryview(frame)))


@pytest.mark.parametrize("level", [-7, 1, 3, 19])
@pytest.mark.parametrize("data", [b"", b"x", bytes(1_000_000), SAMPLE, SAMPLE[:300]])
def test_the_bound_is_never_too_small(level: int, data: bytes) -> None:
    one_shot = compress("zstd", data, level)
    compressor = cramjam.zstd.Compressor(level)
    flushed = b""
    for start in range(0, len(data), 50_000):
        compressor.compress(data[start : start + 50_000])
        flushed += bytes(compressor.flush())
    for frame in (one_shot, flushed + bytes(compressor.finish())):
        assert len(data) <= bound_of(frame)
        assert decompress("zstd", frame, len(data)) == data


def test_a_streamed_frame_has_no_content_size_and_is_read() -> None:
    compressor = cramjam.zstd.Compressor(3)
    compressor.compress(SAMPLE)
    frame = bytes(compressor.finish())
    assert not frame[4] & 0xE0  # neither single segment nor content size
    assert decompress("zstd", frame) == SAMPLE


@pytest.mark.parametrize("size", [0, 200, 256, 60_000, 70_000, 1_000_000])
def test_a_stated_content_size_is_the_bound_and_must_be_kept(size: int) -> None:
    """One, two and four bytes of it, the two counted from 256 on."""
    frame = bytearray(compress("zstd", SAMPLE[:100] + bytes(size)))
    assert bound_of(frame) == 100 + size
    frame[5] ^= 1
    with pytest.raises(CorruptRecordError):
        decompress("zstd", frame)


def test_skippable_frames_are_passed_over() -> None:
    skipped = b"\x53\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"any"
    assert decompress("zstd", skipped + compress("zstd", b"a") + skipped) == b"a"
    with pytest.raises(CorruptRecordError, match="no frame"):
        decompress("zstd", skipped)
    with pytest.raises(CorruptRecordError, match="frame is truncated"):
        decompress("zstd", compress("zstd", b"a") + skipped[:-1])


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("", "no frame"),
        ("28 b5 2f", "wrong magic"),
        ("28 b5 2f fd", "header is truncated"),
        ("28 b5 2f fd 00 38", "frame is truncated"),
        ("28 b5 2f fd 00 38 09 00 00", "frame is truncated"),  # a raw block of one byte, not there
        ("28 b5 2f fd 04 38 01 00 00", "frame is truncated"),  # a checksum that is not there
        ("28 b5 2f fd 00 38 07 00 00", "reserved type"),
    ],
)
def test_broken_frames(frame: str, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decompress("zstd", bytes.fromhex(frame))
