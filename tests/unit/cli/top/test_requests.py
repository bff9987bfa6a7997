"""Rates and latencies from two pages of metrics."""

from __future__ import annotations

import pytest

from barnabas.cli.top.page import Page, read_page
from barnabas.cli.top.requests import RequestRow, quantile_of, request_rows

NAME = "kafka_network_requestmetrics"


def ours(count: int, slow: int, local_s: float) -> Page:
    fast = count - slow
    return read_page(f"""\
{NAME}_requests_total{{request="Produce",version="9"}} {count - 10}
{NAME}_requests_total{{request="Produce",version="8"}} 10
{NAME}_requests_total{{request="Fetch",version="13"}} 4
{NAME}_requests_total{{request="Metadata",version="12"}} 4
barnabas_request_seconds_bucket{{api="Produce",phase="total",le="0.001"}} {fast}
barnabas_request_seconds_bucket{{api="Produce",phase="total",le="0.5"}} {count}
barnabas_request_seconds_bucket{{api="Produce",phase="total",le="+Inf"}} {count}
barnabas_request_seconds_bucket{{api="Produce",phase="local",le="+Inf"}} {count}
barnabas_request_seconds_sum{{api="Produce",phase="total"}} {local_s + 1}
barnabas_request_seconds_sum{{api="Produce",phase="local"}} {local_s}
barnabas_request_seconds_sum{{api="Produce",phase="queue"}} 1
""")


def test_a_broker_of_ours_shows_what_happened_in_between() -> None:
    (row,) = request_rows([(ours(100, 0, 1.0), ours(200, 5, 3.0))], 10.0)
    assert row == RequestRow("Produce", 10.0, pytest.approx(20.0), 500.0, "local")


def test_brokers_are_added_up() -> None:
    pair = ours(100, 0, 1.0), ours(200, 0, 3.0)
    (row,) = request_rows([pair, pair], 10.0)
    assert row == RequestRow("Produce", 20.0, pytest.approx(20.0), 1.0, "local")


def test_a_counter_that_fell_began_again() -> None:
    (row,) = [
        each
        for each in request_rows([(ours(1_000, 0, 9.0), ours(50, 0, 0.5))], 1.0)
        if each.api == "Produce"
    ]
    assert row.per_s == 40 + 0, "the versions count for themselves"


def test_kafkas_exporter_has_quantiles_since_the_start() -> None:
    def page(count: int) -> Page:
        return read_page(f"""\
{NAME}_requests_total{{request="FetchConsumer",version="13"}} {count}
{NAME}_requests_total{{request="Produce",version="9"}} {count}
{NAME}_totaltimems{{request="Produce",quantile="0.50"}} 5
{NAME}_totaltimems{{request="Produce",quantile="0.99"}} 40
{NAME}_localtimems{{request="Produce",quantile="0.99"}} 30
{NAME}_totaltimems{{request="FetchConsumer",quantile="0.99"}} 502
{NAME}_localtimems{{request="FetchConsumer",quantile="0.99"}} 3
""")

    assert request_rows([(page(5), page(25))], 10.0) == [
        RequestRow("Produce", 2.0, None, 40.0, None),
        RequestRow("FetchConsumer", 2.0, None, 3.0, None),
    ]


def test_a_fetch_is_not_slow_because_it_waits_for_records() -> None:
    def page(count: int) -> Page:
        name = 'barnabas_request_seconds_{}{{api="FetchConsumer",phase="{}"{}}} {}\n'
        return read_page(
            f'{NAME}_requests_total{{request="FetchConsumer",version="13"}} {count}\n'
            + name.format("bucket", "total", ',le="0.5"', count)
            + name.format("bucket", "total", ',le="+Inf"', count)
            + name.format("bucket", "local", ',le="0.001"', count)
            + name.format("bucket", "local", ',le="+Inf"', count)
            + name.format("sum", "total", "", count * 0.503)
            + name.format("sum", "remote", "", count * 0.5)
            + name.format("sum", "local", "", count * 0.001)
            + name.format("sum", "send", "", count * 0.002)
        )

    assert request_rows([(page(5), page(25))], 10.0) == [
        RequestRow("FetchConsumer", 2.0, pytest.approx(3.0), 1.0, "send")
    ]


def test_nothing_that_did_not_happen_is_shown() -> None:
    page = ours(100, 0, 1.0)
    assert request_rows([(page, page)], 10.0) == []
    assert request_rows([], 10.0) == []


def test_quantiles_are_the_ends_of_buckets() -> None:
    inf = float("inf")
    assert quantile_of({0.1: 98.0, 1.0: 99.0, inf: 100.0}, 0.99) == 1_000.0
    assert quantile_of({0.1: 1.0, inf: 100.0}, 0.99) == 100.0, "it is beyond the last bound"
    assert quantile_of({inf: 3.0}, 0.99) is None
    assert quantile_of({}, 0.99) is None
