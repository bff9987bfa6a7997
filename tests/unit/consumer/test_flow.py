"""What hinders the fetching of one partition, and when its offset must be checked."""

from __future__ import annotations

from barnabas.consumer.flow import Flow, Obstacle
from barnabas.consumer.subscription import Assigned
from barnabas.model.ids import TopicPartition

P = TopicPartition("t", 0)


def flow(position: int | None = 5, leader_epoch: int = -1) -> Flow:
    state = Assigned(P)
    if position is not None:
        state.seek(position, leader_epoch)
    return Flow(state)


def test_nothing_hinders() -> None:
    """A partition with a position is fetched from there."""
    assert flow().obstacle(0, 100) is None
    assert flow().offset == 5


def test_what_hinders() -> None:
    """Each reason is told, the one that the user can change first."""
    assert flow(None).obstacle(0, 100) is Obstacle.NO_POSITION
    paused = flow()
    paused.state.paused = True
    assert paused.obstacle(0, 100) is Obstacle.PAUSED
    halted = flow()
    halted.halted = True
    assert halted.obstacle(0, 100) is Obstacle.HALTED
    failed = flow()
    failed.failed(RuntimeError(), retry_ms=50)
    assert failed.obstacle(49, 100) is Obstacle.BACKING_OFF
    assert failed.obstacle(50, 100) is None
    fetching = flow()
    fetching.fetching = 5
    assert fetching.obstacle(0, 100) is Obstacle.FETCHING
    leaderless = flow()
    leaderless.leaderless_since_ms = 3
    assert leaderless.obstacle(9, 100) is Obstacle.NO_LEADER
    gone = flow()
    gone.state.give_up()
    assert gone.obstacle(0, 100) is Obstacle.GIVEN_UP
    unproven = flow()
    unproven.validating = True
    assert unproven.obstacle(0, 100) is Obstacle.UNPROVEN


def test_reading_ahead_is_bounded() -> None:
    """What came counts until the user's side is done with it."""
    ahead = flow()
    ahead.received(60, next_offset=9, epoch=2, leader_epoch=3)
    assert (ahead.offset, ahead.epoch, ahead.ahead) == (9, 2, 60)
    assert ahead.obstacle(0, 100) is None
    ahead.received(40, next_offset=12, epoch=-1, leader_epoch=3)
    assert ahead.epoch == 2
    assert ahead.obstacle(0, 100) is Obstacle.FULL
    ahead.released += 60
    assert ahead.obstacle(0, 100) is None


def test_following_the_user() -> None:
    """After a seek everything begins anew, except what is still held in memory."""
    moved = flow()
    moved.received(60, next_offset=9, epoch=2, leader_epoch=3)
    moved.halted = True
    moved.fetching = 9
    moved.follow_user()
    assert moved.offset == 9, "nothing happened"
    moved.state.seek(2, 1)
    moved.follow_user()
    assert (moved.offset, moved.epoch, moved.leader_epoch) == (2, 1, -1)
    assert not moved.halted
    assert moved.fetching is None
    assert moved.ahead == 60


def test_when_a_position_must_be_checked() -> None:
    """Only a later leader epoch than that of the last record leaves a doubt."""
    unknown = flow(5)
    assert not unknown.meet_leader(7)
    assert unknown.leader_epoch == 7
    same = flow(5, leader_epoch=7)
    assert not same.meet_leader(7)
    later = flow(5, leader_epoch=6)
    assert later.meet_leader(7)
    later.proven()
    assert not later.meet_leader(7)
    assert later.meet_leader(8)
    later.validating = True
    assert not later.meet_leader(9), "one check at a time"


def test_recovery() -> None:
    """An answer ends the pauses."""
    failed = flow()
    failed.failures = 3
    failed.failed(RuntimeError("once"), retry_ms=500)
    failed.recovered()
    assert (failed.failures, failed.failure) == (0, None)
    assert failed.obstacle(0, 100) is None
