"""A broker samples by itself, and stops to when it stops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.coordinated import COORDINATED, commit, find
from tests.unit.broker.monitoring.scraping import scraped, summed
from tests.unit.broker.neighbours import broker, until
from tests.unit.broker.serving import Serving, create_topic

from barnabas.broker.monitoring import monitoring
from barnabas.coordination.memory import MemoryStore
from barnabas.metrics.catalogue import metrics
from barnabas.metrics.metric import Metric
from barnabas.model.ids import TopicPartition

SUBJECTS = ("cluster", "controller", "coordination", "groups", "logs", "replication")


def test_what_groups_read_is_sampled_without_a_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "TICK_S", 0.01)
    with Serving(tmp_path, COORDINATED) as serving:
        wire = serving.connect()
        create_topic(wire, "t")
        find(wire, "g")
        commit(wire, "g", {("t", 0): 0})
        clock = serving.broker.parts.monitoring.consumer_lag._clock
        key = TopicPartition("t", 0)
        serving.wait_inside(
            lambda: clock.known_for_ms(key, serving.broker.now_ms()) is not None, "it is sampled"
        )
        loop = serving.broker.loop
    assert serving.broker.parts.monitoring._handle.cancelled()
    assert loop.is_closed()


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_search_in_progress_ends_with_its_broker(tmp_path: Path, ending: str) -> None:
    async def story() -> None:
        alone = broker(MemoryStore(), tmp_path, 0)
        await alone.start()
        parts = alone.parts.monitoring
        begun = asyncio.Event()

        async def endless() -> None:
            begun.set()
            await asyncio.Event().wait()

        parts.consumer_lag.refresh = endless
        parts.refresh()
        parts.refresh()  # one at a time
        await begun.wait()
        task = parts._refresh
        await getattr(alone, ending)()
        assert task.cancelled()
        parts.refresh()
        assert parts._refresh is task, "no other begins"

    asyncio.run(story())


def test_a_scrape_has_every_metric_of_these_subjects(tmp_path: Path) -> None:
    """Of two brokers, with a topic and a group; what only failures cause is left out."""

    async def story() -> None:
        store = MemoryStore()
        first, second = (broker(store, tmp_path, number) for number in range(2))
        await first.start()
        await second.start()
        await until(lambda: len(second.cluster.brokers) == 2, "both know each other")
        total = summed(first, second)
        families = {name.partition("{")[0] for name in total}
        declared = metrics()
        expected: list[Metric] = [each for subject in SUBJECTS for each in declared[subject]]
        missing = [each.name for each in expected if each.name not in families]
        per_topic = (
            "kafka_topic_",
            "kafka_cluster_partition_",
            "kafka_log_log_",
            "_consumergroup_",
        )
        unexplained = [
            name
            for name in missing
            if not any(each in name for each in per_topic)
            and name not in ("kafka_server_fetcherlagmetrics_consumerlag",)
        ]
        assert unexplained == ["barnabas_elections_total"], "there was none yet"
        assert scraped(first.metrics).keys() >= {"kafka_brokers"}
        await second.stop()
        await first.stop()

    asyncio.run(story())
