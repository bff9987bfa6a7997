"""Who is started, stopped and waited for: decided from what happened, and when."""

from __future__ import annotations

import pytest

from barnabas.workers.crew import (
    IN_SYNC_S_MAX,
    LEAVE_S_MAX,
    RESTART_S_MAX,
    RESTART_S_MIN,
    STABLE_S,
    Crew,
    GiveUpRolling,
    Kill,
    Leave,
    Rolled,
    Start,
    State,
)


def serving(count: int = 3) -> Crew:
    """Return a crew of which all are in sync, at the time 0."""
    crew = Crew(count)
    assert crew.start(0) == [Start(number) for number in range(1, count + 1)]
    for number in range(1, count + 1):
        assert crew.ready(number, 0) == []
        assert crew.in_sync(number, 0) == []
    assert crew.was_ready
    return crew


def test_the_start_is_over_when_all_are_ready() -> None:
    crew = Crew(2)
    crew.start(0)
    crew.ready(1, 1)
    assert not crew.was_ready
    crew.in_sync(1, 1)
    crew.ready(2, 2)
    assert crew.was_ready
    assert crew.due_s is None


def test_one_that_cannot_start_ends_all() -> None:
    """A port that is taken is no reason to try again and again."""
    crew = Crew(3)
    crew.start(0)
    crew.ready(1, 1)
    assert crew.ended(2, 1, 2) == [Leave(1), Leave(3)]
    assert crew.failed == 2
    crew.ended(3, 0, 2)
    assert not crew.is_done
    crew.ended(1, 0, 3)
    assert crew.is_done


def test_one_that_dies_is_started_again_later_each_time() -> None:
    crew = serving()
    pauses = []
    now_s = 1.0
    for _ in range(10):
        assert crew.ended(2, -9, now_s) == []
        assert crew.state_of(2) is State.WAITING
        due_s = crew.due_s
        assert due_s == crew.restart_s(2)
        assert due_s is not None
        assert crew.tick(due_s - 0.001) == []
        assert crew.tick(due_s) == [Start(2)]
        assert crew.restart_s(2) is None
        pauses.append(due_s - now_s)
        now_s = due_s + 1
        crew.ready(2, now_s)
    assert pauses[0] == pytest.approx(RESTART_S_MIN)
    assert pauses[1] == pytest.approx(2 * RESTART_S_MIN)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(RESTART_S_MAX)


def test_one_that_served_for_long_is_started_soon() -> None:
    crew = serving()
    for now_s in (1, 2, 3):
        crew.ended(1, -9, now_s)
        crew.tick(now_s + RESTART_S_MAX)
    crew.ready(1, 100)
    crew.ended(1, -9, 100 + STABLE_S)
    assert crew.due_s == pytest.approx(100 + STABLE_S + RESTART_S_MIN)


def test_all_leave_in_turn_the_last_first() -> None:
    crew = serving()
    assert crew.stop(10) == [Leave(3)]
    assert crew.stop(10) == []
    assert crew.ended(3, 0, 11) == [Leave(2)]
    assert crew.ended(2, 0, 12) == [Leave(1)]
    assert not crew.is_done
    assert crew.ended(1, 0, 13) == []
    assert crew.is_done
    assert crew.unclean == {}
    assert crew.failed is None


def test_one_that_does_not_leave_is_killed_and_named() -> None:
    crew = serving(2)
    crew.stop(10)
    assert crew.due_s == 10 + LEAVE_S_MAX
    assert crew.tick(10 + LEAVE_S_MAX) == [Kill(2)]
    assert crew.ended(2, -9, 80) == [Leave(1)]
    crew.ended(1, 0, 81)
    assert crew.unclean == {2: -9}


def test_a_stop_waits_for_nobody_who_is_not_there() -> None:
    crew = serving()
    crew.ended(3, -9, 1)
    assert crew.stop(1) == [Leave(2)]
    assert crew.due_s == 1 + LEAVE_S_MAX
    crew.ended(1, -9, 2)  # by itself, just then
    crew.ended(2, 0, 2)
    assert crew.is_done
    assert crew.unclean == {1: -9}


def test_what_is_starting_leaves_at_once() -> None:
    crew = Crew(2)
    crew.start(0)
    assert crew.stop(1) == [Leave(1), Leave(2)]
    crew.ended(2, -15, 2)
    crew.ended(1, 143, 2)
    assert crew.is_done
    assert crew.unclean == {}, "they had opened nothing"


def test_a_rolling_restart_waits_until_all_are_in_sync() -> None:
    crew = serving()
    assert crew.roll(10) == [Leave(1)]
    assert crew.ended(1, 0, 11) == [Start(1)]
    assert crew.ready(1, 12) == []
    assert crew.in_sync(1, 13) == [Leave(2)]
    assert crew.ended(2, 0, 14) == [Start(2)]
    assert crew.ready(2, 15) == []
    crew.ended(3, -9, 15)  # a crash in between
    assert crew.in_sync(2, 16) == []
    assert crew.tick(17) == [Start(3)]
    crew.ready(3, 18)
    assert crew.in_sync(3, 19) == [Leave(3)]
    crew.ended(3, 0, 20)
    crew.ready(3, 21)
    assert crew.in_sync(3, 22) == [Rolled()]
    assert crew.due_s is None


def test_a_second_round_begins_at_the_first_worker() -> None:
    crew = serving(2)
    crew.roll(10)
    assert crew.roll(11) == []
    crew.ended(1, 0, 12)
    crew.ready(1, 12)
    assert crew.in_sync(1, 12) == [Leave(1)]


def test_a_rolling_restart_is_given_up_when_replicas_stay_behind() -> None:
    crew = serving()
    crew.roll(10)
    crew.ended(1, 0, 11)
    crew.ready(1, 12)
    assert crew.due_s == 10 + IN_SYNC_S_MAX
    assert crew.tick(10 + IN_SYNC_S_MAX) == [GiveUpRolling((1,))]
    assert crew.in_sync(1, 999) == []
    assert crew.due_s is None


def test_a_stop_ends_a_rolling_restart() -> None:
    crew = serving()
    crew.roll(10)
    assert crew.stop(11) == []  # worker 1 is leaving
    assert crew.ended(1, 0, 12) == [Leave(3)]
    assert crew.ended(3, 0, 13) == [Leave(2)]
    crew.ended(2, 0, 14)
    assert crew.is_done


def test_nothing_rolls_before_all_were_ready_or_while_they_leave() -> None:
    crew = Crew(2)
    crew.start(0)
    assert crew.roll(1) == []
    crew = serving()
    crew.stop(1)
    assert crew.roll(2) == []
