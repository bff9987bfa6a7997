"""The console's window: samples, times of requests, disks, and what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.broker.serving import Serving, Wire, batch_of, fetch, produce

from barnabas.broker.monitoring import console_window
from barnabas.broker.monitoring.console_window import ConsoleWindow, _quantile
from barnabas.diary.concerns import Concerns
from barnabas.metadata.cluster_view import PartitionView, TopicView
from barnabas.metrics.instruments import Histogram
from barnabas.metrics.metric import Kind, Metric
from barnabas.model.observations import Diary, DiaryEntry


@pytest.fixture
def window(serving: Serving) -> ConsoleWindow:
    """A window that looks only when it is told to."""
    broker = serving.broker

    def build() -> ConsoleWindow:
        return ConsoleWindow(
            broker.broker_id,
            "1.2.3",
            broker.metrics,
            broker.cluster,
            broker.partitions,
            broker.logs,
            wall_ms=broker.now_ms,
            is_silent=lambda: broker.silence.is_silent,
            reached_by=lambda: ("PLAINTEXT", "127.0.0.1"),
        )

    return serving.inside(build)


def look(serving: Serving, window: ConsoleWindow) -> None:
    asyncio.run_coroutine_threadsafe(window.look(), serving.broker.loop).result(60)


def test_a_sample_counts_what_came_between_two_looks(
    serving: Serving, window: ConsoleWindow, wire: Wire, topic: str
) -> None:
    look(serving, window)
    assert window.history() == []
    for _ in range(3):
        produce(wire, topic, batch_of("abcd"))
    fetch(wire, topic)
    look(serving, window)
    [sample] = window.history()
    assert sample.messages_in > 0
    assert sample.requests > 0
    assert sample.produce_ms > 0
    assert sample.fetch_ms > 0
    assert 0 <= sample.busy <= 1
    assert sample.time_s == pytest.approx(serving.broker.now_ms() / 1000, abs=60)
    assert sample.bytes_in > sample.messages_in
    assert sample.bytes_out > 0
    look(serving, window)
    assert window.history()[-1].messages_in == 0
    assert window.history()[-1].produce_ms == 0


def test_times_of_requests_are_by_api(window: ConsoleWindow, wire: Wire, topic: str) -> None:
    produce(wire, topic, batch_of("a"))
    times = {each.api: each for each in window.request_times()}
    assert times["Produce"].count >= 1
    assert 0 < times["Produce"].median_ms <= times["Produce"].largest_ms
    counts = [each.count for each in window.request_times()]
    assert counts == sorted(counts, reverse=True)
    assert "DeleteGroups" not in times


def test_it_knows_its_brokers_disks_and_itself(serving: Serving, window: ConsoleWindow) -> None:
    look(serving, window)
    [directory] = window.directories()
    assert directory.path == serving.options["log.dirs"]
    assert directory.online
    assert directory.total_bytes >= directory.free_bytes > 0
    [broker] = window.brokers()
    assert (broker.broker_id, broker.port) == (0, serving.address[1])
    assert broker.is_controller
    assert window.version == "1.2.3"
    assert window.cluster_id == serving.broker.cluster.cluster_id
    assert window.started_ms <= serving.broker.now_ms()


def test_what_is_wrong_is_counted_and_named(
    serving: Serving, window: ConsoleWindow, new_name: Callable[[], str]
) -> None:
    look(serving, window)
    before = window.health()
    assert (before.offline_count, before.under_replicated_count) == (0, 0)
    name = new_name()
    view = TopicView(
        name,
        b"\x09" * 16,  # type: ignore[arg-type]
        [
            PartitionView(-1, 1, (), (7, 8)),
            PartitionView(0, 1, (0,), (0, 8)),
            PartitionView(0, 1, (0,), (0,)),
        ],
    )
    serving.inside(lambda: serving.broker.cluster.put_topic(view))
    try:
        look(serving, window)
        health = window.health()
        assert health.offline_partitions == [(name, 0)]
        assert health.under_replicated == [(name, 0), (name, 1)]
        assert (health.offline_count, health.under_replicated_count) == (1, 2)
        assert health.topics == before.topics + 1
        assert health.partitions == before.partitions + 3
        assert health.controller_id == 0
        assert not health.silent
    finally:
        serving.inside(lambda: serving.broker.cluster.remove_topic(name))


def test_history_is_bounded(serving: Serving, window: ConsoleWindow) -> None:
    assert console_window.SAMPLES_MAX * console_window.SAMPLE_S == 3600
    sample_count = window._samples.maxlen
    assert sample_count == console_window.SAMPLES_MAX
    for _ in range(3):
        look(serving, window)
    assert len(window.history()) == 2


def test_it_looks_by_itself_until_it_is_stopped(
    serving: Serving, window: ConsoleWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_window, "SAMPLE_S", 0.01)
    monkeypatch.setattr(console_window, "TICK_S", 0.001)

    async def start() -> None:
        await window.start()

    asyncio.run_coroutine_threadsafe(start(), serving.broker.loop).result(60)
    serving.wait_inside(lambda: len(window.history()) >= 2, "there are samples")
    asyncio.run_coroutine_threadsafe(window.stop(), serving.broker.loop).result(60)
    assert serving.inside(lambda: (window._timer, window._tick)) == (None, None)


def test_counters_and_gauges_are_found_by_name(serving: Serving, window: ConsoleWindow) -> None:
    counted = Metric("barnabas_test_total", Kind.COUNTER, "A test.", ("a",))
    serving.inside(lambda: serving.broker.metrics.counter(counted, "x").add(3))
    assert window.value("barnabas_test_total", "x") == 3
    assert window.value("barnabas_test_total", "y") is None
    assert window.value("barnabas_absent") is None
    serving.inside(lambda: serving.broker.metrics.remove(counted, "x"))


def test_a_diary_and_lags_are_passed_on(serving: Serving, window: ConsoleWindow) -> None:
    assert asyncio.run(window.diary()) == Diary(())
    assert window.lag_seconds("g") == {}
    entry = DiaryEntry(1, "event", "subject", "cause", "text", {})

    async def diary(limit: int, wanted: Concerns | None) -> Diary:
        assert wanted is not None
        return Diary([entry] * limit)

    window._diary = diary
    window._lag_seconds = lambda group: {(group, 0): 1.5}
    found = asyncio.run(window.diary(2, lambda each: True))
    assert found == Diary([entry, entry])
    assert window.lag_seconds("g") == {("g", 0): 1.5}


def test_a_quantile_between_two_moments() -> None:
    histogram = Histogram()
    for _ in range(1000):
        histogram.record(5)
    before = histogram.buckets()
    assert _quantile(before, histogram.buckets(), 0.99) == 0
    for value in range(1, 101):
        histogram.record(value)
    assert _quantile(before, histogram.buckets(), 0.5) == pytest.approx(50, rel=0.05)
    assert _quantile(before, histogram.buckets(), 0.99) == pytest.approx(99, rel=0.05)
    assert _quantile([], before, 0.99) == 5
