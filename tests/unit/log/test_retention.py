"""Old segments go: by time, by size, below the log start, and never too many."""

from random import Random

import pytest

from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition

NOW = 1_700_000_000_000


@pytest.fixture
def filled(open_log, batch):
    """A log of one batch per segment, a second apart, all below the high watermark."""

    def make(count=5, **settings) -> PartitionLog:
        log = open_log(**settings)
        for number in range(count):
            log.append_as_leader(batch(at=NOW + 1000 * number, size=100), 0, NOW)
            if number < count - 1:
                log.roll(NOW)
        log.set_high_watermark(log.log_end_offset)
        log.flush(NOW)
        return log

    return make


def test_time_is_measured_from_the_newest_record_of_a_segment(filled):
    log = filled(retention_ms=10_000)
    assert log.expired_before(NOW + 10_000) == 0
    assert log.expired_before(NOW + 10_001) == 1
    assert log.expired_before(NOW + 12_001) == 3


def test_the_active_segment_goes_too_when_all_of_it_is_old(filled):
    log = filled(retention_ms=10_000)
    assert log.expired_before(NOW + 60_000) == 5
    log.begin_removal(5, NOW)
    log.checkpointed_recovery_point = log.recovery_point
    assert len(log.remove_before(5)) > 0
    assert [segment.base_offset for segment in log.segments] == [5]
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert log.expired_before(NOW + 10**9) == 5, "an empty active segment stays"


def test_without_times_the_file_s_counts(open_log, batch, disk):
    log = open_log(retention_ms=10_000)
    log.append_as_leader(batch(at=-1), 0, NOW)
    log.set_high_watermark(1)
    changed = disk.mtime_ms(log.segments[0].file.path)
    assert log.expired_before(changed + 10_000) == 0
    assert log.expired_before(changed + 10_001) == 1


def test_size_goes_down_to_the_bound_and_not_below(filled):
    log = filled(retention_ms=-1, retention_bytes=10**9)
    size = log.segments[0].size_bytes
    for bound, expected in ((5 * size, 0), (4 * size + 1, 0), (4 * size, 1), (1, 4), (0, 5)):
        log.configure(log.options.with_overrides({"retention.bytes": bound}))
        assert log.expired_before(NOW) == expected
    log.configure(log.options.with_overrides({"retention.bytes": -1}))
    assert log.expired_before(NOW + 10**12) == 0


def test_nothing_above_the_high_watermark_goes(filled):
    log = filled(retention_ms=1)
    log.high_watermark = 2
    assert log.expired_before(NOW + 10**9) == 2


def test_what_lies_below_the_log_start_goes_whatever_the_policy(filled):
    log = filled(retention_ms=1, retention_bytes=0, cleanup_policy="compact")
    assert log.expired_before(NOW + 10**9) == 0
    log.delete_records_before(3)
    assert log.expired_before(NOW + 10**9) == 3
    log.delete_records_before(5)
    assert log.expired_before(NOW + 10**9) == 4, "the active one stays"


def test_only_what_is_below_the_checkpointed_recovery_point_is_removed(filled):
    log = filled(retention_ms=1)
    log.begin_removal(4, NOW)
    assert log.remove_before(4) == []
    log.checkpointed_recovery_point = 2
    log.remove_before(4)
    assert [segment.base_offset for segment in log.segments] == [2, 3, 4]
    log.checkpointed_recovery_point = 5
    log.remove_before(4, count_max=1)
    assert [segment.base_offset for segment in log.segments] == [3, 4]


def test_files_are_renamed_readers_can_finish_and_snapshots_go(filled, disk):
    log = filled(retention_ms=1)
    piece = log.read(0, 10_000)
    expected = piece.read()
    log.begin_removal(3, NOW)
    assert log.log_start_to_checkpoint == 3
    log.checkpointed_recovery_point = 5
    paths = log.remove_before(3)
    assert log.log_start_to_checkpoint == 3, "until the directory is flushed, files may come back"
    log.finish_removal()
    assert log.log_start_to_checkpoint is None
    names = disk.list(log.directory)
    assert {name[:20] for name in names if name.endswith(".snapshot")} == {f"{3:020d}", f"{4:020d}"}
    assert {f"{log.directory}/{n}" for n in names if n.endswith(".deleted")} <= set(paths)
    for path in paths:
        disk.unlink(path)
    assert not [name for name in disk.list(log.directory) if name.endswith(".deleted")]
    assert piece.read() == expected
    piece.release()


def test_times_are_resolved_from_ms_minutes_or_hours():
    from barnabas.config.broker import BrokerOptions
    from barnabas.config.topic import TopicOptions

    def resolved(**given):
        broker = BrokerOptions.parse({k.replace("_", "."): v for k, v in given.items()})
        return TopicOptions.resolve(broker, {}).retention_ms

    assert resolved() == 7 * 24 * 3_600_000
    assert resolved(log_retention_hours="2") == 7_200_000
    assert resolved(log_retention_hours="2", log_retention_minutes="3") == 180_000
    assert resolved(log_retention_minutes="3", log_retention_ms="4") == 4
    assert resolved(log_retention_hours="-1") == -1


@pytest.mark.parametrize("seed", range(20))
def test_a_reader_at_the_log_start_always_finds_the_next_record(filled, batch, seed):
    random = Random(seed)
    log = filled(retention_ms=5000, retention_bytes=600)
    now = NOW
    for _ in range(60):
        now += random.randrange(800)
        if random.random() < 0.5:
            log.append_as_leader(batch(at=now, size=100), 0, now)
            log.set_high_watermark(log.log_end_offset)
        if random.random() < 0.3:
            log.roll(now)
        if random.random() < 0.3:
            offset = log.expired_before(now)
            if offset > log.segments[0].base_offset:
                log.begin_removal(offset, now)
                log.flush(now)
                log.checkpointed_recovery_point = log.recovery_point
                log.remove_before(offset)
                log.finish_removal()
        assert log.log_start_offset == log.segments[0].base_offset
        piece = log.read(log.log_start_offset, 100_000)
        data = piece.read()
        piece.release()
        if log.log_start_offset < log.log_end_offset:
            assert int.from_bytes(data[:8], "big") == log.log_start_offset
    assert log.topic_partition == TopicPartition("t", 0)
