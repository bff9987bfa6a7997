"""After a crash the log is what was whole on the disk: torn tails cut, everything else rebuilt."""

import logging
from random import Random

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.directory import LogDirectory
from barnabas.log.file_pool import FilePool
from barnabas.log.producer_snapshot import snapshot_path
from barnabas.log.segment import INDEX, TIME_INDEX, TRANSACTION_INDEX
from barnabas.model.errors import CorruptRecordError, DamagedLogError
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import read_headers
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000


def fill(log, batch, count, start=0, **identity):
    for index in range(start, start + count):
        extra = {**identity, "base_sequence": index} if identity else {}
        log.append_as_leader(batch(size=index % 7, at=NOW + index, **extra), 1, NOW)


def values(count):
    return [(index, b"v" * (index % 7)) for index in range(count)]


def test_a_tail_torn_at_any_byte_is_cut_at_the_last_whole_batch(open_log, batch, read_all, disk):
    log = open_log()
    fill(log, batch, 3)
    path, whole = log.segments[0].path(".log"), log.size_bytes
    fill(log, batch, 1, start=3)
    data = disk.read(path)
    log.release()
    for size in range(whole, len(data)):
        disk.write(path, data[:size])
        again = open_log(clean=False)
        assert again.log_end_offset == 3
        assert disk.size(path) == whole
        assert read_all(again) == values(3)
        again.release()
    disk.write(path, data)
    assert open_log(clean=False).log_end_offset == 4


@pytest.mark.parametrize("zeros", [1, 5000])
def test_zeros_after_the_last_batch_are_cut_also_after_a_clean_stop(open_log, batch, disk, zeros):
    """A file may be given its size before it is filled."""
    log = open_log()
    fill(log, batch, 3)
    log.close(NOW)
    path, whole = log.segments[0].path(".log"), log.size_bytes
    for clean in (True, False):
        disk.write(path, disk.read(path) + bytes(zeros))
        again = open_log(clean=clean)
        assert again.log_end_offset == 3
        assert disk.size(path) == whole
        again.close(NOW)


UNKNOWN = bytes.fromhex("0000000000000003 00000040 ffffffff 03") + b"a format of the future" * 3


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        (b"\xff" * 300, "magic 255"),
        (UNKNOWN, "magic 3"),
        (b"\x7f" * 16 + b"\2" + b"x" * 90, "are not the start of a batch"),
    ],
    ids=["junk", "future", "text"],
)
@pytest.mark.parametrize("clean", [True, False])
def test_what_is_not_understood_is_never_cut(open_log, batch, disk, read_all, tail, found, clean):
    log = open_log()
    fill(log, batch, 3)
    log.close(NOW)
    path, whole = log.segments[0].path(".log"), log.size_bytes
    stored = disk.read(path) + tail
    disk.write(path, stored)
    with pytest.raises(DamagedLogError) as failure:
        open_log(clean=clean)
    assert str(failure.value).startswith(f"{path} at {whole}: ")
    assert ("closed cleanly" if clean else found) in str(failure.value)
    assert disk.read(path) == stored
    repaired = open_log(clean=False, repair=True)
    assert read_all(repaired) == values(3)
    assert disk.read(f"{log.directory}/{0:020d}-{whole}.cut") == tail


def test_what_was_flushed_is_never_cut(open_log, batch, disk):
    """The recovery point says so: what a crash takes lies above it."""
    log = open_log()
    fill(log, batch, 5)
    path = log.segments[0].path(".log")
    log.release()
    stored = disk.read(path)[:-30]
    disk.write(path, stored)
    with pytest.raises(DamagedLogError, match="below offset 5 was flushed"):
        open_log(clean=False, recovery_point=5)
    assert disk.read(path) == stored
    assert open_log(clean=False, recovery_point=4).log_end_offset == 4


