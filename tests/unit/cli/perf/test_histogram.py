"""Latencies in buckets: what is kept of them, and how exact it is."""

from __future__ import annotations

import json
import random
from math import ceil

import pytest

from barnabas.cli.perf.histogram import VALUE_MAX, Bar, LatencyHistogram


def histogram(*values: int) -> LatencyHistogram:
    made = LatencyHistogram()
    for value in values:
        made.add(value)
    return made


def test_small_latencies_are_exact() -> None:
    made = histogram(*range(256))
    assert [made.percentile(percent) for percent in (0, 50, 100)] == [0, 127, 255]
    assert (made.count, made.mean, made.max) == (256, 127.5, 255)


@pytest.mark.parametrize("percent", [1, 50, 90, 99, 99.9, 100])
def test_percentiles_are_within_one_percent(percent: float) -> None:
    chosen = random.Random(7)
    values = sorted(int(chosen.lognormvariate(7, 2)) for _ in range(20_000))
    exact = values[ceil(len(values) * percent / 100) - 1]
    assert histogram(*values).percentile(percent) == pytest.approx(exact, rel=0.01)


def test_percentiles_do_not_exceed_the_maximum() -> None:
    assert histogram(1000).percentile(99.9) == 1000


def test_nothing_has_no_latency() -> None:
    assert (histogram().percentile(50), histogram().mean, histogram().bars()) == (0, 0.0, [])


def test_what_is_out_of_bounds_counts_at_the_bound() -> None:
    made = histogram(-5, VALUE_MAX + 1)
    assert (made.count, made.percentile(50), made.max) == (2, 0, VALUE_MAX)


def test_bars_have_round_bounds_and_no_empty_ends() -> None:
    assert histogram(3, 4, 7, 60).bars() == [
        *(Bar(2, 5, 2), Bar(5, 10, 1)),
        *(Bar(10, 20, 0), Bar(20, 50, 0), Bar(50, 100, 1)),
    ]


def test_bars_count_every_value_once() -> None:
    chosen = random.Random(8)
    made = histogram(*(chosen.randrange(1 << chosen.randrange(1, 40)) for _ in range(5000)))
    assert sum(bar.values for bar in made.bars()) == 5000


def test_histograms_add_up_also_by_way_of_json() -> None:
    one, other, both = histogram(1, 300), histogram(70_000), histogram(1, 300, 70_000)
    one.merge(LatencyHistogram.from_document(json.loads(json.dumps(other.document()))))
    assert one.document() == both.document()
    assert (one.count, one.total, one.max) == (3, 70_301, 70_000)
