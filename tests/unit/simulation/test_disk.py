"""The simulated disk does what the real one does, and loses in a crash what the contract allows."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.log.files import DiskFiles, Files
from barnabas.model.errors import StorageError
from barnabas.simulation.disk import SimulatedDisk

SEEDS = range(200)


def simulated(seed: int = 1) -> SimulatedDisk:
    return SimulatedDisk(Random(seed), lambda: 1_700_000_000_000)


@pytest.fixture(params=["simulated", "real"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, str]:
    """A disk and an empty directory on it."""
    if request.param == "real":
        return DiskFiles(), str(tmp_path)
    files = simulated()
    files.make_dirs("/data")
    return files, "/data"


def test_the_type_is_that_of_files():
    files: Files = simulated()
    files.write("/a", b"x")
    assert files.read("/a") == b"x"


def test_a_file_is_read_and_written_at_positions(disk):
    files, folder = disk
    file = files.open(f"{folder}/f", create=True)
    assert file.path == f"{folder}/f"
    file.pwrite(b"hello", 3)
    assert file.size() == 8
    assert file.pread(100, 0) == b"\0\0\0hello"
    assert file.pread(2, 4) == b"el"
    assert file.pread(2, 50) == b""
    buffer = bytearray(4)
    assert file.pread_into(buffer, 5) == 3
    assert buffer == b"llo\0"
    file.truncate(4)
    assert file.pread(9, 0) == b"\0\0\0h"
    file.truncate(6)
    assert file.pread(9, 0) == b"\0\0\0h\0\0"
    file.pwrite(memoryview(b"xyz"), 1)
    file.pwrite(bytearray(b"!"), 6)
    file.flush()
    assert files.read(f"{folder}/f") == b"\0xyz\0\0!"
    assert files.size(f"{folder}/f") == 7
    assert files.flush_file(f"{folder}/f")
    file.close()
    with pytest.raises(StorageError):
        file.pread(1, 0)
    file.close()


def test_names_come_and_go(disk):
    files, folder = disk
    files.make_dirs(f"{folder}/a/b")
    files.make_dirs(f"{folder}/a/b")
    files.write(f"{folder}/a/two", b"2")
    files.write(f"{folder}/a/one", b"1")
    assert files.list(f"{folder}/a") == ["b", "one", "two"]
    assert files.is_dir(f"{folder}/a/b")
    assert not files.is_dir(f"{folder}/a/one")
    files.rename(f"{folder}/a/one", f"{folder}/a/two")
    assert files.read(f"{folder}/a/two") == b"1"
    assert not files.exists(f"{folder}/a/one")
    files.rename(f"{folder}/a", f"{folder}/renamed")
    assert files.list(folder) == ["renamed"]
    assert files.unlink(f"{folder}/renamed/two")
    assert not files.unlink(f"{folder}/renamed/two")
    files.write_atomic(f"{folder}/renamed/meta", b"old")
    files.write_atomic(f"{folder}/renamed/meta", b"new", flush=False)
    assert files.list(f"{folder}/renamed") == ["b", "meta"]
    assert files.read(f"{folder}/renamed/meta") == b"new"
    files.remove_tree(f"{folder}/renamed")
    files.remove_tree(f"{folder}/renamed")
    assert files.list(folder) == []


def test_what_is_missing_is_an_answer_or_a_storage_error(disk):
    files, folder = disk
    nothing = f"{folder}/nothing"
    assert files.read(nothing) is None
    assert files.size(nothing) is None
    assert files.mtime_ms(nothing) is None
    assert not files.flush_file(nothing)
    assert not files.exists(nothing)
    for call in (files.open, files.list, files.flush_dir):
        with pytest.raises(StorageError, match="nothing"):
            call(nothing)
    with pytest.raises(StorageError):
        files.open(f"{nothing}/deep", create=True)
    with pytest.raises(StorageError):
        files.rename(nothing, f"{folder}/other")


def test_a_rename_cannot_mix_files_and_directories(disk):
    files, folder = disk
    files.make_dirs(f"{folder}/full/x")
    files.make_dirs(f"{folder}/empty")
    files.write(f"{folder}/file", b"x")
    for source, target in [("file", "full"), ("full", "file"), ("empty", "full")]:
        with pytest.raises(StorageError):
            files.rename(f"{folder}/{source}", f"{folder}/{target}")
    files.rename(f"{folder}/file", f"{folder}/file")
    assert files.list(folder) == ["empty", "file", "full"]
    with pytest.raises(StorageError):
        files.make_dirs(f"{folder}/file")


def test_an_unlinked_file_stays_readable_while_open(disk):
    files, folder = disk
    files.write(f"{folder}/f", b"kept")
    file = files.open(f"{folder}/f")
    files.unlink(f"{folder}/f")
    assert file.pread(10, 0) == b"kept"
    files.write(f"{folder}/f", b"another")
    assert file.pread(10, 0) == b"kept"
    file.close()


def test_a_lock_is_held_once(disk):
    files, folder = disk
    lock = files.lock(f"{folder}/.lock")
    with pytest.raises(StorageError, match=r"cannot lock .*\.lock"):
        files.lock(f"{folder}/.lock")
    lock.release()
    files.lock(f"{folder}/.lock").release()
    assert files.exists(f"{folder}/.lock")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("pwrite"), st.binary(max_size=20), st.integers(0, 30)),
            st.tuples(st.just("truncate"), st.integers(0, 40)),
        ),
        max_size=15,
    )
)
def test_any_edits_give_what_the_real_disk_gives(tmp_path_factory, edits):
    real = DiskFiles().open(str(tmp_path_factory.mktemp("disk") / "f"), create=True)
    simulation = simulated().open("/f", create=True)
    for name, *args in edits:
        for file in (real, simulation):
            getattr(file, name)(*args)
        assert simulation.size() == real.size()
        assert simulation.pread(100, 0) == real.pread(100, 0)
    real.close()


# Crashes


def test_flushed_bytes_with_flushed_names_always_survive():
    for seed in SEEDS:
        disk = simulated(seed)
        disk.make_dirs("/a/b")
        for folder in ("/", "/a"):
            disk.flush_dir(folder)
        file = disk.open("/a/b/log", create=True)
        disk.flush_dir("/a/b")
        file.pwrite(b"durable", 0)
        file.flush()
        file.pwrite(b"lost?", 7)
        disk.crash()
        content = disk.read("/a/b/log")
        assert content is not None
        assert content.startswith(b"durable")
        disk.crash()
        assert disk.read("/a/b/log") == content, "what a crash left is on the platter"


def test_unflushed_writes_may_stay_be_torn_or_go():
    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        file = disk.open("/f", create=True)
        disk.flush_dir("/")
        file.pwrite(b"aa", 0)
        file.pwrite(b"bb", 2)
        file.pwrite(b"cc", 4)
        assert disk.read("/f") == b"aabbcc", "visible at once"
        disk.crash()
        outcomes.add(disk.read("/f"))
    assert {b"", b"a", b"aa", b"aab", b"aabb", b"aabbc", b"aabbcc"} <= outcomes
    assert b"\0\0bb" in outcomes, "pages may be written back in any order"


def test_unflushed_truncation_may_be_undone():
    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        disk.write_atomic("/f", b"123456")
        disk.open("/f").truncate(2)
        disk.crash()
        outcomes.add(disk.read("/f"))
    assert outcomes == {b"123456", b"12"}


def test_an_unflushed_name_may_be_lost_even_when_the_bytes_were_flushed():
    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        file = disk.open("/f", create=True)
        file.pwrite(b"x", 0)
        file.flush()
        disk.crash()
        outcomes.add(disk.read("/f"))
    assert outcomes == {None, b"x"}


def test_a_flushed_atomic_write_is_old_or_new_and_never_mixed():
    for seed in SEEDS:
        disk = simulated(seed)
        disk.write_atomic("/f", b"old old old")
        disk.write_atomic("/f", b"new")
        disk.crash()
        assert disk.read("/f") == b"new"

    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        disk.write_atomic("/f", b"old old old")
        disk.inject("/", operations=["flush_dir"])
        with pytest.raises(StorageError):
            disk.write_atomic("/f", b"new")
        disk.crash()
        outcomes.add(disk.read("/f"))
    assert outcomes == {b"old old old", b"new"}


def test_a_rename_happens_whole_or_not_at_all():
    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        disk.make_dirs("/from")
        disk.make_dirs("/to")
        disk.flush_dir("/")
        disk.write_atomic("/from/f", b"x")
        disk.rename("/from/f", "/to/g")
        disk.crash()
        outcomes.add((disk.read("/from/f"), disk.read("/to/g")))
    assert outcomes == {(b"x", None), (None, b"x")}


def test_flushing_either_directory_makes_a_rename_survive():
    for seed in SEEDS:
        for flushed in ("/from", "/to"):
            disk = simulated(seed)
            disk.make_dirs("/from")
            disk.make_dirs("/to")
            disk.flush_dir("/")
            file = disk.open("/from/f", create=True)
            file.pwrite(b"x", 0)
            file.flush()
            disk.rename("/from/f", "/to/g")
            disk.flush_dir(flushed)
            disk.crash()
            assert disk.read("/to/g") == b"x"
            assert disk.list("/from") == []


def test_unlinks_and_directories_are_names_too():
    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        disk.write_atomic("/old", b"x")
        disk.unlink("/old")
        disk.make_dirs("/new")
        disk.write_atomic("/new/f", b"y")
        disk.crash()
        outcomes.add((disk.exists("/old"), disk.exists("/new"), disk.read("/new/f")))
    assert outcomes == {
        (old, new, b"y" if new else None) for old in (True, False) for new in (True, False)
    }


def test_no_crash_leaves_one_file_under_two_names():
    for seed in SEEDS:
        disk = simulated(seed)
        disk.make_dirs("/a")
        disk.write("/a/f", b"x")
        disk.rename("/a", "/b")
        disk.rename("/b", "/c")
        disk.rename("/c/f", "/c/g")
        disk.crash()
        assert len(disk.list("/")) <= 1
        for folder in disk.list("/"):
            assert len(disk.list(f"/{folder}")) <= 1


def test_a_killed_process_loses_nothing_but_its_locks_and_open_files():
    disk = simulated()
    lock = disk.lock("/.lock")
    file = disk.open("/f", create=True)
    file.pwrite(b"in the page cache", 0)
    disk.kill()
    assert disk.read("/f") == b"in the page cache"
    second = disk.lock("/.lock")
    lock.release()
    with pytest.raises(StorageError):
        disk.lock("/.lock")
    second.release()
    for call in (lambda: file.pwrite(b"zombie", 0), lambda: file.pread(1, 0), file.flush):
        with pytest.raises(StorageError, match="closed"):
            call()
    assert disk.read("/f") == b"in the page cache"


def test_locks_are_free_after_a_crash():
    disk = simulated()
    disk.lock("/.lock")
    disk.crash()
    disk.lock("/.lock").release()


def test_one_seed_gives_one_crash():
    def left(seed: int) -> list[tuple[str, bytes | None]]:
        disk = simulated(seed)
        for number in range(20):
            disk.write(f"/f{number}", bytes([number]) * number)
        disk.crash()
        return [(name, disk.read(f"/{name}")) for name in disk.list("/")]

    assert left(4) == left(4)
    assert len({str(left(seed)) for seed in range(10)}) > 5


# Faults


def test_injected_faults_name_the_operation_and_the_path():
    disk = simulated()
    disk.make_dirs("/logs/t-0")
    file = disk.open("/logs/t-0/0.log", create=True)
    fault = disk.inject("/logs/*.log", errno.EIO, operations=["flush"])
    file.pwrite(b"x", 0)
    with pytest.raises(
        StorageError, match=r"cannot flush /logs/t-0/0\.log: Input/output"
    ) as caught:
        file.flush()
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.EIO
    disk.faults.remove(fault)
    file.flush()


def test_a_full_disk_may_leave_a_part_of_the_write():
    sizes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        file = disk.open("/f", create=True)
        disk.inject("/f", errno.ENOSPC, ["pwrite"], count=1)
        with pytest.raises(StorageError, match="No space left"):
            file.pwrite(b"abcd", 0)
        left = disk.read("/f")
        assert b"abcd".startswith(left)
        sizes.add(len(left))
        file.pwrite(b"abcd", 0)
        assert disk.read("/f") == b"abcd"
    assert sizes == {0, 1, 2, 3, 4}


def test_a_disk_has_a_size():
    disk = SimulatedDisk(Random(1), lambda: 0, capacity_bytes=100)
    disk.make_dirs("/a")
    assert disk.space("/a") == (100, 100)
    file = disk.open("/a/f", create=True)
    file.pwrite(bytes(60), 0)
    file.pwrite(bytes(60), 0)
    assert disk.space("/a") == (100, 40)
    with pytest.raises(StorageError, match="No space left"):
        file.pwrite(bytes(60), 50)
    file.truncate(10)
    assert disk.space("/") == (100, 90)
    disk.write("/a/g", bytes(50))
    disk.unlink("/a/f")
    assert disk.space("/") == (100, 50)
    disk.crash()
    assert disk.space("/") == (100, 100 - (disk.size("/a/f") or 0) - (disk.size("/a/g") or 0))
    with pytest.raises(StorageError, match="nowhere"):
        disk.space("/nowhere")


def test_a_failed_flush_promises_nothing():
    outcomes = set()
    for seed in SEEDS:
        disk = simulated(seed)
        file = disk.open("/f", create=True)
        disk.flush_dir("/")
        file.pwrite(b"x", 0)
        disk.inject("/f", operations=["flush"], count=1)
        with pytest.raises(StorageError):
            file.flush()
        disk.crash()
        outcomes.add(disk.read("/f"))
    assert outcomes == {b"", b"x"}


def test_a_link_is_a_second_name_of_the_same_bytes(disk):
    files, root = disk
    files.write(f"{root}/one", b"data")
    files.link(f"{root}/one", f"{root}/two")
    assert files.links(f"{root}/one") == files.links(f"{root}/two") == 2
    file = files.open(f"{root}/one")
    file.pwrite(b"more", 4)
    file.close()
    assert files.read(f"{root}/two") == b"datamore"
    files.unlink(f"{root}/one")
    assert files.read(f"{root}/two") == b"datamore"
    assert (files.links(f"{root}/one"), files.links(f"{root}/two")) == (0, 1)
    for source, target in (("one", "three"), ("two", "two")):
        with pytest.raises(StorageError):
            files.link(f"{root}/{source}", f"{root}/{target}")


def test_linked_bytes_are_counted_and_crash_once():
    disk = simulated()
    disk.make_dirs("/d")
    disk.flush_dir("/")
    disk.write("/d/one", b"12345")
    disk.link("/d/one", "/d/two")
    disk.flush_dir("/d")
    disk.unlink("/d/none")
    disk.crash()
    assert disk.read("/d/one") == disk.read("/d/two")
    assert disk.used_bytes == len(disk.read("/d/one") or b"")


def test_a_flipped_bit_stays_flipped():
    disk = simulated()
    disk.write("/a", b"\0\0\0")
    disk.flush_dir("/")
    disk.flip("/a", 1, 3)
    assert disk.read("/a") == b"\0\x08\0"
    disk.crash()
    assert disk.read("/a") == b"\0\x08\0"
    with pytest.raises(StorageError):
        disk.flip("/b", 0)


def test_every_operation_can_be_watched():
    disk = simulated()
    seen: list[tuple[str, str]] = []
    disk.before = lambda operation, path: seen.append((operation, path))
    disk.write_atomic("/a", b"x")
    assert seen == [
        ("write_atomic", "/a"),
        ("truncate", "/a.tmp"),
        ("pwrite", "/a.tmp"),
        ("flush", "/a.tmp"),
        ("rename", "/a.tmp"),
        ("rename", "/a"),
        ("flush_dir", "/"),
    ]
