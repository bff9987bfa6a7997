"""There and back: what counts as back, and what a failure does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import Plan
from barnabas.cli.perf.round_trips import MARK_SIZE, RoundTrips


class Topic:
    """What is sent can be read after the next poll; records of others are between."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.sent: list[bytes] = []
        self.waits = 0
        self._unread: list[bytes] = []

    def send(self, payload: bytes, failed: Any) -> None:
        self.sent.append(payload)
        if self.failure is not None:
            failed(self.failure)
        else:
            self._unread += [b"short", b"\0" * 40, payload]

    def wait(self) -> None:
        self.waits += 1

    def poll(self, timeout_s: float, most: int = 500) -> list[bytes]:
        found, self._unread = self._unread, []
        return found

    def measured(self, batch: list[bytes]) -> Iterator[tuple[bytes | None, int]]:
        yield None, 0
        yield from ((value, 0) for value in batch)


def run(topic: Topic, **options: object) -> Meter:
    meter = Meter()
    RoundTrips(Plan("latency", "t", **options), meter, topic, topic).run(threading.Event())
    return meter


def test_one_record_at_a_time() -> None:
    topic = Topic()
    meter = run(topic, records=3)
    assert (meter.records, meter.bytes, meter.latencies.count) == (3, 300, 3)
    assert topic.waits == 4


def test_with_a_throughput_nothing_is_waited_for_but_the_end() -> None:
    topic = Topic()
    assert run(topic, records=5, throughput=1000.0).records == 5
    assert topic.waits == 1


def test_records_are_never_smaller_than_their_mark() -> None:
    topic = Topic()
    run(topic, records=1, record_size=1)
    assert [len(payload) for payload in topic.sent] == [MARK_SIZE]


@pytest.mark.parametrize("throughput", [None, 1000.0])
def test_a_record_that_is_not_written_ends_the_measurement(throughput: float | None) -> None:
    topic = Topic(ValueError("too large"))
    with pytest.raises(ValueError, match="too large"):
        run(topic, records=5, throughput=throughput)


def test_an_end_before_the_first_record_sends_nothing() -> None:
    topic, stop = Topic(), threading.Event()
    stop.set()
    RoundTrips(Plan("latency", "t", records=5), Meter(), topic, topic).run(stop)
    assert topic.sent == []
