"""Counters, gauges and histograms: right numbers in bounded memory, without a clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metrics.instruments import (
    BUCKET_OF,
    BUCKETS_MAX,
    Counter,
    Gauge,
    Histogram,
    SizeHistogram,
)


def test_a_counter_counts() -> None:
    counter = Counter()
    counter.add()
    counter.add(41)
    assert counter.value == 42


def test_a_gauge_is_read_when_it_is_asked() -> None:
    held = [1]
    gauge = Gauge(lambda: len(held))
    assert gauge.value == 1
    held.append(2)
    assert gauge.value == 2


@given(st.lists(st.integers(0, 2**47), min_size=1), st.floats(0, 1))
def test_a_quantile_is_within_a_bucket_of_the_exact_one(values: list[int], fraction: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    exact = sorted(values)[max(1, math.ceil(fraction * len(values))) - 1]
    assert histogram.quantile(fraction) == pytest.approx(exact, rel=1 / 32, abs=0.5)
    assert histogram.count == len(values)
    assert histogram.total == sum(values)
    assert histogram.mean == pytest.approx(sum(values) / len(values))


@given(st.lists(st.integers(0, 10**7)))
def test_buckets_hold_each_value_once_below_their_bound(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    buckets = histogram.buckets()
    bounds = [bound for bound, _ in buckets]
    assert bounds == sorted(set(bounds))
    reached = 0
    for bound, count in buckets:
        reached += count
        assert reached == sum(value <= bound for value in values)
    assert reached == len(values)


def test_small_values_are_exact() -> None:
    histogram = Histogram()
    for value in range(32):
        histogram.record(value)
    assert histogram.buckets() == [(value, 1) for value in range(32)]


def test_quantiles_come_in_one_pass() -> None:
    histogram = Histogram()
    for value in range(1_000):
        histogram.record(value)
    assert histogram.quantiles(0.5, 0.99, 0.999) == [
        histogram.quantile(fraction) for fraction in (0.5, 0.99, 0.999)
    ]


def test_an_empty_histogram_says_zero() -> None:
    histogram = Histogram()
    assert (histogram.count, histogram.mean, histogram.quantile(0.99)) == (0, 0.0, 0)


def test_quantiles_are_those_of_two_windows() -> None:
    """The counts go on; a value is gone from the quantiles after it was in two windows."""
    histogram = Histogram()
    histogram.record(30)
    histogram.rotate()
    histogram.record(1_000_000)
    assert histogram.quantiles(0.5, 1.0) == [30, pytest.approx(1_000_000, rel=0.03)]
    histogram.rotate()
    assert histogram.quantiles(0.5, 1.0) == [pytest.approx(1_000_000, rel=0.03)] * 2
    histogram.record(7)
    assert histogram.quantile(0.1) == 7
    histogram.rotate()
    assert histogram.quantiles(0.5, 1.0) == [7, 7]
    histogram.rotate()
    assert histogram.quantile(0.99) == 0
    assert (histogram.count, histogram.total) == (3, 1_000_037)
    assert sum(count for _, count in histogram.buckets()) == 3


@given(st.lists(st.integers(0, 2**18)))
def test_a_size_histogram_is_recorded_in_without_a_call(values: list[int]) -> None:
    quick, plain = SizeHistogram(), Histogram()
    for value in values:
        plain.record(value)
        try:
            quick.counts[BUCKET_OF[value]] += 1
        except IndexError:
            quick.record(value)
    assert quick.buckets() == plain.buckets()
    assert quick.quantiles(0.5, 0.99) == plain.quantiles(0.5, 0.99)
    assert quick.total == pytest.approx(plain.total, rel=1 / 32)


def test_memory_stays_bounded_whatever_is_recorded() -> None:
    histogram = Histogram()
    for value in (-1, -(2**70), 2**47, 2**48, 2**63, 2**200):
        histogram.record(value)
    assert histogram.count == 6
    assert len(histogram._counts) <= BUCKETS_MAX
    assert histogram.buckets()[0] == (0, 2)
