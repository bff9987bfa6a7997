"""What hinders the fetching of one partition, and when its offset must be checked."""

from __future__ import annotations

from barnabas.consumer.partition_fetch_state import BlockedBy, PartitionFetch
from barnabas.consumer.subscription import Assigned
from barnabas.model.ids import TopicPartition

P = TopicPartition("t", 0)


def fetch(position: int | None = 5, leader_epoch: int = -1) -> PartitionFetch:
    state = Assigned(P)
    if position is not None:
        state.seek(position, leader_epoch)
    return PartitionFetch(state)


def test_nothing_hinders() -> None:
    """A partition with a position is fetched from there."""
    assert fetch().blocked_by(0, 100) is None
    assert fetch().offset == 5


def test_what_hinders() -> None:
    """Each reason is told, the one that the user can change first."""
    assert fetch(None).blocked_by(0, 100) is BlockedBy.NO_POSITION
    paused = fetch()
    paused.state.paused = True
    assert paused.blocked_by(0, 100) is BlockedBy.PAUSED
    halted = fetch()
    halted.halted = True
    assert halted.blocked_by(0, 100) is BlockedBy.HALTED
    failed = fetch()
    failed.failed(RuntimeError(), retry_ms=50)
    assert failed.blocked_by(49, 100) is BlockedBy.BACKING_OFF
    assert failed.blocked_by(50, 100) is None
    fetching = fetch()
    fetching.fetching = 5
    assert fetching.blocked_by(0, 100) is BlockedBy.FETCHING
    leaderless = fetch()
    leaderless.leaderless_since_ms = 3
    assert leaderless.blocked_by(9, 100) is BlockedBy.NO_LEADER
    gone = fetch()
    gone.state.give_up()
    assert gone.blocked_by(0, 100) is BlockedBy.REVOKED
    unvalidated = fetch()
    unvalidated.validating = True
    assert unvalidated.blocked_by(0, 100) is BlockedBy.UNVALIDATED


def test_reading_ahead_is_bounded() -> None:
    """What came counts until the user's side is done with it."""
    ahead = fetch()
    ahead.received(60, next_offset=9, epoch=2, leader_epoch=3)
    assert (ahead.offset, ahead.epoch, ahead.ahead) == (9, 2, 60)
    assert ahead.blocked_by(0, 100) is None
    ahead.received(40, next_offset=12, epoch=-1, leader_epoch=3)
    assert ahead.epoch == 2
    assert ahead.blocked_by(0, 100) is BlockedBy.FULL
    ahead.released += 60
    assert ahead.blocked_by(0, 100) is None


def test_following_the_user() -> None:
    """After a seek everything begins anew, except what is still held in memory."""
    moved = fetch()
    moved.received(60, next_offset=9, epoch=2, leader_epoch=3)
    moved.halted = True
    moved.fetching = 9
    moved.follow_position()
    assert moved.offset == 9, "nothing happened"
    moved.state.seek(2, 1)
    moved.follow_position()
    assert (moved.offset, moved.epoch, moved.leader_epoch) == (2, 1, -1)
    assert not moved.halted
    assert moved.fetching is None
    assert moved.ahead == 60


def test_when_a_position_must_be_checked() -> None:
    """Only a later leader epoch than that of the last record leaves a doubt."""
    unknown = fetch(5)
    assert not unknown.must_validate(7)
    assert unknown.leader_epoch == 7
    same = fetch(5, leader_epoch=7)
    assert not same.must_validate(7)
    later = fetch(5, leader_epoch=6)
    assert later.must_validate(7)
    later.validated()
    assert not later.must_validate(7)
    assert later.must_validate(8)
    later.validating = True
    assert not later.must_validate(9), "one check at a time"


def test_recovery() -> None:
    """An answer ends the pauses."""
    failed = fetch()
    failed.failures = 3
    failed.failed(RuntimeError("once"), retry_ms=500)
    failed.recovered()
    assert (failed.failures, failed.failure) == (0, None)
    assert failed.blocked_by(0, 100) is None
