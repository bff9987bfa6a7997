"""Starts of Spark: signals that come meanwhile, and masters that do not answer."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.model.errors import ConfigError
from barnabas.spark.session import (
    NO_ANSWER,
    apart,
    check_master,
    close_session,
    hush,
    is_not_of_py4j,
    is_registered,
    signals_kept,
    why_not_started,
)


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
    done: list[Any] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: done.append(number))
    try:
        with signals_kept():
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("started")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done == ["started", signal.SIGTERM]


def test_a_second_signal_does_not_wait() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = []
    with pytest.raises(KeyboardInterrupt), signals_kept():  # noqa: PT012
        try:
            os.kill(os.getpid(), signal.SIGINT)
            done.append("started")
            os.kill(os.getpid(), signal.SIGINT)
            done.append("not reached")
        finally:
            done.append("closed")
    assert done == ["started", "closed"]
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_done_apart_has_another_thread() -> None:
    assert apart(threading.current_thread) is not threading.current_thread()


def test_an_interrupt_does_not_wait_for_what_is_done_apart() -> None:
    over = threading.Event()
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        apart(over.wait)
    over.set()


def test_a_session_is_closed_with_what_an_interrupt_has_left_running() -> None:
    """A thread that is inside of Arrow when the interpreter shuts down aborts the process."""
    stopped, ended = threading.Event(), []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        stopped.wait()
        ended.append(sum(range(5_000_000)))  # takes longer than the stop

    with pytest.raises(KeyboardInterrupt):
        apart(work)
    session: Any = SimpleNamespace(stop=stopped.set)
    close_session(session)
    assert ended


def test_what_is_raised_apart_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        apart(fail)


def test_other_threads_have_no_signals() -> None:
    found = []

    def start() -> None:
        with signals_kept():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]


@pytest.mark.parametrize(
    ("master", "number", "stopped", "expected"),
    [
        ("spark://head:7077", "app-20260102030405-0001", False, True),
        ("spark://head:7077", "app-20260102030405-0001", True, False),
        ("spark://head:7077", "spark-application-1790000000000", False, False),
        ("k8s://head", "spark-application-1790000000000", False, True),
        ("local[2]", "local-1790000000000", False, True),
    ],
)
def test_an_application_without_an_id_was_not_taken(
    master: str, number: str, stopped: bool, expected: bool
) -> None:
    application = SimpleNamespace(applicationId=lambda: number, isStopped=lambda: stopped)
    context: Any = SimpleNamespace(master=master, _jsc=SimpleNamespace(sc=lambda: application))
    assert is_registered(context) is expected


def test_what_spark_says_of_a_master_that_is_none_is_put_into_words() -> None:
    assert why_not_started(Exception("Cannot call methods on a stopped SparkContext.\nat")) == (
        NO_ANSWER
    )
    assert why_not_started(Exception("Could not parse Master URL: 'x'\n\tat org")) == (
        "Could not parse Master URL: 'x'"
    )


@pytest.mark.parametrize("master", ["local[2]", "local", "yarn", "k8s://https://nowhere:1"])
def test_what_is_no_standalone_master_is_left_to_spark(master: str) -> None:
    check_master(master)


def test_one_that_listens_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        check_master(f"spark://127.0.0.1:{port}")
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")


def test_where_nobody_listens_is_told_with_the_option() -> None:
    with pytest.raises(ConfigError) as failure:
        check_master("spark://127.0.0.1:1,localhost:1")
    said = str(failure.value)
    assert said.startswith("--master spark://127.0.0.1:1,localhost:1: no Spark master listens")
    assert "127.0.0.1:1: Connection refused; localhost:1: Connection refused" in said


@pytest.mark.parametrize("address", ["head", "head:", ":7077", "head:port", "a:1,"])
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match=r"must be HOST:PORT|no Spark master listens"):
        check_master(f"spark://{address}")


def test_a_port_that_no_machine_has_is_told() -> None:
    with pytest.raises(ConfigError, match="no Spark master listens there"):
        check_master("spark://127.0.0.1:99999")


def test_what_py4j_logs_of_a_jvm_that_is_gone_is_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    root = logging.getLogger()
    hush(SimpleNamespace(_accumulatorServer=SimpleNamespace()))
    try:
        for path in ("py4j/java_gateway.py", "py4j/clientserver.py", "program.py"):
            record = root.makeRecord("root", logging.ERROR, path, 1, path, (), None)
            root.handle(record)
    finally:
        root.removeFilter(is_not_of_py4j)
    assert caplog.messages == ["program.py"]
