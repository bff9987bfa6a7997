"""Where a follower cuts its log, by what its leader says of the epoch that they may share."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.follower_fetch import truncation_offset

NOW = 1_700_000_000_000
KEY = TopicPartition("t", 0)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Epoch 2 from 0, epoch 4 from 10, epoch 7 from 20, end 30, watermark 12."""
    made = PartitionLog.open(
        FilePool(DiskFiles()), f"{tmp_path}/t-0", KEY, TopicOptions.parse({}), NOW
    )
    for epoch in (2, 4, 7):
        batch = build_batch([(NOW, b"k", b"v")] * 10)
        made.append_as_leader(bytearray(batch), epoch, NOW, request_version=9)
    made.set_high_watermark(12)
    return made


@pytest.mark.parametrize(
    ("epoch", "end_offset", "cut"),
    [
        (-1, -1, 12),  # the leader knows nothing: only what was promised is certain
        (7, -1, 12),
        (-1, 25, 25),  # a leader of the oldest kind says no epoch
        (-1, 99, 30),
        (7, 25, 25),  # the same epoch, and the leader has less of it
        (7, 35, 30),  # or more
        (4, 15, 15),
        (4, 25, 20),  # the leader has more of it, but what follows here is not of it
        (5, 25, 20),  # an epoch that is not known here: the end of the one below
        (3, 8, 10),  # the next fetch tells the epoch below, and the leader answers again
        (1, 5, 0),  # older than everything here
    ],
)
def test_where_the_log_is_cut(log: PartitionLog, epoch: int, end_offset: int, cut: int) -> None:
    assert truncation_offset(log, epoch, end_offset) == cut
