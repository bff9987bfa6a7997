"""Background refreshes: when they come, and how they are spaced, on a virtual clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from barnabas.client.errors import ConnectError
from barnabas.client.metadata_refresh import MetadataRefresh
from barnabas.client.retry import Backoff
from barnabas.simulation.world import World


def pauses() -> Backoff:
    return Backoff(lambda: 0.5, initial_ms=100, max_ms=1000, jitter=0.0)


def test_failures_are_repeated_with_growing_pauses() -> None:
    times: list[float] = []

    async def refresh() -> None:
        times.append(asyncio.get_running_loop().time())
        raise ConnectError("gone")

    async def scenario() -> MetadataRefresh:
        freshness = MetadataRefresh(refresh, pauses(), age_ms_max=1e9)
        freshness.start()
        assert freshness.running
        freshness.request()
        await asyncio.sleep(5)
        await freshness.stop()
        assert not freshness.running
        return freshness

    with World(seed=1) as world:
        freshness = world.run(scenario(), until=60)
    gaps = [round(later - sooner, 3) for sooner, later in pairwise(times)]
    assert gaps[:5] == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert isinstance(freshness.failure, ConnectError)


def test_after_a_quiet_time_the_first_request_is_served_at_once() -> None:
    times: list[float] = []

    async def refresh() -> None:
        times.append(asyncio.get_running_loop().time())

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        freshness = MetadataRefresh(refresh, pauses(), age_ms_max=1e9)
        freshness.start()
        freshness.start()
        await asyncio.sleep(10)
        assert times == []
        asked = loop.time()
        freshness.request()
        await asyncio.sleep(0.01)
        await freshness.stop()
        return asked

    with World(seed=1) as world:
        asked = world.run(scenario(), until=60)
    assert len(times) == 1
    assert times[0] - asked < 0.001
