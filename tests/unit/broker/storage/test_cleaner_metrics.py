"""The cleaners' gauges: what Kafka shows of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.broker.serving import Serving, create_topic, produce

from barnabas.broker.storage.cleaner_metrics import CleanerMetrics, LastRun
from barnabas.log.compaction.scheduler import CompactionScheduler
from barnabas.metrics.registry import Registry
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch


def values(registry: Registry) -> dict[str, float]:
    return {
        metric.bean.rpartition("=")[2].replace("-", "_"): registry.value(metric)
        for metric, _ in registry.families()
        if metric.name.startswith("kafka_log_logcleaner")
    }


def test_before_any_run_all_are_zero() -> None:
    registry = Registry()
    CleanerMetrics(registry, CompactionScheduler(), {}, lambda: 5000)
    assert set(values(registry).values()) == {0}


def test_the_last_runs_of_all_cleaners_are_shown_together() -> None:
    registry, cleaner = Registry(), CompactionScheduler()
    metrics = CleanerMetrics(registry, cleaner, {}, lambda: 9000)
    metrics.ran(0, LastRun(9.0, 999, 999, 0.9, 99))
    metrics.ran(0, LastRun(1.5, 100, 20, 0.25, 0))
    metrics.ran(1, LastRun(0.5, 300, 80, 0.5, 2500))
    metrics.dead.add(1)
    cleaner.uncleanable[TopicPartition("gone", 0)] = "why"
    assert cleaner.begin_next([], 7000) is None
    assert values(registry) == {
        "max_dirty_percent": 0,
        "time_since_last_run_ms": 2000,
        "uncleanable_partitions_count": 1,
        "uncleanable_bytes": 0,
        "cleaner_recopy_percent": 25,
        "max_clean_time_secs": 1.5,
        "max_compaction_delay_secs": 2.5,
        "max_buffer_utilization_percent": 50,
        "DeadThreadCount": 1,
    }


COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "1000"}


def fill(serving: Serving, configs: dict[str, str]) -> None:
    wire = serving.connect()
    create_topic(wire, "t", configs={**COMPACTED, **configs})
    for number in range(60):
        row = (1_700_000_000_000, b"k", b"v%d" % number)
        assert produce(wire, "t", build_batch([row])).error_code == 0


OPTIONS = {"log.cleaner.backoff.ms": 20, "log.flush.offset.checkpoint.interval.ms": 20}


def test_a_broker_shows_what_its_cleaner_did(tmp_path: Path) -> None:
    with Serving(tmp_path, OPTIONS) as serving:
        fill(serving, {"max.compaction.lag.ms": "1000", "min.cleanable.dirty.ratio": "0.5"})
        registry = serving.broker.metrics
        serving.wait_inside(
            lambda: values(registry)["max_clean_time_secs"] > 0, "something is compacted"
        )
        shown = serving.inside(lambda: values(registry))
        assert 0 < shown["cleaner_recopy_percent"] < 100
        assert 0 < shown["max_buffer_utilization_percent"] <= 100
        assert shown["max_compaction_delay_secs"] > 3600  # the records are of 2023


def test_a_dirty_log_that_waits_is_seen(tmp_path: Path) -> None:
    with Serving(tmp_path, OPTIONS) as serving:
        fill(serving, {"min.cleanable.dirty.ratio": "1.0"})
        registry = serving.broker.metrics
        serving.wait_inside(
            lambda: values(registry)["max_dirty_percent"] == 100, "the log is dirty throughout"
        )
        assert serving.inside(lambda: values(registry))["max_clean_time_secs"] == 0


def test_a_cleaner_that_breaks_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    with Serving(tmp_path, OPTIONS) as serving:
        monkeypatch.setattr(serving.broker.parts.compaction.cleaner, "begin_next", broken)
        registry = serving.broker.metrics
        serving.wait_inside(
            lambda: values(registry)["DeadThreadCount"] == 1, "the cleaner has ended"
        )
        serving.expect_line("log cleaner 0 crashed")
        monkeypatch.undo()
        serving.inside(serving.broker.parts.compaction.start)
        assert serving.inside(lambda: values(registry))["DeadThreadCount"] == 0
