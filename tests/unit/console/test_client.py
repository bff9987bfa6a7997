"""The admin client that passes the door."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.console.site import Site

from barnabas.admin.topics import NewTopic, create_topics
from barnabas.client.cluster_client import ANY, CONTROLLER
from barnabas.console.client import DoorClient
from barnabas.console.door import CLIENT_ID, Visitor
from barnabas.model.errors import RequestError
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)

ANA = Visitor("User:ana", "192.0.2.7")


class ScriptedDoor:
    """A door to a cluster of two brokers, which remembers who was asked."""

    broker_id = 4

    def __init__(self) -> None:
        self.asked: list[tuple[Visitor, str, int | None]] = []

    async def ask(self, visitor: Visitor, request: Any, **more: Any) -> Any:
        self.asked.append((visitor, type(request).__name__, more["to"]))
        assert isinstance(request, MetadataRequest)
        brokers = [MetadataResponseBroker(node_id=n, host="h", port=n) for n in (4, 5)]
        return MetadataResponse(brokers=brokers, controller_id=5, topics=[])


def test_requests_find_their_broker_and_carry_their_visitor() -> None:
    async def scenario() -> None:
        door = ScriptedDoor()
        client = DoorClient(door, ANA)  # type: ignore[arg-type]
        await (await client.connection(ANY)).send(MetadataRequest())
        await (await client.connection(CONTROLLER)).send(MetadataRequest())
        assert door.asked == [
            (ANA, "MetadataRequest", 4),
            (ANA, "MetadataRequest", 4),  # who the controller is
            (ANA, "MetadataRequest", 5),
        ]
        assert await client.connection(5) is await client.connection(CONTROLLER)
        with pytest.raises(RequestError, match="broker 9 is not in the cluster"):
            await client.connection(9)
        assert client.client_id == CLIENT_ID

    asyncio.run(scenario())


def test_functions_for_connections_work_with_it(site: Site) -> None:
    client = site.client()
    created = site.run(create_topics(client, [NewTopic("through-it", 3), NewTopic("a b")]))
    assert [each.error is None for each in created] == [True, False]
    site.run(client.close())
