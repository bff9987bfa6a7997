"""What is shown follows from two samples alone, and what cannot be known is not 0."""

from __future__ import annotations

import pytest
from tests.unit.cli.top.samples import ORDERS, sample, topic

from barnabas.cli.top.page import read_page
from barnabas.cli.top.reading import COMMITS_S, Readings, compare
from barnabas.cli.top.sample import GroupSample, Waiting
from barnabas.model.ids import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FIRST = {("orders", 0): 100, ("orders", 1): 50}
SECOND = {("orders", 0): 300, ("orders", 1): 60}


def page(bytes_in: int, of_orders: int, bytes_out: int = 0) -> str:
    name = "kafka_server_brokertopicmetrics"
    return f"""\
{name}_bytesin_total {bytes_in}
{name}_bytesin_total{{topic="orders"}} {of_orders}
{name}_bytesout_total {bytes_out}
{name}_bytesout_total{{topic="orders"}} {bytes_out}
barnabas_loop_busy_ratio 0.25
process_resident_memory_bytes 40000000
kafka_server_socket_server_metrics_connection_count{{listener="A"}} 3
"""


def test_one_sample_has_no_rates() -> None:
    reading = compare(None, sample(10.0, FIRST))
    assert reading.seconds is None
    assert (reading.records_in, reading.bytes_in, reading.records_read) == (None, None, None)
    assert reading.requests is None
    assert [row.records_in for row in reading.topics] == [None]
    assert (reading.cluster_id, reading.controller_id, reading.partitions) == ("c1", 2, 2)


def test_records_and_the_growth_of_logs_are_rates() -> None:
    reading = compare(
        sample(10.0, FIRST, sizes={("orders", 0): 1_000, ("orders", 1): 1_000}),
        sample(12.0, SECOND, sizes={("orders", 0): 5_000, ("orders", 1): 200}),
    )
    assert reading.seconds == 2.0
    assert reading.records_in == 105
    assert reading.bytes_in == 2_000, "retention does not count"
    assert reading.bytes_are_growth
    assert reading.bytes_out is None
    first, second = reading.brokers
    assert (first.records_in, second.records_in) == (100, 5)
    assert (first.is_controller, second.is_controller) == (False, True)
    assert (first.leads, first.replicas, first.not_in_sync) == (1, 2, 0)
    assert (first.round_trip_ms, second.round_trip_ms) == (0.5, None)
    assert first.busy is None


def test_a_topic_that_is_new_or_was_recreated_has_no_rate_yet() -> None:
    again = topic("orders", (1, (1,), (1,)), topic_id=b"j" * 16)
    reading = compare(sample(1.0, FIRST), sample(2.0, {("orders", 0): 900}, topics=(again,)))
    assert reading.topics[0].records_in is None
    reading = compare(sample(1.0, {}, topics=()), sample(2.0, FIRST))
    assert reading.topics[0].records_in is None


def test_an_end_that_fell_is_no_negative_rate() -> None:
    reading = compare(sample(1.0, SECOND), sample(2.0, FIRST))
    assert reading.records_in == 0


def test_internal_topics_count_if_they_are_wanted() -> None:
    offsets = topic("__consumer_offsets", (1, (1,), (1,)), internal=True)
    pair = [
        sample(at_s, {**ends, ("__consumer_offsets", 0): end}, topics=(ORDERS, offsets))
        for at_s, ends, end in ((1.0, FIRST, 0), (2.0, SECOND, 1_000))
    ]
    assert compare(*pair).records_in == 210
    assert compare(*pair, internal=True).records_in == 1_210


def test_partitions_are_judged() -> None:
    short = topic("t", (1, (1, 2), (1,)), (-1, (2,), (2,)), (2, (2, 1), (2, 1)))
    reading = compare(None, sample(1.0, {}, topics=(short,), min_isr={"t": 2}))
    assert (reading.under_replicated, reading.under_min_isr, reading.offline) == (1, 1, 1)
    (row,) = reading.topics
    assert (row.under_replicated, row.offline) == (1, 1)
    assert [each.not_in_sync for each in reading.brokers] == [0, 1]


