"""Reading with whatever client: when it starts, and when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.cli.perf.consumers import LIST_MAX, read
from barnabas.cli.perf.meter import Meter
from barnabas.cli.perf.plan import Plan


class Source:
    """A consumer of a topic with a number of records, a list of which comes with each poll."""

    def __init__(self, records: int, *, joins_after: int = 0, list_max: int = LIST_MAX) -> None:
        self._left = records
        self._joins_after = joins_after
        self._list_max = list_max
        self.polls: list[int] = []

    def is_assigned(self) -> bool:
        return len(self.polls) >= self._joins_after

    def poll(self, timeout_s: float, most: int = LIST_MAX) -> list[bytes]:
        joined = self.is_assigned()
        self.polls.append(most)
        count = min(most, self._left, self._list_max) if joined else 0
        self._left -= count
        return [b"x" * 10] * count

    def measured(self, batch: list[bytes]) -> Iterator[tuple[bytes, int]]:
        return ((value, int(time.time() * 1000) - 5) for value in batch)

    def size(self, batch: list[bytes]) -> int:
        return sum(map(len, batch))

    def close(self) -> None:
        raise AssertionError("who opened it closes it")


def run(source: Source, stop: threading.Event | None = None, **options: object) -> Meter:
    meter = Meter()
    plan = Plan("consume", "t", **{"idle_s": 0.0, **options})
    read(source, plan, meter, stop or threading.Event())
    return meter


def test_all_that_is_there_is_read() -> None:
    meter = run(Source(1200))
    assert (meter.records, meter.bytes, meter.latencies.count) == (1200, 12_000, 0)


def test_no_more_is_read_than_is_wanted() -> None:
    source = Source(1200)
    assert run(source, records=700).records == 700
    assert source.polls == [LIST_MAX, 200]


def test_the_duration_ends_it() -> None:
    assert run(Source(10**9), duration_s=0.02).records >= LIST_MAX


def test_an_end_before_the_first_record_reads_nothing() -> None:
    stop = threading.Event()
    stop.set()
    assert run(Source(100), stop).records == 0
    assert run(Source(100, joins_after=5), stop, group="g").records == 0


def test_latencies_at_the_end_count_from_timestamps() -> None:
    latencies = run(Source(3), from_end=True).latencies
    assert latencies.count == 3
    assert 4_000 <= latencies.percentile(50) < 60_000_000


def test_joining_a_group_is_not_measured() -> None:
    """Although there is nothing to read meanwhile: that is no end."""
    source = Source(10, joins_after=4)
    assert run(source, group="g").records == 10
    assert len(source.polls) == 4 + 2


def test_members_poll_while_others_join() -> None:
    """A client that waited for the others in `begin` would keep them from joining."""
    order: list[str] = []

    class Ordered(Source):
        def poll(self, timeout_s: float, most: int = LIST_MAX) -> list[bytes]:
            order.append("poll")
            return super().poll(timeout_s, most)

    meter = Meter(lambda: order.append("others"))
    plan = Plan("consume", "t", group="g", idle_s=0.0)
    read(Ordered(1, joins_after=1), plan, meter, threading.Event())
    assert order[:3] == ["others", "poll", "others"]


@pytest.mark.parametrize("records", [0, 1])
def test_a_member_without_partitions_gives_up(
    monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    monkeypatch.setattr("barnabas.cli.perf.consumers.JOIN_S", 0.0)
    assert run(Source(records, joins_after=10**9), group="g").records == 0
