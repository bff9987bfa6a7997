"""A member's clocks, with the time passed in."""

from __future__ import annotations

from barnabas.consumer.group.heartbeat_timer import HeartbeatTimer


def timer() -> HeartbeatTimer:
    made = HeartbeatTimer(session_timeout_ms=1000, interval_ms=100, max_poll_interval_ms=5000)
    made.poll(0)
    made.begin(0)
    return made


def test_heartbeats_go_every_interval() -> None:
    """One interval after the last one was sent, whenever the answer came."""
    heartbeats = timer()
    assert not heartbeats.is_due(99)
    assert heartbeats.wait_ms(40) == 60
    assert heartbeats.is_due(100)
    heartbeats.send(100)
    heartbeats.answer(150)
    assert not heartbeats.is_due(199)
    assert heartbeats.is_due(200)


def test_a_failed_heartbeat_is_repeated_sooner_but_not_later_than_the_next() -> None:
    """The pause counts, up to the interval."""
    heartbeats = timer()
    heartbeats.send(100)
    heartbeats.fail(110, 20)
    assert heartbeats.is_due(130)
    heartbeats.send(130)
    heartbeats.fail(140, 10_000)
    assert not heartbeats.is_due(239)
    assert heartbeats.is_due(240)
    assert heartbeats.failures == 2
    heartbeats.answer(250)
    assert heartbeats.failures == 0


def test_the_end_of_a_session_is_told_once_until_there_is_a_new_one() -> None:
    """A warning per session, not per heartbeat."""
    heartbeats = timer()
    assert not heartbeats.ends_session(999)
    assert heartbeats.ends_session(1000)
    assert not heartbeats.ends_session(1100)
    heartbeats.answer(1200)
    assert not heartbeats.ends_session(2199)
    assert heartbeats.ends_session(2200)


def test_the_user_is_away_when_it_does_not_poll() -> None:
    """max.poll.interval.ms counts from the last poll, and bounds how long the heart sleeps."""
    heartbeats = timer()
    assert not heartbeats.is_poll_overdue(4999)
    assert heartbeats.is_poll_overdue(5000)
    heartbeats.poll(4000)
    assert not heartbeats.is_poll_overdue(8999)
    heartbeats.send(8995)
    assert heartbeats.wait_ms(8995) == 5


def test_nobody_is_away_before_the_first_poll() -> None:
    """A consumer that was just made has all the time."""
    assert not HeartbeatTimer(1000, 100, 5000).is_poll_overdue(10**9)


def test_news_make_the_next_heartbeat_due_at_once() -> None:
    """And never later than it was."""
    heartbeats = timer()
    heartbeats.send_now(30)
    assert heartbeats.is_due(30)
    heartbeats.send_now(10)
    assert heartbeats.is_due(10)
