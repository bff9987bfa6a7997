"""The brokers of a cluster, from one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.monitoring.scraping import collected, summed
from tests.unit.broker.neighbours import broker, until

from barnabas.broker.monitoring.broker_series import BrokerSeries
from barnabas.coordination.memory import MemoryStore


def test_the_controller_names_all_brokers(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        first, second = (broker(store, tmp_path, number) for number in range(2))
        await first.start()
        await second.start()
        await until(lambda: len(second.cluster.brokers) == 2, "both know each other")
        assert collected(BrokerSeries(second.controller)) == {}
        total = summed(first, second)
        assert total["kafka_brokers"] == 2
        for each in (first, second):
            (endpoint,) = each.endpoints
            address = f"127.0.0.1:{endpoint.port}"
            assert total[f'kafka_broker_info{{id="{each.broker_id}",address="{address}"}}'] == 1
        assert total["kafka_controller_kafkacontroller_activecontrollercount"] == 1
        await second.stop()
        await first.stop()

    asyncio.run(story())
