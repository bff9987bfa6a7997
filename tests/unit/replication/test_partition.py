"""A partition as its leader keeps it: who may write, and how far readers may see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.config.topic import TopicOptions
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.isolation import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.records.builder import build_batch
from barnabas.replication.partition import Partition
from barnabas.replication.role import Role

NOW = 1_700_000_000_000
KEY = TopicPartition("t", 0)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Partition]:
    """Make a partition of broker 0, led by it in epoch 0 unless told otherwise."""

    def partition(lead: bool = True, **options: object) -> Partition:
        topic_options = TopicOptions.parse(
            {name.replace("_", "."): str(value) for name, value in options.items()}
        )
        log = PartitionLog.open(FilePool(DiskFiles()), f"{tmp_path}/t-0", KEY, topic_options, NOW)
        made = Partition(KEY, b"i" * 16, log, 0)
        if lead:
            made.assume(Role(0, 0, (0,), (0,)))
        return made

    return partition


def append(partition: Partition, acks: int = 1, count: int = 1) -> int:
    """Append; return the first offset."""
    batch = build_batch([(NOW, b"k", b"v")] * count)
    return partition.append(bytearray(batch), acks, 9, NOW).first_offset


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(RequestError) as refusal:
        call()
    return refusal.value.code


def test_only_the_leader_appends(make: Callable[..., Partition]) -> None:
    partition = make(lead=False)
    assert not partition.is_leader
    assert code_of(lambda: append(partition)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(partition.check_leader) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.assume(Role(1, 0, (1,), (0, 1)))
    assert code_of(lambda: append(partition)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.assume(Role(0, 1, (0,), (0, 1)))
    assert append(partition) == 0
    partition.resign()
    assert code_of(lambda: append(partition)) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_epochs(make: Callable[..., Partition]) -> None:
    """A client of an older or newer epoch is told which; -1 stands for any."""
    partition = make(lead=False)
    partition.assume(Role(0, 5, (0,), (0,)))
    partition.check_leader()
    partition.check_leader(5)
    assert code_of(lambda: partition.check_leader(4)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(lambda: partition.check_leader(6)) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_epochs_begin_at_the_logs_end(make: Callable[..., Partition]) -> None:
    """The log remembers where each epoch began; telling the same one again changes nothing."""
    partition = make()
    append(partition, count=3)
    partition.assume(Role(0, 2, (0,), (0,)))
    partition.assume(Role(0, 2, (0,), (0,)))
    append(partition)
    assert list(partition.log.leader_epochs) == [(0, 0), (2, 3)]
    assert partition.log.leader_epochs.end_offset_of(0, 4) == (0, 3)


def test_an_older_epoch_does_not_come_back(make: Callable[..., Partition]) -> None:
    partition = make(lead=False)
    partition.assume(Role(0, 5, (0,), (0,)))
    partition.assume(Role(0, 3, (0,), (0,)))
    assert partition.leader_epoch == 5


def test_readers_see_what_is_appended(make: Callable[..., Partition]) -> None:
    """With one replica and no flush policy the high watermark is the log's end."""
    partition = make()
    for offset in range(3):
        assert append(partition) == offset
        assert partition.log.high_watermark == offset + 1
        assert not partition.flush_owed
    assert partition.readable_end(READ_UNCOMMITTED) == 3
    assert partition.readable_end(READ_COMMITTED) == 3


def test_what_must_be_flushed_is_not_shown(make: Callable[..., Partition]) -> None:
    """flush.messages holds the high watermark back until the flush."""
    partition = make(flush_messages=2)
    append(partition)
    assert (partition.flush_owed, partition.log.high_watermark) == (False, 1)
    append(partition)
    assert (partition.flush_owed, partition.log.high_watermark) == (True, 1)
    append(partition)
    assert partition.log.high_watermark == 1
    partition.log.flush(NOW, 2)
    partition.flushed()
    assert (partition.flush_owed, partition.log.high_watermark) == (False, 3)
    append(partition)
    assert partition.flush_owed
    partition.log.flush(NOW)
    partition.flushed()
    assert (partition.flush_owed, partition.log.high_watermark) == (False, 4)


