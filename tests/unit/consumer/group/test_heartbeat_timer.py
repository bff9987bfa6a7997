"""A member's clocks, with the time passed in."""

from __future__ import annotations

from barnabas.consumer.group.heartbeat_timer import HeartbeatTimer


def pulse() -> HeartbeatTimer:
    made = HeartbeatTimer(session_timeout_ms=1000, interval_ms=100, max_poll_interval_ms=5000)
    made.poll(0)
    made.begin(0)
    return made


def test_heartbeats_go_every_interval() -> None:
    """One interval after the last one was sent, whenever the answer came."""
    beating = pulse()
    assert not beating.is_due(99)
    assert beating.wait_ms(40) == 60
    assert beating.is_due(100)
    beating.send(100)
    beating.answer(150)
    assert not beating.is_due(199)
    assert beating.is_due(200)


def test_a_failed_heartbeat_is_repeated_sooner_but_not_later_than_the_next() -> None:
    """The pause counts, up to the interval."""
    beating = pulse()
    beating.send(100)
    beating.fail(110, 20)
    assert beating.is_due(130)
    beating.send(130)
    beating.fail(140, 10_000)
    assert not beating.is_due(239)
    assert beating.is_due(240)
    assert beating.failures == 2
    beating.answer(250)
    assert beating.failures == 0


def test_the_end_of_a_session_is_told_once_until_there_is_a_new_one() -> None:
    """A warning per session, not per heartbeat."""
    beating = pulse()
    assert not beating.ends_session(999)
    assert beating.ends_session(1000)
    assert not beating.ends_session(1100)
    beating.answer(1200)
    assert not beating.ends_session(2199)
    assert beating.ends_session(2200)


def test_the_user_is_away_when_it_does_not_poll() -> None:
    """max.poll.interval.ms counts from the last poll, and bounds how long the heart sleeps."""
    beating = pulse()
    assert not beating.is_poll_overdue(4999)
    assert beating.is_poll_overdue(5000)
    beating.poll(4000)
    assert not beating.is_poll_overdue(8999)
    beating.send(8995)
    assert beating.wait_ms(8995) == 5


def test_nobody_is_away_before_the_first_poll() -> None:
    """A consumer that was just made has all the time."""
    assert not HeartbeatTimer(1000, 100, 5000).is_poll_overdue(10**9)


def test_news_make_the_next_heartbeat_due_at_once() -> None:
    """And never later than it was."""
    beating = pulse()
    beating.send_now(30)
    assert beating.is_due(30)
    beating.send_now(10)
    assert beating.is_due(10)