def test_groups_lag_and_catch_up() -> None:
    def group(first: int, second: int, waiting: Waiting | None) -> GroupSample:
        return GroupSample("Stable", {P0: first, P1: second}, {P0: 150, P1: 0}, waiting)

    before = sample(10.0, FIRST, groups={"billing": group(0, 0, None)})
    after = sample(12.0, SECOND, groups={"billing": group(100, 60, Waiting(4_500, True))})
    (row,) = compare(before, after).groups
    assert row.lag == 150, "what was deleted is not read"
    assert (row.lag_s, row.lag_s_at_least) == (4.5, True)
    assert (row.records_in, row.records_read) == (105, 80)
    assert row.drained_s is None, "it falls behind"
    after = sample(12.0, FIRST, groups={"billing": group(80, 40, Waiting(4_500, False))})
    (row,) = compare(before, after).groups
    assert row.lag == 10, "positions before the start of the log count from there"
    assert row.drained_s == pytest.approx(10 / 60)


def test_a_group_that_has_read_all_is_not_behind() -> None:
    done = sample(1.0, FIRST, groups={"g": GroupSample("Empty", {P0: 100, P1: 55})})
    (row,) = compare(None, done).groups
    assert (row.lag, row.lag_s, row.records_read, row.drained_s) == (0, 0.0, None, None)


def test_a_lag_in_seconds_that_could_not_be_read_is_not_zero() -> None:
    (row,) = compare(None, sample(1.0, FIRST, groups={"g": GroupSample("Empty", {P0: 1})})).groups
    assert (row.lag, row.lag_s) == (99, None)


def test_a_position_that_was_reset_is_no_negative_rate() -> None:
    before = sample(1.0, FIRST, groups={"g": GroupSample("Empty", {P0: 90})})
    after = sample(2.0, FIRST, groups={"g": GroupSample("Empty", {P0: 10})})
    assert compare(before, after).groups[0].records_read == 0


def test_metrics_of_all_brokers_have_bytes_of_topics() -> None:
    before = {1: read_page(page(1_000, 500, 10)), 2: read_page(page(0, 0))}
    after = {1: read_page(page(3_000, 1_500, 110)), 2: read_page(page(600, 600))}
    reading = compare(sample(1.0, FIRST, pages=before), sample(3.0, SECOND, pages=after))
    assert not reading.bytes_are_growth
    assert reading.bytes_in == 800, "of the topics that are shown"
    assert reading.bytes_out == 50
    first, second = reading.brokers
    assert (first.bytes_in, second.bytes_in) == (1_000, 300)
    assert (first.busy, first.connections, first.memory_bytes) == (0.25, 3, 40_000_000)
    assert reading.requests == ()


def test_metrics_of_some_brokers_do_not_stand_for_all() -> None:
    pair = [
        sample(at_s, ends, sizes={("orders", 0): size}, pages={1: read_page(page(total, 5))})
        for at_s, ends, size, total in ((1.0, FIRST, 0, 0), (2.0, SECOND, 700, 900))
    ]
    reading = compare(*pair)
    assert reading.bytes_are_growth
    assert reading.bytes_in == 700
    assert reading.bytes_out is None
    assert reading.brokers[0].bytes_in == 900


def test_a_page_that_was_repeated_says_nothing() -> None:
    pages = {1: read_page(page(3_000, 1_500)), 2: read_page(page(600, 600))}
    reading = compare(sample(1.0, FIRST, pages=pages), sample(1.5, SECOND, pages=dict(pages)))
    assert reading.requests is None
    assert reading.brokers[0].bytes_in is None
    assert reading.bytes_are_growth


def test_idle_time_of_kafkas_handlers_stands_for_a_busy_loop() -> None:
    name = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    after = sample(1.0, FIRST, pages={1: read_page(f"{name} 0.9\n")})
    assert compare(None, after).brokers[0].busy == pytest.approx(0.1)


def test_groups_commit_now_and_then_and_their_rates_are_of_longer() -> None:
    readings = Readings()
    committed = 0
    rates = []
    for second in range(0, 60, 2):
        committed += 500 if second % 10 == 0 else 0  # 50 a second
        ends = {("orders", 0): 100 * second, ("orders", 1): 0}
        groups = {"billing": GroupSample("Stable", {P0: committed})}
        reading = readings.of(sample(float(second), ends, groups=groups))
        rates.append(reading.records_read)
        if second:
            assert reading.seconds == 2.0
            assert reading.records_in == 100
    assert rates[0] is None
    settled = [rate for rate in rates[10:] if rate is not None]
    assert len(settled) == 20
    assert min(settled) > 30
    assert max(settled) < 75
    assert len(readings._samples) <= COMMITS_S / 2 + 2


def test_the_last_sample_is_compared_however_old_it_is() -> None:
    readings = Readings()
    readings.of(sample(0.0, FIRST))
    assert readings.of(sample(100.0, SECOND)).records_in == pytest.approx(2.1)