def test_segments_behind_a_gap_go_only_if_a_crash_can_have_left_it(open_log, batch, disk, read_all):
    """A file that ends early, behind a whole batch, shows by where the next segment begins."""
    log = open_log(segment_bytes=500)
    fill(log, batch, 20)
    first, second = (segment.path(".log") for segment in log.segments[:2])
    base = log.segments[1].base_offset
    log.release()
    whole = disk.read(first)
    stored = whole[: -sum(header.size for header in read_headers(whole)[-2:])]
    disk.write(first, stored)
    flushed = disk.read(second)
    with pytest.raises(DamagedLogError) as failure:
        open_log(clean=False, recovery_point=base - 1)
    assert str(failure.value) == (
        f"{second} at 0: offset {base} after {base - 3}; "
        f"everything below offset {base - 1} was flushed"
    )
    assert (disk.read(first), disk.read(second)) == (stored, flushed)
    again = open_log(clean=False, recovery_point=base - 2, segment_bytes=500)
    assert read_all(again) == values(base - 2)
    assert disk.read(second) is None


@pytest.mark.parametrize("clean", [True, False])
def test_a_closed_segment_is_not_cut_for_its_missing_index(open_log, batch, disk, clean):
    log = open_log(segment_bytes=300)
    fill(log, batch, 20)
    first = log.segments[0]
    log.close(NOW)
    disk.unlink(first.path(INDEX))
    stored = bytearray(disk.read(first.path(".log")))
    stored[-1] ^= 1
    disk.write(first.path(".log"), stored)
    with pytest.raises(DamagedLogError):
        open_log(clean=clean, recovery_point=20, segment_bytes=300)
    assert disk.read(first.path(".log")) == stored


@pytest.mark.parametrize("lost", [0, 1])
def test_a_block_that_was_never_written_is_cut_with_what_follows(open_log, batch, disk, lost):
    """Pages reach the disk in any order: nothing behind the hole was flushed."""
    log = open_log()
    for index in range(4):
        log.append_as_leader(batch(size=2000, at=NOW + index), 1, NOW)
    path, size = log.segments[0].path(".log"), log.size_bytes // 4
    log.release()
    data = bytearray(disk.read(path))
    start = size * 2 if lost == 0 else -(-(size * 2 + 100) // 512) * 512
    data[start : start + 512] = bytes(512)
    disk.write(path, data)
    assert open_log(clean=False).log_end_offset == 2
    assert disk.size(path) == size * 2


def test_a_flipped_byte_in_the_middle_takes_the_log_offline(
    open_log, batch, read_all, disk, caplog
):
    log = open_log(segment_bytes=300)
    fill(log, batch, 20, producer_id=7, producer_epoch=0)
    segments = log.segments
    assert len(segments) > 4
    victim = segments[2]
    log.release()
    data = bytearray(disk.read(victim.path(".log")))
    data[-1] ^= 1
    disk.write(victim.path(".log"), data)
    with pytest.raises(DamagedLogError, match=f"{victim.path('.log')} at .*CRC.*later segments"):
        open_log(clean=False, segment_bytes=300)
    assert all(disk.exists(segment.path(".log")) for segment in segments)
    assert disk.read(victim.path(".log")) == data
    with caplog.at_level(logging.WARNING):
        again = open_log(clean=False, segment_bytes=300, repair=True)
    end = segments[3].base_offset - 1
    assert again.log_end_offset == end
    assert read_all(again) == values(end)
    assert again.producers.get(7).last_sequence == end - 1
    assert len(again.segments) == 3
    assert not disk.exists(segments[3].path(".log"))
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("barnabas")]
    assert len(lines) == 1
    assert f"{len(segments) - 3} segments dropped" in lines[0]
    assert "CRC" in lines[0]


def test_segments_below_the_recovery_point_are_not_walked(open_log, batch, disk, read_all):
    log = open_log(segment_bytes=400)
    fill(log, batch, 20)
    log.flush(NOW)
    first, last = log.segments[0], log.segments[-1]
    log.release()
    data = bytearray(disk.read(first.path(".log")))
    data[-1] ^= 1
    disk.write(first.path(".log"), data)
    point = last.base_offset
    assert open_log(clean=False, recovery_point=point, segment_bytes=400).log_end_offset == 20
    with pytest.raises(DamagedLogError):
        open_log(clean=False, recovery_point=0, segment_bytes=400)


