"""What kafka_exporter shows of groups, and what it cannot know."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.coordinated import COORDINATED, commit, find, join
from tests.unit.broker.monitoring.scraping import Series, collected, scraped
from tests.unit.broker.serving import Serving, batch_of, create_topic, produce

from barnabas.broker.monitoring.lag_series import LagSeries
from barnabas.records.builder import build_batch


def row(name: str, topic: str, partition: int | None = None, group: str = "g") -> str:
    tail = "" if partition is None else f',partition="{partition}"'
    return f'{name}{{consumergroup="{group}",topic="{topic}"{tail}}}'


def scrape(serving: Serving) -> Series:
    return serving.inside(lambda: scraped(serving.broker.metrics))


def refresh(serving: Serving) -> None:
    lag = serving.broker.parts.monitoring.consumer_lag
    asyncio.run_coroutine_threadsafe(lag.refresh(), serving.broker.loop).result(60)


def test_offsets_and_lag_of_a_group(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t", 3)
        produce(wire, "t", batch_of(["a"] * 7))
        produce(wire, "t", batch_of(["b"] * 5), partition=1)
        find(wire, "g")
        assert commit(wire, "g", {("t", 0): 3, ("t", 1): 5}) == [0, 0]
        found = scrape(serving)
        assert found[row("kafka_consumergroup_current_offset", "t", 0)] == 3
        assert found[row("kafka_consumergroup_lag", "t", 0)] == 4
        assert found[row("kafka_consumergroup_lag", "t", 1)] == 0
        assert found[row("kafka_consumergroup_current_offset_sum", "t")] == 8
        assert found[row("kafka_consumergroup_lag_sum", "t")] == 4
        assert found[row("barnabas_consumergroup_stable_lag_sum", "t")] == 4
        assert found[row("barnabas_consumergroup_lag_seconds", "t", 1)] == 0
        assert found['kafka_consumergroup_members{consumergroup="g"}'] == 0
        assert row("kafka_consumergroup_lag", "t", 2) not in found, "nothing was committed there"
        commit(wire, "g", {("t", 0): 9})
        found = scrape(serving)
        assert found[row("kafka_consumergroup_lag", "t", 0)] == -2, "it is not clamped"
        assert found[row("barnabas_consumergroup_stable_lag", "t", 0)] == 0


def test_members_are_counted_and_groups_listed_without_offsets(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        find(wire, "g")
        join(wire, "g")
        found = scrape(serving)
        assert found['kafka_consumergroup_members{consumergroup="g"}'] == 1
        assert not [name for name in found if name.startswith("kafka_consumergroup_lag")]


def test_what_a_transaction_holds_back_is_no_lag_of_committed_readers(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t")
        produce(wire, "t", batch_of(["a", "b"]))
        partition = serving.broker.partitions["t", 0]

        def begin() -> None:
            rows = [(serving.broker.now_ms(), b"k", b"v")] * 3
            open_batch = build_batch(
                rows, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
            )
            serving.broker.partitions.append(
                partition, bytearray(open_batch), 1, 9, serving.broker.now_ms()
            )

        serving.inside(begin)
        find(wire, "g")
        commit(wire, "g", {("t", 0): 1})
        found = scrape(serving)
        assert found[row("kafka_consumergroup_lag", "t", 0)] == 4
        assert found[row("barnabas_consumergroup_stable_lag", "t", 0)] == 1
        assert found['kafka_cluster_partition_laststableoffsetlag{topic="t",partition="0"}'] == 3


def test_lag_in_seconds_is_measured_or_read_from_the_log(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t")
        now_ms = serving.broker.now_ms()
        produce(wire, "t", build_batch([(now_ms - 7_200_000, b"k", b"old")]))
        find(wire, "g")
        commit(wire, "g", {("t", 0): 0})
        first = scrape(serving)
        seconds = row("barnabas_consumergroup_lag_seconds", "t", 0)
        assert seconds not in first, "nobody knows yet"
        serving.wait_inside(
            lambda: serving.broker.parts.monitoring._refresh.done(), "the search is over"
        )
        refresh(serving)
        scrape(serving)
        refresh(serving)
        found = scrape(serving)
        assert 7200 <= found[seconds] < 7300, "older than all samples: the record's own time"
        assert found[row("barnabas_consumergroup_lag_seconds_max", "t")] >= 7200
        commit(wire, "g", {("t", 0): 1})
        assert scrape(serving)[seconds] == 0
        serving.inside(serving.broker.parts.monitoring.consumer_lag.tick)
        produce(wire, "t", batch_of(["new"]))
        wall = serving.broker._wall_clock
        serving.broker._wall_clock = lambda: wall() + 90
        serving.inside(serving.broker.parts.monitoring.consumer_lag.tick)
        serving.broker._wall_clock = lambda: wall() + 120
        assert 30 <= scrape(serving)[seconds] <= 130


def test_leaders_elsewhere_are_asked_for_at_the_first_scrape(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        calls: list[int] = []
        lag = serving.broker.parts.monitoring.consumer_lag
        series = LagSeries(lag, lambda: calls.append(1))
        serving.inside(lambda: collected(series))
        serving.inside(lambda: collected(series))
        assert calls == [1], "only the first one has to wait for answers"


def test_a_writer_that_takes_no_members_still_gets_the_rest(tmp_path: Path) -> None:
    """The first family is what reads the groups."""
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t")
        find(wire, "g")
        commit(wire, "g", {("t", 0): 5})

        def sums() -> list[float]:
            lag = serving.broker.parts.monitoring.consumer_lag
            families = iter(LagSeries(lag, lambda: None).collect())
            next(families)
            _, series = next(families)
            return [value for _, value in series]

        assert serving.inside(sums) == [5]


def test_a_scrape_of_other_metrics_asks_nobody(tmp_path: Path) -> None:
    with Serving(tmp_path, COORDINATED) as serving:
        calls: list[int] = []
        lag = serving.broker.parts.monitoring.consumer_lag
        families = serving.inside(
            lambda: [metric for metric, _ in LagSeries(lag, lambda: calls.append(1)).collect()]
        )
        assert len(families) == 9
        assert calls == []
        assert lag._watched_ms is None
