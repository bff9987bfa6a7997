"""The walk over a segment file: every good entry, and exactly the damage in between."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.unit.spark.segments import batch, segment

from barnabas.kernels import Record
from barnabas.records.legacy import encode_message
from barnabas.spark.logfiles.walk import Entry, Flaw, LogFile, entry_at, walk, walk_headers


def walked(path: Path, base: int = 0) -> list[Entry | Flaw]:
    with LogFile(str(path)) as file:
        return list(walk(file, 0, file.size, base))


def offsets(found: list[Entry | Flaw]) -> list[int]:
    return [each.header.base_offset for each in found if isinstance(each, Entry) and each.header]


def flaws(found: list[Entry | Flaw]) -> list[Flaw]:
    return [each for each in found if isinstance(each, Flaw)]


BATCHES = [batch(number * 2, b"v" * (number + 1), b"w") for number in range(6)]
PLACES = [sum(map(len, BATCHES[:number])) for number in range(7)]


def test_good_entries_come_with_their_positions_and_bytes(tmp_path: Path) -> None:
    found = walked(segment(tmp_path, "t-0", 0, *BATCHES))
    assert flaws(found) == []
    assert [each.position for each in found] == PLACES[:-1]
    for each, expected in zip(found, BATCHES, strict=True):
        assert isinstance(each, Entry)
        assert each.buffer[each.at : each.at + each.size] == expected


@pytest.mark.parametrize("number", range(6))
def test_a_changed_byte_costs_one_batch(tmp_path: Path, number: int) -> None:
    damaged = bytearray(BATCHES[number])
    damaged[70] ^= 0x10
    parts = [*BATCHES[:number], bytes(damaged), *BATCHES[number + 1 :]]
    found = walked(segment(tmp_path, "t-0", 0, *parts))
    [flaw] = flaws(found)
    assert (flaw.position, flaw.size) == (PLACES[number], len(BATCHES[number]))
    assert "CRC" in flaw.what
    assert not flaw.unfinished
    assert offsets(found) == [2 * each for each in range(6) if each != number]


@pytest.mark.parametrize("length", [0, 7, 2**31 - 1, -5])
def test_after_a_wrong_size_the_next_batch_is_found(tmp_path: Path, length: int) -> None:
    damaged = bytearray(BATCHES[2])
    damaged[8:12] = length.to_bytes(4, "big", signed=True)
    found = walked(segment(tmp_path, "t-0", 0, *BATCHES[:2], bytes(damaged), *BATCHES[3:]))
    [flaw] = flaws(found)
    assert (flaw.position, flaw.size) == (PLACES[2], len(BATCHES[2]))
    assert not flaw.unfinished
    assert offsets(found) == [0, 2, 6, 8, 10]


def test_garbage_between_batches_is_told_with_its_place(tmp_path: Path) -> None:
    noise = random.Random(5).randbytes(3_000_000)  # more than one search window
    found = walked(segment(tmp_path, "t-0", 0, BATCHES[0], noise, BATCHES[1]))
    assert offsets(found) == [0, 2]
    assert [(each.position, each.size) for each in flaws(found)] == [(PLACES[1], len(noise))]


@pytest.mark.parametrize("cut", [8, 11, 16, 17, 60, 70])
def test_a_torn_tail_is_unfinished(tmp_path: Path, cut: int) -> None:
    found = walked(segment(tmp_path, "t-0", 0, *BATCHES[:3], BATCHES[3][:cut]))
    [flaw] = flaws(found)
    assert (flaw.position, flaw.size, flaw.unfinished) == (PLACES[3], cut, True)
    assert offsets(found) == [0, 2, 4]


def test_zeros_at_the_end_are_no_damage(tmp_path: Path) -> None:
    found = walked(segment(tmp_path, "t-0", 0, *BATCHES, bytes(5000)))
    assert flaws(found) == []
    assert offsets(found) == [0, 2, 4, 6, 8, 10]


def test_zeros_in_the_middle_are_damage(tmp_path: Path) -> None:
    found = walked(segment(tmp_path, "t-0", 0, BATCHES[0], bytes(5000), BATCHES[1]))
    assert [(each.position, each.size) for each in flaws(found)] == [(PLACES[1], 5000)]
    assert offsets(found) == [0, 2]


def test_messages_of_older_formats_are_entries_too(tmp_path: Path) -> None:
    old = [encode_message(Record(5 + n, 7, b"k", b"v%d" % n), n) for n in (0, 1)]
    found = walked(segment(tmp_path, "t-0", 5, *old, batch(7, b"new")), 5)
    assert flaws(found) == []
    assert [isinstance(each, Entry) and each.header is None for each in found] == [
        True,
        True,
        False,
    ]
    broken = bytearray(old[0])
    broken[-1] ^= 1
    [flaw] = flaws(walked(segment(tmp_path, "t-0", 5, bytes(broken), old[1]), 5))
    assert (flaw.position, flaw.size) == (0, len(old[0]))


def test_offsets_beyond_four_billion_are_found_after_damage(tmp_path: Path) -> None:
    base = 2**32 - 1  # the next batch's offset differs from it in the upper half
    parts = [batch(base, b"a"), b"?" * 40, batch(base + 1, b"b")]
    found = walked(segment(tmp_path, "t-0", base, *parts), base)
    assert offsets(found) == [base, base + 1]


def test_batches_larger_than_a_chunk_are_read_whole(tmp_path: Path) -> None:
    big = batch(2, os.urandom(9_000_000))
    found = walked(segment(tmp_path, "t-0", 0, BATCHES[0], big, batch(3, b"end")))
    assert offsets(found) == [0, 2, 3]
    assert flaws(found) == []


def test_headers_are_walked_without_the_records(tmp_path: Path) -> None:
    parts = [BATCHES[0], batch(2, bytes(100_000)), b"noise" * 20, batch(3, b"x"), BATCHES[2][:30]]
    with LogFile(str(segment(tmp_path, "t-0", 0, *parts))) as file:
        found = list(walk_headers(file, 0))
    assert [each.header.base_offset for each in found if each.header] == [0, 2, 3]


def test_an_entry_is_only_where_one_begins(tmp_path: Path) -> None:
    with LogFile(str(segment(tmp_path, "t-0", 0, *BATCHES))) as file:
        found = entry_at(file, PLACES[3], file.size)
        assert found is not None
        assert found.header is not None
        assert found.header.base_offset == 6
        assert entry_at(file, PLACES[3] + 1, file.size) is None
        assert entry_at(file, PLACES[3], PLACES[4] - 1) is None


def test_files_are_opened_for_reading_only(tmp_path: Path) -> None:
    path = segment(tmp_path, "t-0", 0, *BATCHES)
    path.chmod(0o400)
    before = path.stat()
    assert len(walked(path)) == 6
    assert path.stat().st_mtime_ns == before.st_mtime_ns
