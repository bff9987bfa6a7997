"""Counters, gauges, histograms and meters: right numbers in bounded memory, without a clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metrics.instruments import BUCKETS_MAX, Counter, Gauge, Histogram, Meter


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


def test_memory_stays_bounded_whatever_is_recorded() -> None:
    histogram = Histogram()
    for value in (-1, -(2**70), 2**47, 2**48, 2**63, 2**200):
        histogram.record(value)
    assert histogram.count == 6
    assert len(histogram._counts) <= BUCKETS_MAX
    assert histogram.buckets()[0] == (0, 2)


def test_a_meter_starts_with_the_first_rate_that_it_can_tell() -> None:
    meter = Meter(now_ms=1_000)
    assert meter.rates(1_000) == (0.0, 0.0, 0.0)
    meter.mark(50)
    assert meter.rates(11_000) == (5.0, 5.0, 5.0)


def test_a_meter_follows_a_change_the_faster_the_shorter_its_span() -> None:
    meter = Meter(0)
    meter.mark(600)
    assert meter.rates(60_000) == (10.0, 10.0, 10.0)
    one, five, fifteen = meter.rates(120_000)  # a silent minute
    assert one == pytest.approx(10 * math.exp(-1))
    assert five == pytest.approx(10 * math.exp(-1 / 5))
    assert fifteen == pytest.approx(10 * math.exp(-1 / 15))
    assert meter.count == 600


@given(st.lists(st.integers(1, 60_000), min_size=1, max_size=20))
def test_how_often_a_meter_is_read_does_not_matter_for_a_steady_rate(pauses: list[int]) -> None:
    meter = Meter(0)
    now_ms = 0
    for pause_ms in pauses:
        now_ms += pause_ms
        meter.mark(pause_ms)
        assert meter.rates(now_ms) == pytest.approx((1000.0,) * 3)


def test_a_meter_read_twice_at_one_time_or_back_in_time_says_the_same() -> None:
    meter = Meter(0)
    meter.mark(10)
    rates = meter.rates(1_000)
    meter.mark(10)
    assert meter.rates(1_000) == meter.rates(500) == rates