def test_a_flush_that_covers_a_part_shows_a_part(make: Callable[..., Partition]) -> None:
    """Appends that came during a flush wait for the next one."""
    partition = make(flush_messages=1)
    append(partition)
    flush = partition.log.begin_flush()
    assert flush is not None
    append(partition)
    flush.run()
    partition.log.finish_flush(flush, NOW)
    partition.flushed()
    assert (partition.flush_owed, partition.log.high_watermark) == (True, 1)


def test_the_high_watermark_never_goes_back(make: Callable[..., Partition]) -> None:
    """Nothing that a reader was shown is hidden again, whatever is told."""
    partition = make()
    append(partition)
    partition.log.configure(TopicOptions.parse({"flush.messages": "1"}))
    append(partition)
    assert partition.log.high_watermark == 1
    partition.assume(Role(0, 1, (0,), (0,)))
    partition.flushed()
    assert partition.log.high_watermark == 1


def test_a_follower_moves_no_watermark(make: Callable[..., Partition]) -> None:
    partition = make()
    append(partition)
    partition.assume(Role(1, 1, (1,), (0, 1)))
    partition.advance_high_watermark()
    assert partition.log.high_watermark == 1


def test_min_isr(make: Callable[..., Partition]) -> None:
    """acks=-1 needs enough replicas in sync; the minimum is at most what there is."""
    partition = make(min_insync_replicas=2)
    assert partition.min_isr == 1
    assert append(partition, acks=-1) == 0
    partition.assume(Role(0, 1, (0,), (0, 1, 2)))
    assert partition.min_isr == 2
    assert code_of(lambda: append(partition, acks=-1)) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert append(partition, acks=1) == 1
    partition.assume(Role(0, 1, (0, 1), (0, 1, 2)))
    assert append(partition, acks=-1) == 2


def test_a_mute_partition_is_led_by_nobody(make: Callable[..., Partition]) -> None:
    partition = make()
    append(partition)
    partition.mute()
    assert not partition.is_leader
    assert (partition.assigned_leader, partition.is_assigned_leader) == (0, True)
    for refused in (
        lambda: append(partition),
        partition.check_leader,
        partition.check_replica,
    ):
        assert code_of(refused) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log.log_end_offset == 1
    partition.assume(Role(0, 3, (0,), (0,)))
    assert not partition.is_leader, "a role that is told meanwhile is not shown"
    partition.unmute()
    assert partition.is_leader
    assert append(partition) == 1


def test_a_partition_that_awaits_its_role_is_shown_when_it_is_told(
    make: Callable[..., Partition],
) -> None:
    partition = make()
    assert not partition.confirm()
    partition.await_role()
    partition.mute()
    assert partition.confirm()
    assert not partition.is_leader
    partition.unmute()
    assert partition.is_leader


def test_what_the_controller_confirms_reaches_a_mute_leader(make: Callable[..., Partition]) -> None:
    """It would otherwise take its proposal to be under way for ever."""
    partition = make(lead=False)
    partition.assume(Role(0, 0, (0, 1), (0, 1)))
    proposal = partition._propose((0,))
    partition.mute()
    partition.proposal_accepted(proposal, (0,), 1)
    assert partition.isr == (0,)
    partition.unmute()
    assert partition.maximal_isr == {0}


def test_a_leader_notices_a_watermark_that_fell(make: Callable[..., Partition]) -> None:
    """In a new epoch it may be lower: the log was cut while another led."""
    partition = make()
    append(partition, count=3)
    partition.log.truncate_to(0, NOW)
    with pytest.raises(AssertionError, match="fell"):
        append(partition)
    with pytest.raises(AssertionError, match="fell"):
        partition.advance_high_watermark()
    partition.assume(Role(0, 1, (0,), (0,)))
    assert append(partition) == 1
