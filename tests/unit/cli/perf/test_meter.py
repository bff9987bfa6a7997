"""What a client did, and what several did together."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.perf import meter as module
from barnabas.cli.perf.meter import Figures, Meter


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now_s = 50.0
        self.cpu_s = 3.0

    def perf_counter(self) -> float:
        return self.now_s

    def process_time(self) -> float:
        return self.cpu_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def test_the_clock_starts_when_the_others_are_there(clock: Clock) -> None:
    def others() -> None:
        clock.now_s += 9

    meter = Meter(others)
    assert meter.seconds == 0.0
    meter.begin()
    clock.now_s += 2
    assert meter.seconds == 2.0
    clock.cpu_s += 1.5
    meter.end()
    clock.now_s += 5
    assert (meter.seconds, meter.cpu_s) == (2.0, 1.5)


def test_waiting_for_more_is_not_part_of_reading(clock: Clock) -> None:
    meter = Meter()
    meter.begin()
    clock.now_s += 4
    meter.read(10, 1000)
    clock.now_s += 3
    meter.stop_at_last()
    assert (meter.seconds, meter.records, meter.bytes) == (4.0, 10, 1000)


def test_latencies_end_when_records_are_written(clock: Clock) -> None:
    meter = Meter()
    meter.begin()
    meter.succeeded(clock.now_s - 0.0015, 100)
    meter.failed(ValueError("too large"))
    meter.failed(ValueError())
    assert (meter.latencies.count, meter.latencies.total) == (1, pytest.approx(1500, abs=1))
    assert (meter.records, meter.failures, meter.first_failure) == (1, 2, "too large")


def test_a_failure_without_words_has_its_name() -> None:
    meter = Meter()
    meter.failed(TimeoutError())
    assert meter.first_failure == "TimeoutError"


def test_clients_that_worked_together_add_up(clock: Clock) -> None:
    figures = Figures()
    assert (figures.records_per_s, figures.mb_per_s) == (0.0, 0.0)
    for seconds, size in ((2.0, 1 << 20), (4.0, 3 << 20)):
        meter = Meter()
        meter.begin()
        clock.now_s += seconds
        meter.read(100, size)
        meter.succeeded(clock.now_s - 0.001, 0)
        clock.cpu_s += 1
        meter.end()
        figures.add(json.loads(json.dumps(meter.document())))
    assert (figures.records, figures.seconds, figures.cpu_s) == (202, 4.0, 2.0)
    assert (figures.records_per_s, figures.mb_per_s) == (50.5, 1.0)
    assert figures.latencies.count == 2
