"""Open files are bounded; pinned ones stay."""

import pytest

from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles


@pytest.fixture
def pool(tmp_path):
    for index in range(6):
        (tmp_path / str(index)).write_bytes(str(index).encode())
    return FilePool(DiskFiles(), limit=3)


def handles(pool, tmp_path):
    return [pool.file(f"{tmp_path}/{index}") for index in range(6)]


def test_at_most_limit_files_are_open_and_each_can_be_read_again(pool, tmp_path):
    files = handles(pool, tmp_path)
    assert pool.open_count == 0
    for _ in range(3):
        for index, file in enumerate(files):
            assert file.get().pread(1, 0) == str(index).encode()
            assert pool.open_count <= 3


def test_a_pinned_file_is_not_closed(pool, tmp_path):
    files = handles(pool, tmp_path)
    pinned = files[0].pin()
    for file in files[1:]:
        file.get()
    assert pinned.pread(1, 0) == b"0"
    files[0].unpin()
    for file in files[1:] * 2:
        file.get()
    assert pool.open_count == 3
    assert files[0].pins == 0


def test_when_all_are_pinned_the_limit_gives_way(pool, tmp_path):
    files = handles(pool, tmp_path)
    opened = [file.pin() for file in files]
    assert pool.open_count == 6
    assert [file.pread(1, 0) for file in opened] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_recently_used_files_stay_open(pool, tmp_path):
    files = handles(pool, tmp_path)
    hot = files[0].get()
    for file in files[1:]:
        file.get()
        files[0].get()
    assert files[0].get() is hot


def test_closing_a_pinned_file_waits_for_the_reader(pool, tmp_path):
    file = handles(pool, tmp_path)[0]
    opened = file.pin()
    file.close()
    assert pool.open_count == 0
    assert opened.pread(1, 0) == b"0"
    file.unpin()
    assert opened.fileno() == -1
    with pytest.raises(AssertionError, match="was closed"):
        file.get()
