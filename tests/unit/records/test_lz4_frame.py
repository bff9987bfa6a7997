"""LZ4 frames with every option that a reader must accept, and those that break."""

from __future__ import annotations

import cramjam
import pytest

from barnabas.model.errors import CorruptRecordError
from barnabas.records import lz4_frame
from barnabas.records.compression import compress, decompress

SAMPLE = b"".join(b"%d," % (i * i) for i in range(40_000))


def test_our_frame_is_javas() -> None:
    """Independent blocks of 64 KiB, no checksum, no content size."""
    frame = compress("lz4", SAMPLE)
    assert frame[:7] == b"\x04\x22\x4d\x18\x60\x40\x82"
    assert frame[-4:] == bytes(4)
    assert bytes(cramjam.lz4.decompress(frame)) == SAMPLE
    ((start, end, bound),) = lz4_frame.walk(memoryview(frame))
    assert (start, end) == (0, len(frame))
    assert len(SAMPLE) <= bound <= len(SAMPLE) + 65536


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("content_checksum", [True, False])
def test_frames_of_others(linked: bool, content_checksum: bool) -> None:
    compressor = cramjam.lz4.Compressor(
        level=4, content_checksum=content_checksum, block_linked=linked
    )
    compressor.compress(SAMPLE)
    frame = bytes(compressor.finish())
    assert decompress("lz4", frame + frame) == SAMPLE + SAMPLE
    with pytest.raises(CorruptRecordError, match="limit of"):
        decompress("lz4", frame, len(SAMPLE) - 1)


def with_header(flags: int, extra: bytes, blocks: bytes) -> bytes:
    header = lz4_frame.MAGIC + bytes([flags, 0x40]) + extra
    return lz4_frame.repair_header(header + b"\0" + blocks)


def test_content_size_and_block_checksums_are_accepted_and_checked() -> None:
    plain = compress("lz4", SAMPLE)
    sized = with_header(0x68, len(SAMPLE).to_bytes(8, "little"), plain[7:])
    assert decompress("lz4", sized) == SAMPLE
    wrong = with_header(0x68, (len(SAMPLE) + 1).to_bytes(8, "little"), plain[7:])
    with pytest.raises(CorruptRecordError):
        decompress("lz4", wrong)
    # xxHash32 of the stored block "a", seed 0, is 0x550d7456.
    checked = with_header(0x70, b"", b"\1\0\0\x80a" + 0x550D7456.to_bytes(4, "little") + bytes(4))
    assert decompress("lz4", checked) == b"a"
    with pytest.raises(CorruptRecordError):
        decompress("lz4", checked.replace(b"\x80a", b"\x80b"))


def test_the_header_checksum_is_checked_unless_it_is_known_to_be_wrong() -> None:
    frame = bytearray(compress("lz4", SAMPLE))
    frame[6] ^= 0xFF
    with pytest.raises(CorruptRecordError):
        decompress("lz4", frame)
    assert decompress("lz4", frame, old_lz4_checksum=True) == SAMPLE


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ("", "no frame"),
        ("04 22 4d 17 60 40 82 00 00 00 00", "wrong magic"),
        ("04 22 4d 18 60 40", "header is truncated"),
        ("04 22 4d 18 68 40 00 00 00 00 00 00 00 00", "header is truncated"),
        ("04 22 4d 18 60 40 82", "frame is truncated"),
        ("04 22 4d 18 60 40 82 05 00 00 00 00", "frame is truncated"),
        ("04 22 4d 18 64 40 a7 00 00 00 00", "frame is truncated"),
        ("04 22 4d 18 60 30 82 00 00 00 00", "unknown block size 3"),
        ("04 22 4d 18 60 40 82 00 00 00 00 00", "wrong magic"),
    ],
)
def test_broken_frames(frame: str, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        decompress("lz4", bytes.fromhex(frame))


@pytest.mark.parametrize("size", [0, 1, 500, lz4_frame.BLOCK_SIZE])
def test_the_usual_frame_is_known_by_its_one_block(size: int) -> None:
    data = b"ab" * (size // 2) + b"c" * (size % 2)
    packed = lz4_frame.write(memoryview(data), 9)
    block = lz4_frame.single_block(memoryview(packed))
    if size < 2:  # no block at all, or one that is stored
        assert block is None
    else:
        assert block == packed[11:-4]
    assert decompress("lz4", packed) == data


def test_other_frames_are_not_taken_for_it() -> None:
    packed = lz4_frame.write(memoryview(b"ab" * 500), 9)
    two_blocks = lz4_frame.write(memoryview(bytes(lz4_frame.BLOCK_SIZE + 1)), 9)
    for other in (packed[:-1], packed + packed, b"x" + packed[1:], two_blocks, packed[:14], b""):
        assert lz4_frame.single_block(memoryview(other)) is None
    assert decompress("lz4", packed + packed) == b"ab" * 1000
    assert decompress("lz4", two_blocks) == bytes(lz4_frame.BLOCK_SIZE + 1)


def test_a_damaged_block_is_refused() -> None:
    packed = lz4_frame.write(memoryview(b"ab" * 500), 9)
    with pytest.raises(CorruptRecordError, match="damaged lz4"):
        decompress("lz4", packed[:11] + b"\xff" * (len(packed) - 15) + packed[-4:])
