"""What a producer counts per batch, under the names of Kafka's producers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.kernels import HEADER_SIZE
from barnabas.model.ids import TopicPartition
from barnabas.producer.counts import Counts


def batch(topic: str, records: int, record_bytes: int, created_ms: float = 0.0) -> Any:
    size = HEADER_SIZE + records * record_bytes
    return SimpleNamespace(
        partition=TopicPartition(topic, 0),
        created_ms=created_ms,
        records=SimpleNamespace(size=size, count=records),
    )


def test_nothing_was_sent() -> None:
    metrics = Counts().metrics(0.0, 1000, 0)["producer-metrics"]
    assert metrics["record-size-avg"] == metrics["record-size-max"] == metrics["byte-rate"] == 0
    assert metrics["compression-rate-avg"] == 1
    assert metrics["buffer-available-bytes"] == 1000


def test_sizes_of_records_and_batches() -> None:
    counts = Counts()
    small, large = batch("a", 10, 20), batch("b", 1, 500, created_ms=5.0)
    counts.packed(small, 100, 10.0)
    counts.packed(large, 561, 10.0)
    counts.acknowledged(small)
    counts.acknowledged(large)
    groups = counts.metrics(2.0, 1000, 300)
    metrics = groups["producer-metrics"]
    assert metrics["record-size-avg"] == pytest.approx(700 / 11)
    assert metrics["record-size-max"] == 500
    assert metrics["byte-total"] == 700 + 2 * HEADER_SIZE
    assert metrics["byte-rate"] == metrics["byte-total"] / 2
    assert metrics["batch-size-max"] == 561
    assert metrics["record-queue-time-max"] == 10.0
    assert groups["producer-topic-metrics.a"]["compression-rate"] == 100 / (200 + HEADER_SIZE)
    assert groups["producer-topic-metrics.b"]["compression-rate"] == 561 / (500 + HEADER_SIZE)


def test_errors_and_retries_of_a_topic() -> None:
    counts = Counts()
    counts.failed(batch("a", 3, 10))
    counts.retried(batch("a", 4, 10))
    groups = counts.metrics(2.0, 0, 0)
    for group in ("producer-metrics", "producer-topic-metrics.a"):
        assert (groups[group]["record-error-total"], groups[group]["record-error-rate"]) == (3, 1.5)
        assert (groups[group]["record-retry-total"], groups[group]["record-retry-rate"]) == (4, 2.0)
    assert groups["producer-topic-metrics.a"]["compression-rate"] == 1


def test_throttling_is_averaged_over_all_responses() -> None:
    counts = Counts()
    for throttle_ms in (0, 300, 0, 100):
        counts.answered(throttle_ms)
    counts.flush_ms = 2.5
    metrics = counts.metrics(1.0, 0, 0)["producer-metrics"]
    assert metrics["produce-throttle-time-avg"] == 100
    assert metrics["produce-throttle-time-max"] == 300
    assert metrics["flush-time-ns-total"] == 2_500_000
