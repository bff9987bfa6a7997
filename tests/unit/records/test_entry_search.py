"""Entries in damaged bytes: sizes that are possible, zeros, places where one may begin."""

from __future__ import annotations

from barnabas.records.builder import build_batch
from barnabas.records.entry_search import (
    CHUNK_BYTES,
    START_SIZE,
    Read,
    chunks,
    entry_size,
    is_zero,
    possible_entries,
)

BATCH = build_batch([(1_700_000_000_000, b"k", b"v")], base_offset=5 << 32)


def reading(data: bytes) -> Read:
    return lambda size, position: data[position : position + size]


def test_the_size_of_an_entry_is_possible_or_none() -> None:
    assert entry_size(BATCH) == len(BATCH)
    assert entry_size(b"xx" + BATCH, 2) == len(BATCH)
    assert entry_size(BATCH[:8] + bytes(4) + BATCH[12:]) is None, "smaller than a header"
    assert entry_size(BATCH[:16] + b"\3" + BATCH[17:]) is None, "an unknown magic"


def test_a_stretch_is_read_in_chunks_up_to_the_end_of_the_file() -> None:
    data = bytes(CHUNK_BYTES + 10)
    assert [(at, len(piece)) for at, piece in chunks(reading(data), 5, len(data) + 99)] == [
        (5, CHUNK_BYTES),
        (CHUNK_BYTES + 5, 5),
    ]


def test_zeros_up_to_the_end() -> None:
    data = b"x" + bytes(CHUNK_BYTES + 5)
    assert is_zero(reading(data), 1, len(data))
    assert is_zero(reading(data), 9, 9)
    assert not is_zero(reading(data), 0, len(data))
    assert not is_zero(reading(data), 1, len(data) + 1), "the file is shorter"


def test_entries_are_found_at_any_place_also_across_chunks() -> None:
    for before in (0, 1, CHUNK_BYTES - START_SIZE + 1, CHUNK_BYTES - 1):
        data = b"\xff" * before + BATCH
        assert before in possible_entries(reading(data), 0, len(data), 5 << 32)
        assert before in possible_entries(reading(data), 0, len(data), (5 << 32) - 1)
    assert list(possible_entries(reading(BATCH), 0, len(BATCH), 9 << 32)) == []
    assert list(possible_entries(reading(BATCH[:16]), 0, len(BATCH), 5 << 32)) == []
