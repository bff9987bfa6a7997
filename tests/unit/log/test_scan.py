"""Walks over batches find each one once, whatever the size of the chunks that are read."""

import pytest

from barnabas.log.files import DiskFiles
from barnabas.log.scan import HEADER_CHUNK, CheckedWalk, check_batches, headers
from barnabas.model.errors import CorruptRecordError
from barnabas.records.builder import build_batch

NOW = 1_700_000_000_000
SIZES = [0, 10, 40_000, 5, 70_000, 1, 1, 1, 200_000, 3]


@pytest.fixture
def filled(tmp_path):
    """A file of batches of very different sizes, with their positions and the end."""
    places, data = [], bytearray()
    for offset, size in enumerate(SIZES):
        places.append(len(data))
        data += build_batch([(NOW, b"k", b"v" * size)], base_offset=offset)
    file = DiskFiles().open(f"{tmp_path}/f", create=True)
    file.pwrite(data, 0)
    yield file, places, bytes(data)
    file.close()


def test_headers_of_all_batches(filled):
    file, places, data = filled
    assert max(SIZES) > HEADER_CHUNK
    found = list(headers(file, 0, len(data)))
    assert [position for position, _ in found] == places
    assert [header.base_offset for _, header in found] == list(range(len(SIZES)))
    assert [p for p, _ in headers(file, places[4], len(data))] == places[4:]
    assert [p for p, _ in headers(file, 0, places[3] + 10)] == places[:3]


def test_headers_refuse_what_is_no_batch(filled):
    file, _, data = filled
    with pytest.raises(CorruptRecordError):
        list(headers(file, 3, len(data)))


@pytest.mark.parametrize("chunk", [61, 100, 5000, 1 << 22])
def test_the_checked_walk_has_each_batch_at_hand(filled, chunk):
    file, places, data = filled
    walk = CheckedWalk(file, 0, len(data), chunk)
    for number, (position, header) in enumerate(walk):
        assert position == places[number]
        size = header.size
        assert walk.buffer[walk.start : walk.start + size] == data[position : position + size]
    assert (walk.position, walk.flaw) == (len(data), None)
    assert number == len(SIZES) - 1


@pytest.mark.parametrize("victim", range(len(SIZES)))
def test_the_checked_walk_stops_before_a_damaged_batch(filled, victim):
    file, places, data = filled
    file.pwrite(bytes([data[places[victim] + 61] ^ 1]), places[victim] + 61)
    walk = CheckedWalk(file, 0, len(data), 1000)
    assert [position for position, _ in walk] == places[:victim]
    assert walk.position == places[victim]
    assert "CRC" in walk.flaw


def test_batches_in_memory_must_go_on_from_the_expected_offset(filled):
    _, _, data = filled
    batches, size = check_batches(data + data[:50], 0)
    assert (len(batches), size) == (len(SIZES), len(data))
    assert check_batches(b"", 0) == ([], 0)
    with pytest.raises(CorruptRecordError, match="offset 0"):
        check_batches(data, 1)
