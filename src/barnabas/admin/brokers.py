"""Send the same request to several brokers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.admin.failures import coded
from barnabas.admin.settling import settle
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import BarnabasError, RequestError

Answer = TypeVar("Answer")


async def ask_brokers(
    client: ClusterClient,
    broker_ids: Iterable[int] | None,
    ask: Callable[[int, Connection], Awaitable[Answer]],
    *,
    timeout_ms: float | None = None,
) -> dict[int, Answer | RequestError]:
    """Return the result of each broker, or its failure; None stands for all live brokers."""
    if broker_ids is None:
        broker_ids = sorted((await client.retrying(client.refresh)).brokers)

    async def one(broker_id: int) -> Answer | RequestError:
        try:
            return await ask(broker_id, await client.connection(broker_id))
        except BarnabasError as broken:
            return coded(broken)

    async def attempt(missing: list[int]) -> Mapping[int, Answer | RequestError]:
        answers = await asyncio.gather(*(one(broker_id) for broker_id in missing))
        return dict(zip(missing, answers, strict=True))

    return await settle(client, broker_ids, attempt, timeout_ms=timeout_ms)
