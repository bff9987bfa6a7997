"""What was fetched and not yet taken: order, pauses, moves, failures, giving back."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.consumer.partition_fetch_state import PartitionFetch
from barnabas.consumer.position_events import (
    LogTruncated,
    NoCommittedOffset,
    OffsetOutOfRange,
    PartitionFailed,
    PositionFound,
)
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Assigned, Subscription
from barnabas.errors import (
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
)
from barnabas.kernels import ColumnStore, RecordCursor
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.structs import OffsetAndMetadata

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Desk:
    """A buffer with two assigned partitions, A at 0 and B at 0."""

    def __init__(self, policy: ResetPolicy = ResetPolicy.LATEST) -> None:
        self.subscription = Subscription(policy)
        self.subscription.assign([A, B])
        self.subscription.seek(A, 0)
        self.subscription.seek(B, 0)
        self.scheduled = 0
        self.buffer = FetchBuffer(self.subscription, ahead_max=100, schedule_fetch=self._schedule)
        self.fetches = {each: PartitionFetch(self.state(each)) for each in (A, B)}

    def _schedule(self) -> None:
        self.scheduled += 1

    def state(self, partition: TopicPartition) -> Assigned:
        return self.subscription.state(partition)

    def deliver(self, partition: TopicPartition, offset: int, count: int, cut: int = 0) -> None:
        rows = [(0, None, b"%d" % n) for n in range(offset, offset + count)]
        data = bytes(build_batch(rows, base_offset=offset, leader_epoch=3))
        data = data[: len(data) - cut]
        state, fetch = self.state(partition), self.fetches[partition]
        cursor = RecordCursor(data, *partition, offset, unpack=lambda codec, packed, count: packed)
        fetch.arrived += len(data)
        self.buffer.deliver(CompletedFetch(fetch, state, state.version, cursor, len(data)))

    def take(self, count: int = 100, only: Any = None) -> tuple[TopicPartition, list[int]] | None:
        run = self.buffer.take(count, only)
        if run is None:
            return None
        run.finish()
        return run.state.partition, [record.offset for record in run.records]


def test_in_the_order_of_arrival() -> None:
    """Chunks come as they arrived, in pieces as large as asked for."""
    desk = Desk()
    desk.deliver(A, 0, 5)
    desk.deliver(B, 0, 2)
    desk.deliver(A, 5, 2)
    assert desk.take(3) == (A, [0, 1, 2])
    assert desk.state(A).position == 3
    assert desk.take(3) == (A, [3, 4])
    assert desk.take() == (B, [0, 1])
    assert desk.take() == (A, [5, 6])
    assert desk.take() is None
    assert (desk.state(A).position, desk.state(A).leader_epoch) == (7, 3)
    assert desk.buffer.records == 9
    assert desk.buffer.is_empty


def test_bytes_are_released_when_a_chunk_is_used_up() -> None:
    """The network side hears of it only if the partition was full."""
    desk = Desk()
    desk.deliver(A, 0, 1)
    desk.take()
    assert desk.fetches[A].ahead == 0
    assert desk.scheduled == 0
    desk.deliver(A, 1, 50)
    desk.take(49)
    assert desk.fetches[A].ahead > 100
    desk.take(1)
    assert desk.fetches[A].ahead == 0
    assert desk.scheduled == 1


def test_what_is_worthless_is_dropped() -> None:
    """After a seek nothing of the old place is given, and its bytes are released."""
    desk = Desk()
    desk.deliver(A, 0, 5)
    desk.subscription.seek(A, 9)
    assert desk.take() is None
    assert desk.fetches[A].ahead == 0
    assert desk.state(A).position == 9


def test_pauses_and_selections() -> None:
    """Chunks of paused or unselected partitions wait where they are."""
    desk = Desk()
    desk.deliver(A, 0, 2)
    desk.deliver(B, 0, 2)
    desk.deliver(A, 2, 2)
    desk.subscription.pause(A)
    assert desk.take() == (B, [0, 1])
    assert desk.take() is None
    desk.subscription.resume(A)
    assert desk.take(only={B}) is None
    assert desk.take(only={A}) == (A, [0, 1])
    assert desk.take() == (A, [2, 3])


def test_positions_that_were_found() -> None:
    """They take effect at once, but only for those who still look."""
    desk = Desk()
    desk.subscription.request_reset(A)
    state = desk.state(A)
    desk.buffer.deliver(PositionFound(state, state.version, 42, 7))
    desk.buffer.deliver(PositionFound(desk.state(B), desk.state(B).version - 1, 99))
    desk.buffer.apply_positions()
    assert (state.position, state.leader_epoch, state.reset) == (42, 7, None)
    assert desk.state(B).position == 0
    assert desk.scheduled == 1


def test_nothing_committed() -> None:
    """The policy decides; without one the user is told until it decides."""
    desk = Desk()
    desk.buffer.deliver(NoCommittedOffset(desk.state(A), desk.state(A).version))
    desk.buffer.apply_positions()
    assert desk.state(A).reset == ResetPolicy.LATEST
    desk = Desk(ResetPolicy.NONE)
    desk.buffer.deliver(NoCommittedOffset(desk.state(A), desk.state(A).version))
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError):
            desk.take()
    desk.subscription.seek(A, 1)
    assert desk.take() is None


def test_out_of_range_comes_after_what_was_fetched() -> None:
    """First the records before it, then the reset, or the error, each time."""
    for policy in (ResetPolicy.EARLIEST, ResetPolicy.NONE):
        desk = Desk(policy)
        desk.deliver(A, 0, 2)
        state = desk.state(A)
        desk.buffer.deliver(OffsetOutOfRange(state, state.version, 2))
        assert desk.take() == (A, [0, 1])
        if policy is ResetPolicy.EARLIEST:
            assert desk.take() is None
            assert desk.state(A).reset == ResetPolicy.EARLIEST
        else:
            for _ in range(2):
                with pytest.raises(OffsetOutOfRangeError) as caught:
                    desk.take()
                assert caught.value.args[0] == {A: 2}


def test_truncation_comes_first() -> None:
    """What was read ahead of a cut log is not given any more."""
    desk = Desk()
    desk.deliver(A, 0, 5)
    desk.take(2)
    state = desk.state(A)
    desk.buffer.deliver(LogTruncated(state, state.version, 3, 1))
    assert desk.take() is None
    assert state.position == 2, "the user has not read what was cut: it is fetched again"
    desk.deliver(A, 2, 4)
    desk.take(3)
    desk.buffer.deliver(LogTruncated(state, state.version, 3, 1))
    assert desk.take() is None
    assert (state.position, state.leader_epoch) == (3, 1)
    desk.buffer.deliver(LogTruncated(state, state.version, None, -1))
    assert desk.take() is None
    assert desk.state(A).reset == ResetPolicy.LATEST


def test_truncation_without_a_policy() -> None:
    """The error tells up to where log and user agree, or that nobody knows."""
    for offset, agreed in ((1, OffsetAndMetadata(1, "", 4)), (None, None)):
        desk = Desk(ResetPolicy.NONE)
        state = desk.state(A)
        desk.subscription.seek(A, 2)
        desk.buffer.deliver(LogTruncated(state, state.version, offset, 4))
        with pytest.raises(LogTruncationError) as caught:
            desk.take()
        assert caught.value.divergent_offsets == {A: agreed}


def test_refusals_stay() -> None:
    """A failure is raised each time, until the partition is given up."""
    desk = Desk()
    state = desk.state(A)
    desk.buffer.deliver(PartitionFailed(state, state.version, RuntimeError("denied")))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="denied"):
            desk.take()
    desk.subscription.assign([B])
    assert desk.take() is None


def test_a_cut_batch() -> None:
    """Without one whole batch there is no way on: the user is told what to raise."""
    desk = Desk()
    desk.deliver(A, 0, 1, cut=1)
    for _ in range(3):
        with pytest.raises(RecordTooLargeError, match="t-0: the record at offset 0"):
            desk.take()
    fetch = desk.fetches[A]
    assert fetch.ahead > 0, "the bytes are still held"
    desk.subscription.seek(A, 9)
    assert desk.take() is None
    assert (fetch.ahead, desk.buffer.released) == (0, fetch.arrived)


def test_giving_back() -> None:
    """Records that were not given to the user come again, before everything else."""
    desk = Desk()
    desk.deliver(A, 0, 6)
    run = desk.buffer.take(4)
    assert run is not None
    desk.buffer.give_back(run, 1)
    assert desk.buffer.records == 1
    assert desk.take(2) == (A, [1, 2])
    assert desk.state(A).position == 3
    assert desk.take() == (A, [3])
    assert desk.state(A).position == 4
    assert desk.take() == (A, [4, 5])
    run = desk.buffer.take(1)
    assert run is None


def test_giving_back_after_a_move() -> None:
    """What belongs to an old place is not put back."""
    desk = Desk()
    desk.deliver(A, 0, 6)
    run = desk.buffer.take(4)
    assert run is not None
    desk.subscription.seek(A, 0)
    desk.buffer.give_back(run, 1)
    assert desk.take() is None


def test_columns() -> None:
    """Columns take what is there, of all partitions, and move the user."""
    desk = Desk()
    desk.deliver(A, 0, 3)
    desk.deliver(B, 0, 2)
    store = ColumnStore()
    assert desk.buffer.fill(store, 4) == 4
    assert (desk.state(A).position, desk.state(B).position) == (3, 1)
    assert desk.buffer.fill(store, 4) == 1
    assert desk.buffer.fill(store, 4) == 0
    assert store.count == 5


def test_columns_after_a_failure() -> None:
    """Rows before a failure are given first; the failure comes with the next call."""
    desk = Desk()
    state = desk.state(A)
    desk.deliver(A, 0, 2)
    desk.buffer.deliver(PartitionFailed(state, state.version, RuntimeError("denied")))
    store = ColumnStore()
    assert desk.buffer.fill(store, 9) == 2
    with pytest.raises(RuntimeError, match="denied"):
        desk.buffer.fill(store, 9)


def test_columns_after_a_cut_batch() -> None:
    """What is before it is given; it is told of in the next call, and in every later one."""
    desk = Desk()
    desk.deliver(A, 0, 2)
    desk.deliver(B, 0, 1, cut=1)
    store = ColumnStore()
    assert desk.buffer.fill(store, 100) == 2
    for _ in range(2):
        with pytest.raises(RecordTooLargeError, match="t-1: the record at offset 0"):
            desk.buffer.fill(store, 100)
    desk.subscription.seek(B, 9)
    assert desk.buffer.fill(store, 100) == 0


def test_columns_do_not_mix_with_decoded_records() -> None:
    """Records that were given back are fetched again for columns."""
    desk = Desk()
    desk.deliver(A, 0, 3)
    run = desk.buffer.take(3)
    assert run is not None
    desk.state(A).position = 1
    desk.buffer.give_back(run, 1)
    assert desk.buffer.fill(ColumnStore(), 9) == 0
    assert desk.state(A).position == 1
    assert desk.scheduled == 1