def test_recovery_restores_epochs_producers_and_aborted_transactions(open_log, batch, disk):
    log = open_log(segment_bytes=500)
    identity = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log.append_as_leader(batch(2, **identity, base_sequence=0), 1, NOW)
    for index in range(8):
        log.append_as_leader(batch(size=100), 1 + index // 4, NOW)
    marker = build_control_batch(
        ControlType.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=3, now_ms=NOW
    )
    log.append_as_leader(bytearray(marker), 5, NOW, origin="coordinator")
    log.append_as_leader(batch(1, **identity, base_sequence=2), 6, NOW)
    aborted = log.aborted_transactions(0, 100)
    assert len(aborted) == 1
    epochs = list(log.leader_epochs)
    assert [epoch for epoch, _ in epochs] == [1, 2, 5, 6]
    log.release()
    for segment in log.segments:
        for path in segment.side_files():
            disk.unlink(path)
    again = open_log(clean=False, segment_bytes=500)
    assert list(again.leader_epochs) == epochs
    assert again.aborted_transactions(0, 100) == aborted
    entry = again.producers.get(7)
    assert (entry.last_sequence, entry.coordinator_epoch) == (2, 3)
    again.set_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == again.log_end_offset - 1


@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX, TRANSACTION_INDEX])
@pytest.mark.parametrize("damage", [None, b"\1" * 7, b"\1" * 34 * 6])
def test_damaged_index_files_are_replaced_after_a_clean_stop(
    open_log, batch, disk, read_all, suffix, damage
):
    settings = {"segment_bytes": 500, "index_interval_bytes": 50}
    log = open_log(**settings)
    fill(log, batch, 20)
    log.close(NOW)
    path = log.segments[1].path(suffix)
    if damage is None:
        disk.unlink(path)
    else:
        disk.write(path, damage)
    again = open_log(**settings)
    assert read_all(again) == values(20)
    assert again.find_timestamp(NOW + 9).offset == 9
    assert again.aborted_transactions(0, 100) == []


@pytest.mark.parametrize("damage", [None, b"damaged"])
def test_lost_snapshots_are_replaced_by_replay(open_log, batch, disk, damage):
    log = open_log(segment_bytes=400)
    fill(log, batch, 20, producer_id=7, producer_epoch=0)
    log.close(NOW)
    for offset in [*(s.base_offset for s in log.segments), 20]:
        path = snapshot_path(log.directory, offset)
        if damage is None:
            disk.unlink(path)
        else:
            disk.write(path, damage)
    again = open_log(segment_bytes=400)
    assert [b.last_sequence for b in again.producers.get(7).batches] == [15, 16, 17, 18, 19]


def test_a_damaged_batch_among_those_to_replay_keeps_no_log_from_opening(
    open_log, batch, disk, caplog
):
    """Without a snapshot the producers of the batches behind it are not known: no more is lost."""
    log = open_log(segment_bytes=400)
    fill(log, batch, 12, producer_id=7, producer_epoch=0)
    bases = [segment.base_offset for segment in log.segments]
    log.close(NOW)
    for name in disk.list(log.directory):
        if name.endswith(".snapshot"):
            disk.unlink(f"{log.directory}/{name}")
    file = disk.open(f"{log.directory}/{bases[1]:020d}.log")
    file.pwrite(b"\x07", 16)  # no magic of a batch
    file.close()
    again = open_log(segment_bytes=400)
    assert (again.log_end_offset, len(again.segments)) == (12, len(bases))
    assert again.producers.get(7).last_sequence == bases[1] - 1
    assert "producer state is incomplete" in caplog.text
    piece = again.read(bases[2], 1)
    assert read_headers(piece.read())[0].base_offset == bases[2]
    piece.release()
    with pytest.raises(CorruptRecordError):
        again.read(bases[1], 1)


