"""Which log is compacted next, and how others keep the cleaner away."""

import pytest

from barnabas.log.compaction.scheduler import CompactionScheduler, examine
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition

NOW = 1_700_000_000_000


@pytest.fixture
def filled(pool, tmp_path, options, batch):
    """A compacted log with one batch per segment, a second apart; the last one is active."""
    made = []

    def make(count=5, *, number=0, cleaned=0, **settings) -> PartitionLog:
        partition = TopicPartition("t", number)
        settings = {"cleanup_policy": "compact", **settings}
        log = PartitionLog.open(
            pool, f"{tmp_path}/{partition}", partition, options(**settings), NOW
        )
        made.append(log)
        for index in range(count):
            log.append_as_leader(batch(at=NOW + 1000 * index), 0, NOW)
            if index < count - 1:
                log.roll(NOW)
        log.set_high_watermark(log.log_end_offset)
        log.flush(NOW)
        log.checkpointed_recovery_point = log.recovery_point
        log.cleaned_offset = cleaned
        return log

    yield make
    for log in made:
        log.release()


def test_the_dirty_part_is_what_was_never_compacted(filled):
    log = filled(5, cleaned=1)
    found = examine(log, NOW)
    assert (found.first_dirty, found.end) == (1, 4)
    assert found.dirty_ratio == pytest.approx(3 / 4)


def test_a_checkpoint_outside_of_the_log_counts_as_none(filled):
    log = filled(5, cleaned=99)
    assert examine(log, NOW).first_dirty == 0
    log.cleaned_offset = 1
    log.delete_records_before(2)
    assert examine(log, NOW).first_dirty == 2


def test_nothing_to_do(filled):
    assert examine(filled(5, cleanup_policy="delete"), NOW) is None
    assert examine(filled(1, number=1), NOW) is None
    assert examine(filled(5, number=2, cleaned=4), NOW) is None


def test_young_records_are_left_alone(filled):
    log = filled(5, min_compaction_lag_ms=10_000)
    assert examine(log, NOW + 9_999) is None
    assert examine(log, NOW + 10_000).end == 1
    assert examine(log, NOW + 12_500).end == 3
    assert examine(log, NOW + 99_000).end == 4


def test_the_ratio_or_a_record_that_waits_too_long_decides(filled):
    log = filled(5, cleaned=3, max_compaction_lag_ms=10_000, segment_ms=10**9)
    found = examine(log, NOW + 13_000)
    assert found.dirty_ratio == pytest.approx(1 / 4)
    assert not found.wanted
    assert examine(log, NOW + 13_001).wanted
    log.configure(log.options.with_overrides({"min.cleanable.dirty.ratio": "0.2"}))
    assert examine(log, NOW).wanted


def test_records_without_a_time_wait_for_nothing(filled, batch):
    log = filled(0, max_compaction_lag_ms=10_000, segment_ms=10**9)
    for _ in range(4):
        log.append_as_leader(batch(at=-1), 0, NOW)
        log.roll(NOW)
    log.set_high_watermark(4)
    log.flush(NOW)
    log.checkpointed_recovery_point, log.cleaned_offset = 4, 3
    found = examine(log, NOW)
    assert (found.dirty_ratio, found.delay_ms) == (pytest.approx(1 / 4), 0)
    assert not found.wanted


def test_open_transactions_and_the_recovery_point_bound_it(filled):
    log = filled(5)
    log.high_watermark = 2
    assert examine(log, NOW).end == 2
    log.high_watermark = 5
    log.checkpointed_recovery_point = 3
    assert examine(log, NOW).end == 3


def test_the_dirtiest_log_comes_first_and_one_after_the_other(filled):
    logs = [filled(number=n, cleaned=c) for n, c in ((0, 1), (1, 0), (2, 2))]
    cleaner = CompactionScheduler()
    chosen = []
    while (found := cleaner.begin_next(logs, NOW)) is not None:
        assert found.log.compacting
        chosen.append(found.log.topic_partition.partition)
    assert chosen == [1, 0], "the third is not dirty enough"
    cleaner.finish(logs[1])
    assert not logs[1].compacting
    assert cleaner.begin_next(logs, NOW).log is logs[1]


def test_a_failed_log_is_not_tried_again(filled):
    cleaner, log = CompactionScheduler(), filled()
    cleaner.begin_next([log], NOW)
    cleaner.finish(log, "a flipped bit")
    assert cleaner.begin_next([log], NOW) is None
    assert cleaner.uncleanable == {log.topic_partition: "a flipped bit"}
    cleaner.forget(log.topic_partition)
    assert cleaner.begin_next([log], NOW) is not None


def test_a_log_that_cannot_be_looked_at_keeps_nobody_from_the_others(filled, pool):
    lag = {"max_compaction_lag_ms": 10_000, "segment_ms": 10**9}
    logs = [filled(number=number, **lag) for number in range(2)]
    logs[0].close(NOW)
    reopened = PartitionLog.open(
        pool, logs[0].directory, logs[0].topic_partition, logs[0].options, NOW
    )
    reopened.set_high_watermark(5)
    reopened.checkpointed_recovery_point = 5
    reopened.segments[0].file.get().pwrite(b"\x07", 16)  # no magic of a batch
    cleaner, told = CompactionScheduler(), []
    found = cleaner.begin_next([reopened, logs[1]], NOW, lambda *what: told.append(what))
    assert found.log is logs[1]
    [(partition, failure)] = told
    assert partition == reopened.topic_partition
    assert cleaner.uncleanable == {partition: str(failure)}
    assert "magic" in str(failure)
    reopened.release()


def test_a_pause_stops_who_works_and_keeps_others_out_until_all_resume(filled):
    cleaner, log = CompactionScheduler(), filled()
    partition = log.topic_partition
    cleaner.begin_next([log], NOW)
    assert not cleaner.is_aborted(partition)
    cleaner.pause(partition)
    cleaner.pause(partition)
    assert cleaner.is_aborted(partition)
    cleaner.finish(log, "what failed because it was stopped does not count")
    assert cleaner.uncleanable == {}
    for _ in range(2):
        assert cleaner.begin_next([log], NOW) is None
        cleaner.resume(partition)
    assert cleaner.begin_next([log], NOW) is not None


def test_rolling_is_capped_by_the_compaction_lag(filled, batch):
    log = filled(1, segment_ms=10**9, max_compaction_lag_ms=5_000)
    log.append_as_leader(batch(at=NOW + 5_000), 0, NOW)
    assert len(log.segments) == 1
    log.append_as_leader(batch(at=NOW + 5_001), 0, NOW)
    assert len(log.segments) == 2
