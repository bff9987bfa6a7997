"""Sending with whatever client: transactions, pace and ends."""

from __future__ import annotations

import threading
import time

from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import Plan
from barnabas.cli.perf.producers import Transactions, send_all


class Recorder:
    """A producer that writes each record at once, and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def send(self, payload: bytes, started_s: float, meter: Meter) -> None:
        self.calls.append("send")
        meter.succeeded(started_s, len(payload))

    def begin(self) -> None:
        self.calls.append("begin")

    def commit(self) -> None:
        self.calls.append("commit")

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self) -> None:
        raise AssertionError("who opened it closes it")


def test_all_records_are_sent_and_flushed() -> None:
    producer, meter = Recorder(), Meter()
    send_all(producer, Plan("produce", "t", records=3), meter, threading.Event())
    assert producer.calls == ["send", "send", "send", "flush"]
    assert (meter.records, meter.bytes, meter.latencies.count) == (3, 300, 3)


def test_each_record_is_in_a_transaction_and_the_last_one_is_committed() -> None:
    producer = Recorder()
    plan = Plan("produce", "t", records=2, transaction_ms=60_000)
    send_all(producer, plan, Meter(), threading.Event())
    assert producer.calls == ["begin", "send", "send", "commit", "flush"]


def test_a_transaction_that_is_over_makes_room_for_the_next() -> None:
    producer = Recorder()
    plan = Plan("produce", "t", records=2, transaction_ms=0.0)
    send_all(producer, plan, Meter(), threading.Event())
    assert producer.calls == ["begin", "send", "commit", "begin", "send", "commit", "flush"]


def test_an_end_before_the_first_record_leaves_nothing_open() -> None:
    producer, stop = Recorder(), threading.Event()
    stop.set()
    send_all(producer, Plan("produce", "t", transaction_ms=1.0), Meter(), stop)
    assert producer.calls == ["flush"]


def test_transactions_are_as_long_as_they_should_be() -> None:
    transactions = Transactions(Plan("produce", "t", transaction_ms=500.0))
    assert transactions.is_due(10.0)
    transactions.opened(10.0)
    assert transactions.is_open
    assert not transactions.is_due(10.4)
    assert transactions.is_due(10.5)
    assert not Transactions(Plan("produce", "t")).is_due(10.0)
