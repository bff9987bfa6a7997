"""Lines: patience grows with failures, attempts are shared, closing gives up what is under way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client.addresses import Address
from barnabas.client.connection_pool import ConnectionPool
from barnabas.client.connection_stats import ConnectionStats
from barnabas.client.errors import ConnectError
from barnabas.client.retry import Backoff
from barnabas.simulation.world import World

A = Address("a", 1)


def backoff(first: float, longest: float) -> Backoff:
    return Backoff(lambda: 0.5, initial_ms=first, max_ms=longest, jitter=0.0)


def pool(opened: Any, settled: Any = lambda failure: None) -> ConnectionPool:
    return ConnectionPool(opened, backoff(50, 1000), backoff(10_000, 30_000), settled)


def test_a_broker_that_is_slow_to_accept_is_given_more_time() -> None:
    patience: list[float] = []

    async def refused(address: Address, stats: ConnectionStats, timeout_ms: float) -> Any:
        patience.append(timeout_ms)
        raise ConnectError("refused")

    async def scenario() -> None:
        outcomes: list[Any] = []
        client = pool(refused, outcomes.append)
        for _ in range(4):
            with pytest.raises(ConnectError):
                await client.connect(A)
        assert [type(outcome) for outcome in outcomes] == [ConnectError] * 4
        assert isinstance(client.failure(A), ConnectError)
        assert client.stats[A].failed == 4
        assert client.usable(A) is None

    with World(seed=1) as world:
        world.run(scenario(), until=600)
    assert patience == [10_000, 20_000, 30_000, 30_000]


def test_closing_gives_up_attempts_under_way() -> None:
    async def never(address: Address, stats: ConnectionStats, timeout_ms: float) -> Any:
        await asyncio.Event().wait()

    async def scenario() -> None:
        client = pool(never)
        attempt = client.attempt(A)
        assert client.attempt(A) is attempt
        await asyncio.sleep(0)
        await client.close()
        assert attempt.cancelled()

    with World(seed=1) as world:
        world.run(scenario(), until=60)
