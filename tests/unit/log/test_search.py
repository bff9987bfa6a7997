"""Offsets by time: first record at or after a timestamp, the newest record, old ListOffsets."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.records.builder import build_batch

NOW = 1_700_000_000_000


@settings(max_examples=40, deadline=None)
@given(
    batches=st.lists(
        st.tuples(
            st.lists(st.integers(-1, 40), min_size=1, max_size=4),
            st.sampled_from(["none", "gzip"]),
        ),
        max_size=25,
    ),
    start=st.integers(0, 20),
    restart=st.booleans(),
)
def test_the_first_record_in_time_is_that_of_a_plain_search(
    tmp_path_factory, batches, start, restart
):
    pool = FilePool(DiskFiles())
    directory = f"{tmp_path_factory.mktemp('log')}/t-0"
    options = TopicOptions.parse({"segment.bytes": "600", "index.interval.bytes": "100"})
    log = PartitionLog.open(pool, directory, TopicPartition("t", 0), options, NOW)
    records = []
    for epoch, (timestamps, codec) in enumerate(batches):
        rows = [(timestamp, b"k", b"v") for timestamp in timestamps]
        first = log.append_as_leader(build_batch(rows, codec), epoch, NOW).first_offset
        records += [(t, first + i, epoch) for i, t in enumerate(timestamps)]
    start = min(start, log.log_end_offset)
    log.set_high_watermark(log.log_end_offset)
    log.delete_records_before(start)
    if restart:
        log.close(NOW)
        log = PartitionLog.open(
            pool, directory, TopicPartition("t", 0), options, NOW, log_start_offset=start
        )
    live = [record for record in records if record[1] >= start]
    for target in range(42):
        expected = next((r for r in live if r[0] >= target), None)
        assert log.find_timestamp(target) == expected
    newest = max((t for t, _, _ in records), default=-1)
    expected = next((r for r in live if r[0] == newest), None) if newest >= 0 else None
    if expected is not None or newest < 0:
        assert log.find_max_timestamp() == expected
    log.release()


def test_records_of_append_time_are_found_by_it(open_log, batch):
    log = open_log(message_timestamp_type="LogAppendTime")
    for index in range(3):
        log.append_as_leader(batch(2, at=5), 0, NOW + index)
    assert log.find_timestamp(NOW + 1) == (NOW + 1, 2, 0)
    assert log.find_max_timestamp() == (NOW + 2, 4, 0)


def test_offsets_of_segments_by_file_time(open_log, batch):
    log = open_log(segment_bytes=200)
    for _ in range(6):
        log.append_as_leader(batch(), 0, NOW)
    for number, segment in enumerate(log.segments):
        os.utime(segment.path(".log"), (100 + number, 100 + number))
    bases = [segment.base_offset for segment in log.segments]
    assert bases == [0, 2, 4]
    assert log.legacy_segment_offsets(LATEST, 10, NOW) == [6, 4, 2, 0]
    assert log.legacy_segment_offsets(LATEST, 2, NOW) == [6, 4]
    assert log.legacy_segment_offsets(EARLIEST, 10, NOW) == [0]
    assert log.legacy_segment_offsets(101_000, 10, NOW) == [2, 0]
    assert log.legacy_segment_offsets(99_000, 10, NOW) == []
