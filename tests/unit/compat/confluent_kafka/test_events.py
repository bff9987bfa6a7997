"""Calls that are made in the thread that polls."""

from __future__ import annotations

import threading

import pytest

from barnabas.compat.confluent_kafka.events import Events, seconds


def test_calls_are_made_in_order_by_the_thread_that_serves() -> None:
    events, made = Events(), []
    for number in range(3):
        events.add(lambda number=number: made.append((number, threading.get_ident())))  # type: ignore[misc]
    assert made == []
    assert events.wait(None)
    assert events.serve() == 3
    assert made == [(number, threading.get_ident()) for number in range(3)]
    assert (events.serve(), events.wait(0)) == (0, False)


def test_a_call_that_raises_leaves_the_others_to_the_next_poll() -> None:
    events, made = Events(), []

    def fail() -> None:
        raise LookupError

    events.add(fail)
    events.add(lambda: made.append(1))
    with pytest.raises(LookupError):
        events.serve()
    assert (made, events.serve(), made) == ([1], 1, [1])


def test_a_call_may_add_another() -> None:
    events, made = Events(), []
    events.add(lambda: events.add(lambda: made.append(1)))
    assert (events.serve(), made) == (2, [1])


def test_a_thread_that_waits_learns_of_what_another_has_served() -> None:
    events, left = Events(), [1]
    waiting = threading.Event()
    outcome: list[bool] = []

    def look() -> bool:
        waiting.set()
        return not left

    thread = threading.Thread(target=lambda: outcome.append(events.wait(30, until=look)))
    thread.start()
    assert waiting.wait(30)
    events._queue.append(left.clear)  # added without a sign, so that this thread serves it
    assert events.serve() == 1
    thread.join(30)
    assert outcome == [True]


def test_timeouts() -> None:
    assert (seconds(-1), seconds(None), seconds(0), seconds(2)) == (None, None, 0.0, 2.0)
