"""When the record at an offset was appended, from the head of its batch."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.monitoring import record_times
from barnabas.broker.monitoring.record_times import RecordTimes, timestamp_of
from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch

KEY = TopicPartition("t", 0)
NOW = 1_700_000_000_000


def test_the_time_is_that_of_the_first_record_or_of_the_append() -> None:
    rows = [(NOW, None, b"a"), (NOW + 5, None, b"b")]
    assert timestamp_of(build_batch(rows)) == NOW
    assert timestamp_of(build_batch(rows, append_time=NOW + 9)) == NOW + 9


def test_what_has_no_time_says_so() -> None:
    head = bytearray(build_batch([(NOW, None, b"a")]))
    assert timestamp_of(bytes(head[:60])) == -1
    assert timestamp_of(b"") == -1
    head[16] = 0  # the oldest format has none
    assert timestamp_of(bytes(head)) == -1
    head[16] = 1
    head[18:26] = (NOW + 7).to_bytes(8, "big")
    assert timestamp_of(bytes(head)) == NOW + 7


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    log = PartitionLog.open(
        FilePool(DiskFiles()), f"{tmp_path}/t-0", KEY, TopicOptions.parse({}), NOW
    )
    for second in range(10):
        batch = build_batch([(NOW + second * 1000, b"k", b"v" * 500)] * 3)
        log.append_as_leader(bytearray(batch), 0, NOW)
    log.set_high_watermark(log.log_end_offset)
    return log


def test_a_time_is_read_once(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        times = RecordTimes(None)
        assert times.get(KEY, 7) is None
        await times.read(KEY, log, 7)
        assert times.get(KEY, 7) == NOW + 2000
        monkeypatch.setattr(PartitionLog, "read", None)
        await times.read(KEY, log, 7)
        assert times.get(KEY, 7) == NOW + 2000

    asyncio.run(story())


def test_below_the_log_start_the_oldest_record_counts(log: PartitionLog) -> None:
    async def story() -> None:
        log.delete_records_before(6)
        times = RecordTimes(None)
        await times.read(KEY, log, 1)
        assert times.get(KEY, 1) == NOW + 2000
        await times.read(KEY, log, 1000)  # beyond the end: there is no such record
        assert times.get(KEY, 1000) is None

    asyncio.run(story())


def test_it_does_not_remember_everything(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(record_times, "KNOWN_MAX", 5)
        times = RecordTimes(None)
        for offset in range(12):
            await times.read(KEY, log, offset)
        assert len(times._known) <= 5
        assert times.get(KEY, 11) == NOW + 3000

    asyncio.run(story())
