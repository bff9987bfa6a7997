"""The session with the coordination service: its ups and downs, and how fast it responds."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.monitoring.scraping import Series, scraped
from tests.unit.broker.neighbours import broker, until
from tests.unit.broker.serving import Serving

from barnabas.broker.monitoring.coordination_metrics import CoordinationMetrics
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metrics.registry import Registry

SESSION = "kafka_server_sessionexpirelistener_zookeeper"
LATENCY = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"


def test_a_session_that_expires_and_the_next_one(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        alone = broker(store, tmp_path, 0)
        await alone.start()

        def now() -> Series:
            return scraped(alone.metrics)

        await until(lambda: now()[f"{SESSION}syncconnects_total"] == 1, "the listener was called")
        assert now()["barnabas_coordination_connected"] == 1
        assert now()[LATENCY] == now()["barnabas_coordination_request_seconds"] > 5
        before = alone.broker_epoch
        store.expire(alone.tree.session_id)
        await until(lambda: alone.broker_epoch > before, "it has registered again")
        found = now()
        assert found[f"{SESSION}expires_total"] == 1
        assert found[f"{SESSION}syncconnects_total"] == 2
        assert found[f"{SESSION}disconnects_total"] == 0
        assert found["barnabas_coordination_connected"] == 1
        await alone.stop()
        assert scraped(alone.metrics)["barnabas_coordination_connected"] == 0

    asyncio.run(story())


def test_an_embedded_tree_has_a_latency_and_no_zookeeper(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        found = serving.inside(lambda: scraped(serving.broker.metrics))
        assert found["barnabas_coordination_connected"] == 1
        assert found["barnabas_coordination_request_seconds"] > 5
        assert not [name for name in found if "zookeeper" in name]


def test_rejected_logins_are_counted() -> None:
    registry = Registry()
    tree = MemoryCoordination(MemoryStore())
    CoordinationMetrics(registry, tree, shared=True).refused()
    assert scraped(registry)[f"{SESSION}authfailures_total"] == 1
    CoordinationMetrics(Registry(), tree, shared=False).refused()  # of no consequence
