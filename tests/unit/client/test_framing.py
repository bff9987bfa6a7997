"""Frames come out whole, in order and owned by the caller, however the bytes arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.framing import FrameReader
from barnabas.model.errors import RemoteProtocolError


def feed(reader: FrameReader, data: bytes, step: int) -> list[bytes]:
    """Give bytes in pieces of at most `step`, as a socket would."""
    frames: list[bytes] = []
    while data:
        target = reader.target()
        count = min(step, len(target), len(data))
        assert count > 0
        target[:count] = data[:count]
        data = data[count:]
        frames += map(bytes, reader.received(count))
    return frames


@given(
    sizes=st.lists(
        st.sampled_from([0, 1, 3, 100, 5_000, 40_000, 65_530, 70_000, 200_000]), max_size=8
    ),
    step=st.sampled_from([1_000, 4_096, 65_536, 1_000_000]),
)
def test_frames_come_out_as_they_went_in(sizes: list[int], step: int) -> None:
    frames = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    assert feed(FrameReader(1 << 20), data, step) == frames


def test_bytes_arriving_one_by_one_make_a_frame() -> None:
    assert feed(FrameReader(100), b"\0\0\0\3abc\0\0\0\0\0\0\0\1d", 1) == [b"abc", b"", b"d"]


def test_an_earlier_frame_is_not_touched_by_later_reads() -> None:
    reader = FrameReader(100)
    reader.target()[:7] = b"\0\0\0\3abc"
    [first] = reader.received(7)
    reader.target()[:7] = b"\0\0\0\3xyz"
    [second] = reader.received(7)
    assert (bytes(first), bytes(second)) == (b"abc", b"xyz")


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\0\0\0\x65"])
def test_an_impossible_size_is_refused_before_memory_is_taken(size: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="must be at most 100"):
        feed(FrameReader(100), size, 4)
