"""Whole batches in a buffer, whatever their size and the buffer's."""

import pytest

from barnabas.log.batch_reader import BatchReader
from barnabas.model.errors import CorruptRecordError
from barnabas.records.builder import build_batch


@pytest.fixture
def file(disk, tmp_path):
    def make(data: bytes):
        disk.write(f"{tmp_path}/f", data)
        return disk.open(f"{tmp_path}/f")

    return make


@pytest.mark.parametrize("buffer_bytes", [0, 61, 100, 200, 5000])
def test_every_batch_is_met_once(file, buffer_bytes):
    batches = [build_batch([(0, b"k", b"v" * n)], base_offset=n) for n in (0, 300, 5, 90, 0, 700)]
    data = b"".join(batches)
    reader = BatchReader(file(data), 0, len(data), buffer_bytes)
    found = []
    while not reader.done:
        header = reader.whole()
        if header is None:
            reader.fill()
        else:
            found.append(bytes(reader.buffer[reader.at : reader.at + header.size]))
            reader.at += header.size
    assert found == batches


def test_a_torn_end_is_an_error(file):
    data = build_batch([(0, b"k", b"v" * 90)])
    reader = BatchReader(file(data), 0, len(data) - 1, 100)
    reader.fill()
    assert reader.whole() is None
    with pytest.raises(CorruptRecordError, match="unfinished"):
        reader.fill()
    short = BatchReader(file(data[:-1]), 0, len(data), 100)
    short.fill()
    with pytest.raises(CorruptRecordError, match="early"):
        short.fill()
