"""What is counted about connections, under the names of Kafka's clients."""

from __future__ import annotations

from barnabas.client.connection_stats import (
    ConnectionStats,
    client_metrics,
    connection_metrics,
    with_count,
)


def busy(latency_s: float, *sizes: int) -> ConnectionStats:
    stats = ConnectionStats()
    stats.opened = 1
    for size in sizes:
        stats.sent(size)
        stats.answered(latency_s)
    return stats


def test_several_brokers_add_up() -> None:
    metrics = connection_metrics([busy(0.010, 100, 300), busy(0.040, 200)], elapsed_s=2.0)
    assert metrics["request-total"] == metrics["response-total"] == 3
    assert metrics["request-rate"] == 1.5
    assert metrics["request-size-avg"] == 200
    assert metrics["request-size-max"] == 300
    assert metrics["outgoing-byte-rate"] == 300
    assert metrics["connection-count"] == 2
    assert metrics["request-latency-avg"] == 20
    assert 38 < metrics["request-latency-max"] < 42


def test_nothing_counted_is_all_zeros() -> None:
    assert set(connection_metrics([], elapsed_s=0.0).values()) == {0}


def test_groups_are_named_after_the_client_and_its_brokers() -> None:
    groups = client_metrics("consumer", {"1": busy(0.01, 10), "2": ConnectionStats()}, 1.0)
    assert [*groups] == [
        "consumer-metrics",
        "consumer-node-metrics.node-1",
        "consumer-node-metrics.node-2",
    ]
    assert groups["consumer-node-metrics.node-1"]["request-total"] == 1
    assert groups["consumer-node-metrics.node-2"]["request-total"] == 0


def test_throttling_is_averaged_over_all_responses() -> None:
    stats, other = busy(0.01, 10, 10), busy(0.01, 10, 10)
    stats.throttled(300)
    stats.throttled(100)
    metrics = connection_metrics([stats, other], elapsed_s=1.0)
    assert metrics["throttle-time-total"] == 400
    assert metrics["throttle-time-avg"] == 100
    assert metrics["throttle-time-max"] == 300


def test_the_number_of_metrics_is_one_more_group() -> None:
    groups = with_count({"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0}})
    assert groups["kafka-metrics-count"] == {"count": 3}
    assert groups["a"] == {"x": 1.0, "y": 2.0}
