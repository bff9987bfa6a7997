"""A cluster of one scripted broker, which is its own controller and coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.network.scripted_broker import Script, ScriptedBroker

from barnabas.client.cluster_client import ClusterClient
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from barnabas.wire.schema import Message

Versions = dict[type[Message], tuple[int, int]]


def converse(
    script: Script,
    client: Callable[[ClusterClient], Awaitable[Any]],
    versions: Versions | None = None,
) -> tuple[Any, ScriptedBroker]:
    """Run a client against a broker (number 1) and return its result, and the broker."""

    async def conversation() -> tuple[Any, ScriptedBroker]:
        def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
            host, port = broker.address
            here = MetadataResponseBroker(node_id=1, host=host, port=port)
            return MetadataResponse(brokers=[here], controller_id=1, cluster_id="c")

        def coordinator(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
            found = [Coordinator(key=key, node_id=1) for key in request.coordinator_keys]
            return FindCoordinatorResponse(node_id=1 if version < 4 else 0, coordinators=found)

        script_of_all: Script = {
            MetadataRequest: metadata,
            FindCoordinatorRequest: coordinator,
            **script,
        }
        async with (
            ScriptedBroker(script_of_all, versions) as broker,
            ClusterClient([broker.address], retry_backoff_ms=(1, 1)) as cluster_client,
        ):
            return await client(cluster_client), broker

    return asyncio.run(conversation())


def in_turn(*answers: Message) -> Callable[[Any, int], Message]:
    """Give one answer after the other, the last one for ever."""
    left = list(answers)
    return lambda request, version: left.pop(0) if len(left) > 1 else left[0]