def test_a_clean_start_restores_the_window_of_one_batch(open_log, batch):
    log = open_log()
    fill(log, batch, 6, producer_id=7, producer_epoch=0)
    log.close(NOW)
    again = open_log()
    assert [b.last_sequence for b in again.producers.get(7).batches] == [5]
    duplicate = again.append_as_leader(
        batch(size=5, at=NOW + 5, producer_id=7, producer_epoch=0, base_sequence=5), 1, NOW
    )
    assert (duplicate.duplicate, duplicate.first_offset) == (True, 5)


def test_stray_snapshots_go(open_log, batch, disk):
    log = open_log()
    fill(log, batch, 3, producer_id=7, producer_epoch=0)
    log.close(NOW)
    data = disk.read(snapshot_path(log.directory, 3))
    for offset in (1, 2, 99):
        disk.write(snapshot_path(log.directory, offset), data)
    open_log()
    kept = [name for name in disk.list(log.directory) if name.endswith(".snapshot")]
    assert [int(name[:20]) for name in kept] == [3]


def test_a_damaged_epoch_file_is_rebuilt_from_the_batches(open_log, batch, disk):
    log = open_log()
    log.append_as_leader(batch(2), 3, NOW)
    log.append_as_leader(batch(2), 5, NOW)
    log.close(NOW)
    disk.write(f"{log.directory}/leader-epoch-checkpoint", b"0\n7\n")
    assert list(open_log().leader_epochs) == [(3, 0), (5, 2)]


def test_epochs_beyond_the_end_are_dropped_and_cut_at_the_start(open_log, batch, disk):
    log = open_log()
    for epoch in (1, 2, 3):
        log.append_as_leader(batch(4), epoch, NOW)
    log.close(NOW)
    disk.write(f"{log.directory}/leader-epoch-checkpoint", b"0\n4\n1 0\n2 4\n3 8\n9 12\n")
    assert list(open_log(log_start_offset=5).leader_epochs) == [(2, 5), (3, 8)]


def test_a_log_that_ends_below_its_start_begins_again_there(open_log, batch):
    log = open_log()
    fill(log, batch, 3)
    log.close(NOW)
    again = open_log(log_start_offset=10)
    assert (again.log_start_offset, again.log_end_offset) == (10, 10)
    assert [segment.base_offset for segment in again.segments] == [10]
    assert again.append_as_leader(batch(), 1, NOW).first_offset == 10


def test_an_empty_directory_and_one_without_segments(open_log, disk):
    log = open_log(log_start_offset=7)
    assert (log.log_start_offset, log.log_end_offset) == (7, 7)
    disk.unlink(log.segments[0].path(".log"))
    log.release()
    assert open_log(log_start_offset=7).log_end_offset == 7


def test_leftovers_of_deletion_and_cleaning_go(open_log, batch, disk, read_all):
    log = open_log()
    fill(log, batch, 3)
    log.close(NOW)
    directory = log.directory
    for name in ("5.log.deleted", "5.index.deleted", "0.log.cleaned", "0.timeindex.cleaned"):
        number, rest = name.split(".", 1)
        disk.write(f"{directory}/{int(number):020d}.{rest}", b"junk")
    disk.write(f"{directory}/{9:020d}.index", b"")
    disk.write(f"{directory}/{9:020d}.snapshot.deleted", b"")
    again = open_log()
    assert read_all(again) == values(3)
    names = disk.list(directory)
    assert not [
        n for n in names if n.endswith((".deleted", ".cleaned")) or n.startswith(f"{9:020d}")
    ]


def test_a_finished_swap_is_completed_and_an_unfinished_one_undone(open_log, batch, disk, read_all):
    log = open_log(segment_bytes=200)
    fill(log, batch, 8)
    log.close(NOW)
    assert [s.base_offset for s in log.segments] == [0, 2, 4, 6]
    directory = log.directory
    # The first two segments were merged into one that keeps all batches.
    merged = b"".join(disk.read(log.segments[i].path(".log")) for i in range(2))
    disk.write(f"{directory}/{0:020d}.log.swap", merged)
    disk.write(f"{directory}/{4:020d}.log.swap", b"undone: a cleaned file below it exists")
    disk.write(f"{directory}/{3:020d}.log.cleaned", b"")
    again = open_log(segment_bytes=200)
    assert [s.base_offset for s in again.segments] == [0, 4, 6]
    assert read_all(again) == values(8)
    assert not [n for n in disk.list(directory) if n.endswith((".swap", ".cleaned"))]


