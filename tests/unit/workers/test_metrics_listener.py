"""One endpoint for all workers' metrics and health, in front of brokers' own endpoints."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable

import pytest

from barnabas.broker.monitoring.health import Health
from barnabas.broker.monitoring.metrics_listener import MetricsListener
from barnabas.config.broker import BrokerOptions
from barnabas.metrics.registry import Registry
from barnabas.workers.metrics_listener import WorkersMetricsListener

Get = Callable[..., Awaitable[tuple[int, str]]]


def with_workers(act: Callable[[Get, list[MetricsListener]], Awaitable[None]], token: str) -> None:
    """Run two workers' endpoints and the one in front of them; the loop's port is free."""

    async def live() -> None:
        options = BrokerOptions.parse(
            {"barnabas.metrics.listener": "127.0.0.1:0", "barnabas.metrics.token": token}
        )
        clock = asyncio.get_running_loop().time
        workers = [MetricsListener(Registry(), Health(), None, clock) for _ in range(2)]

        def ports() -> dict[int, int]:
            return {n: each.address[1] for n, each in enumerate(workers, 1) if each.address}

        def hindrance() -> str | None:
            return None if len(ports()) == 2 else "worker 2 is leaving"

        front = WorkersMetricsListener(ports, hindrance)
        for each in (*workers, front):
            await each.configure(options)
        address = front.address
        assert address is not None

        async def get(path: str, **headers: str) -> tuple[int, str]:
            def fetch() -> tuple[int, str]:
                url = f"http://127.0.0.1:{address[1]}{path}"
                try:
                    with urllib.request.urlopen(
                        urllib.request.Request(url, headers=headers), timeout=60
                    ) as answer:
                        return answer.status, answer.read().decode()
                except urllib.error.HTTPError as failure:
                    with failure:
                        return failure.code, failure.read().decode()

            return await asyncio.to_thread(fetch)

        try:
            await act(get, workers)
        finally:
            for each in (*workers, front):
                await each.close()

    asyncio.run(live())


TOKEN = {"Authorization": "Bearer secret"}


def test_all_workers_are_shown() -> None:
    async def act(get: Get, workers: list[MetricsListener]) -> None:
        assert (await get("/metrics"))[0] == 401
        status, text = await get("/metrics", **TOKEN)
        assert status == 200
        assert 'worker="1"' in text
        assert 'worker="2"' in text
        assert text.count("# TYPE") == len({x for x in text.splitlines() if "# TYPE" in x})
        status, text = await get("/metrics", **TOKEN, Accept="application/openmetrics-text")
        assert text.endswith("# EOF\n")
        status, text = await get("/metrics?names=none", **TOKEN)
        assert (status, "must be" in text) == (400, True)
        assert await get("/health/ready") == (200, "ready\n")
        assert (await get("/elsewhere"))[0] == 404

    with_workers(act, "secret")


def test_a_worker_that_is_not_there_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def act(get: Get, workers: list[MetricsListener]) -> None:
        await get("/metrics", **TOKEN)  # so that there is something to show
        address = workers[1].address
        await workers[1].close()
        workers[1].address = address  # it has not been noticed yet
        status, text = await get("/metrics", **TOKEN)
        assert (status, 'worker="1"' in text, 'worker="2"' in text) == (200, True, False)
        assert "worker 2: its metrics are left out" in caplog.text
        workers[1].address = None
        assert await get("/health/ready") == (503, "not ready: worker 2 is leaving\n")
        assert (await get("/metrics/cluster", **TOKEN))[0] == 503
        await workers[0].close()
        assert await get("/metrics", **TOKEN) == (503, "no worker shows its metrics now\n")
        assert (await get("/health/live"))[0] == 200

    with_workers(act, "secret")
