"""What a group member counts, under the names of Kafka's consumers."""

from __future__ import annotations

import pytest

from barnabas.consumer.group.counts import GroupCounts, Times


def test_times_have_an_average_and_a_maximum() -> None:
    times = Times()
    assert (times.count, times.average_ms, times.longest_ms) == (0, 0.0, 0.0)
    for elapsed_ms in (10.0, 40.0, 10.0):
        times.record(elapsed_ms)
    assert (times.count, times.average_ms, times.longest_ms) == (3, 20.0, 40.0)


def test_a_member_that_did_nothing() -> None:
    metrics = GroupCounts().metrics(0, 0.0, 5_000.0)
    assert metrics["last-heartbeat-seconds-ago"] == -1
    assert metrics["last-rebalance-seconds-ago"] == -1
    assert {value for name, value in metrics.items() if "seconds-ago" not in name} == {0}


def test_requests_to_the_coordinator() -> None:
    counts = GroupCounts()
    counts.commits.record(4.0)
    counts.commits.record(8.0)
    counts.heartbeats.record(3.0)
    counts.heartbeat_sent_ms = 9_000.0
    counts.joins.record(100.0)
    counts.syncs.record(7.0)
    metrics = counts.metrics(3, 2.0, 10_500.0)
    assert metrics["assigned-partitions"] == 3
    assert (metrics["commit-total"], metrics["commit-rate"]) == (2, 1.0)
    assert (metrics["commit-latency-avg"], metrics["commit-latency-max"]) == (6.0, 8.0)
    assert (metrics["heartbeat-rate"], metrics["heartbeat-response-time-max"]) == (0.5, 3.0)
    assert metrics["last-heartbeat-seconds-ago"] == 1.5
    assert (metrics["join-time-avg"], metrics["sync-time-max"]) == (100.0, 7.0)


def test_a_rebalance_lasts_from_its_first_step_to_the_assignment() -> None:
    counts = GroupCounts()
    counts.rebalance_begins(1_000.0)
    counts.rebalance_begins(1_400.0)  # joined again meanwhile
    counts.rebalance_ends(3_000.0)
    counts.rebalance_begins(5_000.0)
    counts.rebalance_fails()
    counts.rebalance_ends(6_000.0)  # an assignment that nothing led to
    metrics = counts.metrics(1, 3600.0, 7_000.0)
    assert metrics["rebalance-total"] == metrics["rebalance-rate-per-hour"] == 1
    assert metrics["rebalance-latency-max"] == metrics["rebalance-latency-total"] == 2_000.0
    assert metrics["failed-rebalance-total"] == 1
    assert metrics["last-rebalance-seconds-ago"] == 1.0


@pytest.mark.parametrize("what", ["assigned", "revoked", "lost"])
def test_callbacks_of_the_user(what: str) -> None:
    counts = GroupCounts()
    getattr(counts, what).record(12.0)
    metrics = counts.metrics(1, 1.0, 0.0)
    assert metrics[f"partition-{what}-latency-avg"] == 12.0
    assert metrics[f"partition-{what}-latency-max"] == 12.0
