"""Flushing: when it is due, what it covers, and that only one that ran moves the recovery point."""

from random import Random

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_snapshot import snapshot_path
from barnabas.model.errors import StorageError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimulatedDisk

NOW = 1_700_000_000_000


def test_the_policy_by_messages_and_by_time(open_log, batch):
    log = open_log(flush_messages=5, flush_ms=1000)
    assert not log.needs_flush(NOW + 10**9)
    log.append_as_leader(batch(4), 0, NOW)
    assert not log.needs_flush(NOW + 999)
    assert log.needs_flush(NOW + 1000)
    log.append_as_leader(batch(1), 0, NOW)
    assert log.needs_flush(NOW)
    log.flush(NOW + 10)
    assert (log.recovery_point, log.last_flush_ms) == (5, NOW + 10)
    assert not log.needs_flush(NOW + 10**9)
    assert not open_log().needs_flush(NOW + 10**9)


def test_what_was_appended_after_the_beginning_is_not_covered(open_log, batch):
    log = open_log()
    log.append_as_leader(batch(2), 0, NOW)
    flush = log.begin_flush()
    log.append_as_leader(batch(3), 0, NOW)
    flush.run()
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 2


def test_a_failed_flush_changes_nothing_and_can_be_repeated(open_log, batch, disk):
    log = open_log(topic_id=bytes(16))
    log.append_as_leader(batch(2), 7, NOW)
    disk.flush_fails = True
    with pytest.raises(StorageError):
        log.flush(NOW)
    assert log.recovery_point == 0
    assert log.segments[0].file.pins == 0
    disk.flush_fails = False
    log.flush(NOW)
    assert log.recovery_point == 2
    assert disk.read(f"{log.directory}/leader-epoch-checkpoint") == b"0\n1\n7 0\n"
    assert log.begin_flush() is None


def test_a_truncation_meanwhile_keeps_the_recovery_point_down(open_log, batch, disk):
    log = open_log()
    for _ in range(4):
        log.append_as_leader(batch(), 0, NOW)
    flush = log.begin_flush()
    flush.run()
    log.truncate_to(1, NOW)
    for _ in range(4):
        log.append_as_leader(batch(), 1, NOW)
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 0
    log.flush(NOW)
    assert disk.read(f"{log.directory}/leader-epoch-checkpoint") == b"0\n2\n0 0\n1 1\n"


def test_side_files_of_finished_segments_are_flushed_with_them(open_log, batch, disk, monkeypatch):
    log = open_log(segment_bytes=200, topic_id=bytes(16))
    for _ in range(5):
        log.append_as_leader(batch(), 0, NOW)
    first, second, active = log.segments
    flushed, directories = [], []
    monkeypatch.setattr(disk, "flush_file", lambda path: flushed.append(path) or True)
    monkeypatch.setattr(disk, "flush_dir", directories.append)
    log.flush(NOW, up_to=active.base_offset)
    for segment, following in ((first, second), (second, active)):
        assert set(segment.side_files()) <= set(flushed)
        assert snapshot_path(log.directory, following.base_offset) in flushed
    assert f"{log.directory}/partition.metadata" in flushed
    assert not set(active.side_files()) & set(flushed)
    assert log.directory in directories
    assert log.directory.rpartition("/")[0] in directories
    assert log.recovery_point == 4
    flushed.clear()
    log.flush(NOW)
    assert flushed == []
    assert log.recovery_point == 5


def test_a_segment_deleted_during_a_flush_does_not_stop_it(open_log, batch):
    log = open_log(segment_bytes=200)
    for _ in range(5):
        log.append_as_leader(batch(), 0, NOW)
    flush = log.begin_flush()
    log.truncate_to(1, NOW)
    flush.run()
    log.finish_flush(flush, NOW)
    assert log.recovery_point == 0


@pytest.mark.parametrize("operation", ["flush", "write", "flush_file", "rename", "flush_dir"])
def test_a_truncation_while_a_flush_runs_disturbs_neither(operation):
    """A follower's log may be cut while another thread flushes it, its leader epochs included."""
    disk = SimulatedDisk(Random(0), lambda: NOW)
    log = PartitionLog.open(
        FilePool(disk), "/data/t-0", TopicPartition("t", 0), TopicOptions.parse({}), NOW
    )
    for epoch in range(4):
        log.append_as_leader(bytearray(build_batch([(NOW, b"k", b"v")])), epoch, NOW)
    flush = log.begin_flush()

    def cut(called, path):
        if called == operation and (called not in ("write", "rename") or "epoch" in path):
            disk.before = lambda operation, path: None
            log.truncate_to(2, NOW)

    disk.before = cut
    flush.run()
    log.finish_flush(flush, NOW)
    assert (log.log_end_offset, log.recovery_point) == (2, 0)
    log.append_as_leader(bytearray(build_batch([(NOW, b"k", b"v")])), 7, NOW)
    expected = [(0, 0), (1, 1), (7, 2)]
    assert list(log.leader_epochs) == expected
    log.flush(NOW)
    written = disk.read("/data/t-0/leader-epoch-checkpoint")
    assert list(LeaderEpochs.decode(written, "")) == expected
    assert [name for name in disk.list("/data/t-0") if name.endswith(".tmp")] == []
    log.release()
