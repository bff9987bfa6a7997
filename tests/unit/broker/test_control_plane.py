"""The control plane: where the controller is heard, and that it need not wait for clients."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.neighbours import broker, create, until

from barnabas.broker.broker import Broker
from barnabas.broker.cluster.controller_channels import controller_listener
from barnabas.broker.handlers import CONTROLLER_KEYS
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.config.listeners import Listeners, parse_listeners
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.wire.apis import API_BY_NAME, api_of
from barnabas.wire.frame import decode_response, request_frame
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.update_metadata import UpdateMetadataRequest

LISTENERS = {
    "listeners": "DATA://127.0.0.1:0,CONTROL://127.0.0.1:0",
    "listener_security_protocol_map": "DATA:PLAINTEXT,CONTROL:PLAINTEXT",
    "inter_broker_listener_name": "DATA",
}
APART = {**LISTENERS, "control_plane_listener_name": "CONTROL"}


def line_of(told: Broker) -> str:
    """Return the listener over which a broker was told something last."""
    session = told.control._connection
    assert session is not None
    return session.listener


def visitors(host: Broker, listener: str) -> int:
    """Return how many connections a listener of a broker has."""
    (found,) = [each for each in host.parts.network._listeners if each.name == listener]
    return len(found.connections)


async def start(*brokers: Broker) -> None:
    for each in brokers:
        await each.start()


async def stop(*brokers: Broker) -> None:
    for each in brokers:
        await each.stop()


def test_the_controller_speaks_over_it_and_is_asked_over_it(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        first, second = (broker(store, tmp_path, number, **APART) for number in range(2))
        await start(first, second)
        assert first.controller.term is not None
        await create(first, NewTopic("t", 2, 2))
        assert line_of(second) == "CONTROL"
        assert {p.leader for p in second.partitions.values()} == {0, 1}
        assert visitors(first, "CONTROL") == 0
        await second.stop()  # it asks the controller to let others lead
        assert {p.leader for p in first.partitions.values()} == {0}
        assert first.parts.network._listeners[1]._accepted == 1
        await stop(first)

    asyncio.run(story())


@pytest.mark.parametrize("number", [0, 1])
def test_one_that_was_not_given_it_yet_is_spoken_to_all_the_same(
    tmp_path: Path, number: int
) -> None:
    """Brokers are given it one after the other, and each of them may be the controller."""

    async def story() -> None:
        store = MemoryStore()
        controller = broker(store, tmp_path, 0, **(APART if number == 0 else LISTENERS))
        told = broker(store, tmp_path, 1, **(APART if number == 1 else LISTENERS))
        plain = broker(store, tmp_path, 2, **{**LISTENERS, "listeners": "DATA://127.0.0.1:0"})
        await start(controller, told, plain)
        await create(controller, NewTopic("t", 3, 3))
        assert line_of(told) == "CONTROL"
        assert line_of(plain) == "DATA"
        await stop(plain, told, controller)

    asyncio.run(story())


def test_elsewhere_the_controller_is_not_heard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever says that he is one is shown to the door, and told of no such requests before."""

    async def story() -> None:
        alone = broker(MemoryStore(), tmp_path, 0, **APART)
        await start(alone)
        told: dict[str, set[int]] = {}
        for endpoint in alone.endpoints:
            connection = await open_to(alone, endpoint.name)
            answer = await connection.send(ApiVersionsRequest(), version=0)
            told[endpoint.name] = {each.api_key for each in answer.api_keys}
            connection.close()
        assert told["CONTROL"] - told["DATA"] == CONTROLLER_KEYS
        assert told["DATA"] < told["CONTROL"]
        assert API_BY_NAME["AlterPartition"].key in told["DATA"]
        epoch = alone.cluster.controller_id, alone.control._controller_epoch
        request = UpdateMetadataRequest(controller_id=66, controller_epoch=1000)
        with door_of(alone, "DATA") as door:
            door.sendall(request_frame(request, 6, 1, "intruder"))
            door.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(door, 1) == b""
        assert "this API is for listener CONTROL only (control.plane.listener.name)" in caplog.text
        assert epoch == (alone.cluster.controller_id, alone.control._controller_epoch)
        connection = await open_to(alone, "DATA")
        with pytest.raises(BarnabasError):
            await connection.send(request)
        connection.close()
        await stop(alone)

    asyncio.run(story())


def test_without_it_the_controller_is_heard_everywhere(tmp_path: Path) -> None:
    async def story() -> None:
        alone = broker(MemoryStore(), tmp_path, 0, **LISTENERS)
        await start(alone)
        for name in ("DATA", "CONTROL"):
            connection = await open_to(alone, name)
            stale = UpdateMetadataRequest(controller_id=66, controller_epoch=-1)
            assert (await connection.send(stale)).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
            connection.close()
        await stop(alone)

    asyncio.run(story())