def test_offsets_that_go_back_take_the_log_offline(open_log, batch, disk):
    """A whole batch is never cut: its offset is not covered by its CRC, its records are."""
    log = open_log()
    fill(log, batch, 3)
    path = log.segments[0].path(".log")
    data = disk.read(path)
    log.release()
    disk.write(path, data + data)
    with pytest.raises(DamagedLogError, match=f"at {len(data)}: offset 0 after offset 2"):
        open_log(clean=False)
    assert disk.read(path) == data + data
    assert open_log(clean=False, repair=True).log_end_offset == 3
    assert disk.read(path) == data


def test_a_marker_that_cannot_be_read_is_not_cut(open_log, batch, disk, read_all):
    log = open_log()
    log.append_as_leader(batch(), 0, NOW)
    marker = build_batch(
        [(NOW, b"\0", b"")],
        base_offset=1,
        leader_epoch=0,
        producer_id=7,
        producer_epoch=0,
        control=True,
    )
    log.segments[0].file.get().pwrite(marker, log.size_bytes)
    log.release()
    path = log.segments[0].path(".log")
    stored = disk.read(path)
    with pytest.raises(DamagedLogError, match=f"{path} at {log.size_bytes}: "):
        open_log(clean=False)
    assert disk.read(path) == stored
    again = open_log(clean=False, repair=True)
    assert (again.log_end_offset, len(read_all(again))) == (1, 1)
    assert again.append_as_leader(batch(), 0, NOW).first_offset == 1


@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_file_that_a_failed_roll_left_behind_goes(open_log, batch, disk, read_all, clean):
    log = open_log()
    fill(log, batch, 5)
    log.close(NOW)
    leftovers = [f"{log.directory}/{offset:020d}.log" for offset in (2, 3)]
    for path in leftovers:
        disk.write(path, b"")
    again = open_log(clean=clean)
    assert [segment.base_offset for segment in again.segments] == [0]
    assert read_all(again) == values(5)
    assert not any(map(disk.exists, leftovers))


def test_an_empty_segment_at_the_end_of_the_log_stays(open_log, batch, read_all):
    log = open_log()
    fill(log, batch, 5)
    log.roll(NOW)
    log.close(NOW)
    for clean in (True, False):
        again = open_log(clean=clean)
        assert [segment.base_offset for segment in again.segments] == [0, 5]
        assert again.log_end_offset == 5
        again.close(NOW)


@pytest.mark.parametrize("seed", range(30))
def test_indexes_that_are_rebuilt_below_the_recovery_point_survive_the_next_crash(seed):
    """The recovery point is past them, so no later flush would look at them."""
    disk = SimulatedDisk(Random(seed), lambda: NOW)
    partition = TopicPartition("t", 0)

    def start():
        directory = LogDirectory(FilePool(disk), "/data")
        directory.load(lambda topic: TopicOptions.parse({}), NOW)
        return directory, directory.open_log(partition, TopicOptions.parse({}), NOW)

    directory, log = start()
    producer = {"producer_id": 7, "producer_epoch": 0}
    data = build_batch([(NOW, b"k", b"v")], base_sequence=0, transactional=True, **producer)
    log.append_as_leader(data, 0, NOW)
    marker = build_control_batch(ControlType.ABORT, coordinator_epoch=0, now_ms=NOW, **producer)
    log.append_as_leader(marker, 0, NOW, origin="coordinator")
    log.roll(NOW)
    log.flush(NOW)
    directory.write_recovery_points()
    for _ in range(3):
        disk.crash()
        directory, log = start()
        assert log.aborted_transactions(0, 2) == [(7, 0, 1, 2)]
        log.append_as_leader(build_batch([(NOW, b"k", b"v")]), 0, NOW)
        log.flush(NOW)
        directory.write_recovery_points()
