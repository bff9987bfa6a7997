"""Signals that come while Spark starts."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from barnabas.cli.termination import ends_on_sigterm
from barnabas.spark.session import signals_kept


def test_an_interrupt_waits_for_the_end_of_the_start() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = []

    def start() -> None:
        with signals_kept():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("started")
            # As PySpark does.
            signal.signal(signal.SIGINT, lambda number, frame: done.append("taken"))

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_termination_waits_as_well() -> None:
    done = []
    with ends_on_sigterm():
        with signals_kept():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("started")
        done.append("not reached")
    assert done == ["started"]


def test_other_threads_have_no_signals() -> None:
    found = []

    def start() -> None:
        with signals_kept():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
