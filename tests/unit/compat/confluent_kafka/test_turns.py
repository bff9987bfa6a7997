"""A lock that threads get in turn."""

from __future__ import annotations

import threading

from barnabas.compat.confluent_kafka.turns import Turns


def test_a_thread_that_takes_it_again_and_again_lets_others_in() -> None:
    turns, over, got = Turns(), threading.Event(), threading.Event()
    begun = threading.Event()

    def greedy() -> None:
        while not over.is_set():
            with turns:
                begun.set()
                got.wait(0.001)

    thread = threading.Thread(target=greedy)
    thread.start()
    try:
        assert begun.wait(30)
        for _ in range(20):
            with turns:
                pass
        got.set()
    finally:
        over.set()
        thread.join(30)
    assert got.is_set()


def test_its_thread_may_take_it_again() -> None:
    turns, entered = Turns(), threading.Event()

    def other() -> None:
        with turns:
            entered.set()

    thread = threading.Thread(target=other)
    with turns:
        thread.start()
        with turns:
            pass
        assert not entered.wait(0.05)
    assert entered.wait(30)
    thread.join(30)
