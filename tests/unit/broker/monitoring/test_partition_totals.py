"""Partitions counted by what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.generators import returned

from barnabas.broker.monitoring.family import RUN
from barnabas.broker.monitoring.partition_totals import (
    LATE_AFTER_MS,
    PartitionTotals,
    count_partitions,
)
from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role

NOW = 1_700_000_000_000
MAX_MS = 900_000


@pytest.fixture
def pool() -> FilePool:
    return FilePool(DiskFiles())


def partition(
    pool: FilePool,
    folder: Path,
    number: int,
    role: Role,
    **options: str,
) -> Partition:
    key = TopicPartition("t", number)
    topic = TopicOptions.parse({name.replace("_", "."): value for name, value in options.items()})
    log = PartitionLog.open(pool, f"{folder}/{key}", key, topic, NOW)
    made = Partition(key, b"i" * 16, log, 0)
    made.assume(role)
    return made


def count(*partitions: Partition, now_ms: int = NOW) -> PartitionTotals:
    return returned(count_partitions(partitions, 0, now_ms, MAX_MS))


def test_each_partition_is_judged_by_its_leader(tmp_path: Path, pool: FilePool) -> None:
    two = {"min_insync_replicas": "2"}
    partitions = [
        partition(pool, tmp_path, 0, Role(0, 0, (0, 1, 2), (0, 1, 2)), **two),
        partition(pool, tmp_path, 1, Role(0, 0, (0, 1), (0, 1, 2)), **two),
        partition(pool, tmp_path, 2, Role(0, 0, (0,), (0, 1, 2)), **two),
        partition(pool, tmp_path, 3, Role(1, 0, (1,), (0, 1, 2)), **two),  # the leader says it
        partition(pool, tmp_path, 4, Role(0, 0, (0,), (0,)), **two),  # it cannot have more
    ]
    assert count(*partitions) == PartitionTotals(
        hosted=5, led=4, under_replicated=2, under_min_isr=1, at_min_isr=2
    )
    assert count() == PartitionTotals()


def test_a_reassignment_does_not_make_a_partition_short(tmp_path: Path, pool: FilePool) -> None:
    """What is being added is not in sync yet, and was not missing before."""
    role = Role(0, 0, (0, 1), (0, 1, 2), 0, (2,), (1,))
    moving = partition(pool, tmp_path, 0, role)
    assert count(moving) == PartitionTotals(hosted=1, led=1, reassigning=1)
    assert moving.replication_factor == 2


def test_a_muted_leader_counts_as_none(tmp_path: Path, pool: FilePool) -> None:
    silent = partition(pool, tmp_path, 0, Role(0, 0, (0,), (0, 1)))
    silent.mute()
    assert count(silent) == PartitionTotals(hosted=1)


def test_a_transaction_is_late_when_its_coordinator_has_lost_it(
    tmp_path: Path, pool: FilePool
) -> None:
    led = partition(pool, tmp_path, 0, Role(0, 0, (0,), (0,)))
    batch = build_batch(
        [(NOW, b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    led.append(bytearray(batch), 1, 9, NOW)
    assert count(led).producer_ids == 1
    just_ms = NOW + MAX_MS + LATE_AFTER_MS
    assert count(led, now_ms=just_ms).late_transactions == 0
    assert count(led, now_ms=just_ms + 1).late_transactions == 1


def test_the_broker_goes_on_after_each_run(tmp_path: Path, pool: FilePool) -> None:
    led = partition(pool, tmp_path, 0, Role(0, 0, (0,), (0,)))
    counting = count_partitions([led] * (3 * RUN + 1), 0, NOW, MAX_MS)
    assert len(list(counting)) == 4
    assert count(*[led] * (3 * RUN + 1)).led == 3 * RUN + 1
