"""What both admin clients do before and around their calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import KafkaTimeoutError, NetworkError, NoBrokersAvailable
from barnabas.config.clients.admin import AdminOptions

Result = TypeVar("Result")


async def open_client(options: AdminOptions, client_id: str | None = None) -> ClusterClient:
    """Return a cluster client that has metadata; raise NoBrokersAvailable otherwise."""
    client = ClusterClient.from_options(options, client_id=client_id)
    try:
        await client.retrying(client.refresh, timeout_ms=options.bootstrap_timeout_ms)
    except NetworkError as failure:
        await client.close()
        raise NoBrokersAvailable(str(failure)) from failure
    except BaseException:
        await client.close()
        raise
    client.start()
    return client


async def within(timeout_ms: float, work: Awaitable[Result]) -> Result:
    """Await some work with a timeout."""
    try:
        async with asyncio.timeout(timeout_ms / 1000) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise KafkaTimeoutError(
            f"the call did not complete within default.api.timeout.ms={timeout_ms:g}"
        ) from None