def test_clients_are_shown_the_addresses_of_their_own_listener(tmp_path: Path) -> None:
    """As with Kafka: who dials the control plane is served there, and nobody else hears of it."""

    async def story() -> None:
        alone = broker(MemoryStore(), tmp_path, 0, **APART)
        await start(alone)
        for endpoint in alone.endpoints:
            connection = await open_to(alone, endpoint.name)
            (node,) = (await connection.send(MetadataRequest(topics=[]))).brokers
            assert (node.node_id, node.port) == (0, endpoint.port)
            connection.close()
        await stop(alone)

    asyncio.run(story())


def test_the_registration_tells_of_it(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        alone, tree = broker(store, tmp_path, 0, **APART), MemoryCoordination(store)
        await start(alone)
        await tree.start()
        path = nodes.broker_path(0)
        registration = nodes.BrokerRegistration.decode(path, (await tree.get(path))[0])
        assert registration.control_plane == "CONTROL"
        assert [name for name, _, _ in registration.endpoints] == ["DATA", "CONTROL"]
        await stop(alone)

    asyncio.run(story())


def own(control_plane: str | None) -> Listeners:
    return parse_listeners(
        "DATA://:1,CONTROL://:2",
        None,
        "DATA:PLAINTEXT,CONTROL:PLAINTEXT",
        inter_broker_name="DATA",
        control_plane_name=control_plane,
    )


@pytest.mark.parametrize(
    ("endpoints", "control_plane", "of_controller", "dialled"),
    [
        (("DATA", "CONTROL"), "CONTROL", "CONTROL", "CONTROL"),
        (("DATA", "CONTROL"), "CONTROL", None, "CONTROL"),
        (("DATA", "OTHER"), "OTHER", "CONTROL", "OTHER"),
        (("DATA", "CONTROL"), None, "CONTROL", "CONTROL"),  # a broker of Apache Kafka
        (("DATA", "CONTROL"), None, None, "DATA"),
        (("DATA",), None, "CONTROL", "DATA"),
    ],
)
def test_which_listener_the_controller_dials(
    endpoints: tuple[str, ...], control_plane: str | None, of_controller: str | None, dialled: str
) -> None:
    view = BrokerView(1, dict.fromkeys(endpoints, ("h", 1)), None, control_plane=control_plane)
    assert controller_listener(view, own(of_controller)) == dialled


@pytest.mark.parametrize("apart", [False, True])
def test_a_flood_of_requests_does_not_keep_the_controller_waiting(
    tmp_path: Path, apart: bool
) -> None:
    """All requests are there at once, those of clients first; how many pass before its word?"""
    clients = 100

    async def story() -> int:
        options = {**(APART if apart else LISTENERS), "socket_listen_backlog_size": "200"}
        flooded = broker(MemoryStore(), tmp_path, 0, **options)
        await start(flooded)
        handled = heard = 0
        key = API_BY_NAME["Produce"].key
        take = flooded.control.take

        def slow(host: Broker, request: Any) -> Any:
            nonlocal handled
            handled += 1
            time.sleep(0.005)
            return served.handle(host, request)

        async def taken(*arguments: Any) -> Any:
            nonlocal heard
            heard = handled
            return await take(*arguments)

        served = flooded.served[key]
        for table in (flooded.served, flooded.served_to_clients):
            table[key] = replace(served, handle=slow)
        flooded.control.take = taken  # type: ignore[method-assign]
        doors = [door_of(flooded, "DATA") for _ in range(clients)]
        office = door_of(flooded, "CONTROL" if apart else "DATA")
        await until(lambda: visitors(flooded, "DATA") >= clients, "all are connected")
        await asyncio.sleep(0)
        for door in doors:
            door.sendall(request_frame(ProduceRequest(acks=1), 9, 1, "flood"))
        request = UpdateMetadataRequest(controller_id=66, controller_epoch=0)
        office.sendall(request_frame(request, 6, 1, "controller"))
        office.setblocking(False)
        answer = await asyncio.get_running_loop().sock_recv(office, 1000)
        _, message = decode_response(api_of(UpdateMetadataRequest), 6, answer[4:])
        assert message.error_code == ErrorCode.STALE_CONTROLLER_EPOCH  # type: ignore[attr-defined]
        await until(lambda: handled == clients, "every client is answered, too")
        for door in [*doors, office]:
            door.close()
        await stop(flooded)
        return heard

    heard = asyncio.run(story())
    assert heard <= 5 if apart else heard == clients


async def open_to(host: Broker, listener: str) -> Connection:
    (endpoint,) = [each for each in host.endpoints if each.name == listener]
    return await Connection.open(
        Address(endpoint.host, endpoint.port),
        client_id="test",
        connect_timeout_ms=60_000,
        request_timeout_ms=60_000,
    )


def door_of(host: Broker, listener: str) -> socket.socket:
    """Open a plain connection."""
    (endpoint,) = [each for each in host.endpoints if each.name == listener]
    return socket.create_connection((endpoint.host, endpoint.port), timeout=60)
