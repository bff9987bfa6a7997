"""A slice can be read until it is released, whatever happens to its segment."""

import os

NOW = 1_700_000_000_000


def test_bytes_and_a_descriptor_give_the_same(open_log, batch):
    log = open_log()
    for _ in range(3):
        log.append_as_leader(batch(), 0, NOW)
    piece = log.read(1, 10_000)
    data = piece.read()
    assert len(piece) == len(data) == piece.size
    assert os.pread(piece.fileno(), piece.size, piece.position) == data
    piece.release()
    piece.release()
    assert piece.fileno() is None
    assert piece.read() == b""


def test_an_empty_slice_holds_nothing(open_log):
    piece = open_log().read(0, 100)
    assert (piece.size, piece.read(), piece.fileno()) == (0, b"", None)
    piece.release()


def test_a_slice_outlives_its_segment(open_log, batch, pool):
    log = open_log(segment_bytes=200)
    for _ in range(6):
        log.append_as_leader(batch(), 0, NOW)
    piece = log.read(4, 1000)
    expected = piece.read()
    log.truncate_to(1, NOW)
    assert piece.read() == expected
    piece.release()


def test_a_pinned_file_is_not_evicted(open_log, batch, pool):
    pool.limit = 1
    log = open_log(segment_bytes=200)
    for _ in range(6):
        log.append_as_leader(batch(), 0, NOW)
    pieces = [log.read(offset, 100) for offset in range(6)]
    assert all(len(piece.read()) == piece.size for piece in pieces)
    for piece in pieces:
        piece.release()
    log.read(0, 100).release()
    assert pool.open_count >= 1
