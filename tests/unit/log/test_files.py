"""The disk: positions, atomic replacement, missing files, refusals that name the path."""

import os

import pytest

from barnabas.log.files import DiskFiles
from barnabas.model.errors import StorageError


@pytest.fixture
def files() -> DiskFiles:
    return DiskFiles()


def test_reads_and_writes_go_to_explicit_positions(files, tmp_path):
    file = files.open(f"{tmp_path}/f", create=True)
    file.pwrite(b"hello", 3)
    assert file.pread(100, 0) == b"\0\0\0hello"
    assert file.pread(2, 4) == b"el"
    assert file.pread(5, 100) == b""
    buffer = bytearray(10)
    assert file.pread_into(buffer, 3) == 5
    assert buffer == b"hello\0\0\0\0\0"
    file.close()


def test_truncate_cuts_and_extends_with_zeros(files, tmp_path):
    file = files.open(f"{tmp_path}/f", create=True)
    file.pwrite(b"hello", 0)
    file.truncate(2)
    file.truncate(4)
    file.flush()
    assert file.pread(10, 0) == b"he\0\0"
    assert file.size() == 4
    assert file.fileno() is not None
    file.close()


def test_a_missing_file_is_an_answer(files, tmp_path):
    path = f"{tmp_path}/none"
    assert files.read(path) is None
    assert files.size(path) is None
    assert files.mtime_ms(path) is None
    assert files.unlink(path) is False
    assert files.flush_file(path) is False
    assert not files.exists(path)
    files.remove_tree(path)


def test_opening_what_is_not_there_names_operation_and_path(files, tmp_path):
    with pytest.raises(StorageError, match=r"open .*none") as caught:
        files.open(f"{tmp_path}/none")
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(StorageError, match=r"list .*none"):
        files.list(f"{tmp_path}/none")
    with pytest.raises(StorageError, match="rename"):
        files.rename(f"{tmp_path}/none", f"{tmp_path}/other")


def test_write_replaces_longer_content(files, tmp_path):
    path = f"{tmp_path}/f"
    files.write(path, b"long content")
    files.write(path, b"short")
    assert files.read(path) == b"short"
    assert files.size(path) == 5


@pytest.mark.parametrize("flush", [True, False])
def test_write_atomic_leaves_no_temporary_file(files, tmp_path, flush):
    path = f"{tmp_path}/f"
    files.write_atomic(path, b"one", flush=flush)
    files.write_atomic(path, b"two", flush=flush)
    assert files.read(path) == b"two"
    assert files.list(str(tmp_path)) == ["f"]


def test_directories(files, tmp_path):
    deep = f"{tmp_path}/a/b"
    files.make_dirs(deep)
    files.make_dirs(deep)
    assert files.is_dir(deep)
    files.write(f"{deep}/x", b"1")
    files.flush_dir(deep)
    files.rename(deep, f"{tmp_path}/c")
    assert files.list(f"{tmp_path}/c") == ["x"]
    files.remove_tree(f"{tmp_path}/c")
    assert files.list(str(tmp_path)) == ["a"]
    files.write(f"{tmp_path}/plain", b"")
    with pytest.raises(StorageError, match="a file of that name exists"):
        files.make_dirs(f"{tmp_path}/plain")


def test_a_lock_keeps_out_others_of_the_same_process(files, tmp_path):
    lock = files.lock(f"{tmp_path}/.lock")
    with pytest.raises(StorageError, match="another broker"):
        DiskFiles().lock(f"{tmp_path}/.lock")
    lock.release()
    files.lock(f"{tmp_path}/.lock").release()


def test_an_unlinked_file_stays_readable(files, tmp_path):
    path = f"{tmp_path}/f"
    file = files.open(path, create=True)
    file.pwrite(b"data", 0)
    assert files.unlink(path) is True
    assert file.pread(4, 0) == b"data"
    file.close()
    file.close()
    assert not os.path.exists(path)


def test_a_second_name_is_the_same_file(files, tmp_path):
    files.write(f"{tmp_path}/one", b"data")
    assert files.links(f"{tmp_path}/one") == 1
    files.link(f"{tmp_path}/one", f"{tmp_path}/two")
    assert files.links(f"{tmp_path}/two") == 2
    files.unlink(f"{tmp_path}/one")
    assert files.read(f"{tmp_path}/two") == b"data"
    assert files.links(f"{tmp_path}/one") == 0
    with pytest.raises(StorageError, match="two"):
        files.link(f"{tmp_path}/one", f"{tmp_path}/two")
