"""Names of clients that were given none, as brokers see them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer
from barnabas.wire.messages.find_coordinator import Coordinator as FoundCoordinator
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)

Open = Callable[..., Any]


def broker() -> ScriptedBroker:
    def describe(request: Any, version: int) -> MetadataResponse:
        host, port = made.address
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)], controller_id=1
        )

    def find(request: Any, version: int) -> FindCoordinatorResponse:
        host, port = made.address
        found = FoundCoordinator(
            key=request.coordinator_keys[0],
            node_id=1,
            host=host,
            port=port,
            error_code=0,
            error_message=None,
        )
        return FindCoordinatorResponse(coordinators=[found])

    def identify(request: Any, version: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=1, producer_epoch=0)

    made = ScriptedBroker(
        {
            MetadataRequest: describe,
            FindCoordinatorRequest: find,
            InitProducerIdRequest: identify,
        }
    )
    return made


async def names_seen(client: Open, count: int, **options: Any) -> list[str]:
    """Make some clients, and return the names under which the broker was asked, in order."""
    async with broker() as peer, AsyncExitStack() as stack:
        servers = str(peer.address)
        for _ in range(count):
            if client.__name__.startswith("AIO"):
                await stack.enter_async_context(client(bootstrap_servers=servers, **options))
            else:
                made = await asyncio.to_thread(client, bootstrap_servers=servers, **options)
                stack.push_async_callback(asyncio.to_thread, made.close)
        return list(dict.fromkeys(asked.client_id for asked in peer.requests))


@pytest.mark.parametrize(
    ("client", "options", "pattern"),
    [
        (KafkaConsumer, {}, r"consumer-(\d+)"),
        (KafkaConsumer, {"group_id": "ships"}, r"consumer-ships-(\d+)"),
        (AIOKafkaConsumer, {"group_id": "ships"}, r"consumer-ships-(\d+)"),
        (KafkaProducer, {}, r"producer-(\d+)"),
        (AIOKafkaProducer, {}, r"producer-(\d+)"),
        (KafkaAdminClient, {}, r"adminclient-(\d+)"),
        (AIOKafkaAdminClient, {}, r"adminclient-(\d+)"),
    ],
)
def test_clients_without_a_name_are_numbered(
    client: Open, options: dict[str, Any], pattern: str
) -> None:
    """Each asks under a name of its own, with a number that goes on."""
    names = asyncio.run(names_seen(client, 3, **options))
    found = [re.fullmatch(pattern, name) for name in names]
    assert all(found), names
    numbers = [int(each[1]) for each in found if each is not None]
    assert len(numbers) == 3, names
    assert numbers == list(range(numbers[0], numbers[0] + 3)), names


@pytest.mark.parametrize(
    ("client", "options", "name"),
    [
        (KafkaConsumer, {"group_id": "ships", "group_instance_id": "7b"}, "consumer-ships-7b"),
        (KafkaProducer, {"transactional_id": "orders"}, "producer-orders"),
        (AIOKafkaProducer, {"transactional_id": "orders"}, "producer-orders"),
        (KafkaConsumer, {"client_id": "mine"}, "mine"),
        (AIOKafkaProducer, {"client_id": "mine"}, "mine"),
        (KafkaAdminClient, {"client.id": "mine"}, "mine"),
    ],
)
def test_lasting_names_are_in_place_of_the_number(
    client: Open, options: dict[str, Any], name: str
) -> None:
    """As with Kafka's clients: an instance id or a transactional id says who it is."""
    assert asyncio.run(names_seen(client, 1, **options)) == [name]


def test_the_name_is_among_the_options_of_plain_clients() -> None:
    """`config` shows it, as kafka-python's does."""

    async def shown() -> list[tuple[str, set[str]]]:
        async with broker() as peer:
            servers = str(peer.address)
            found = []
            for client in (KafkaConsumer, KafkaProducer):
                made: Any = await asyncio.to_thread(client, bootstrap_servers=servers)
                found.append(
                    (made.config["client_id"], {asked.client_id for asked in peer.requests})
                )
                await asyncio.to_thread(made.close)
                peer.requests.clear()
            return found

    for name, seen in asyncio.run(shown()):
        assert seen == {name}
