"""Listeners, threads and fetchers that change while a broker runs."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    metadata,
    produce,
    values_of,
    wait_for,
)
from tools.processes import free_port

from barnabas.broker.broker import Broker
from barnabas.broker.loop import IoThreads
from barnabas.config.alteration import Change, Operation
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.topic_store import NewTopic
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER = 4
IN = {
    "listeners": "IN://127.0.0.1:0",
    "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
    "inter.broker.listener.name": "IN",
}


def change(wire: Wire, name: str, value: str | None, resource: str = "0") -> Any:
    """Set a broker's option, or take it back; return the answer."""
    operation = Operation.SET if value is not None else Operation.DELETE
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    changed = AlterConfigsResource(resource_type=BROKER, resource_name=resource, configs=[config])
    (answer,) = wire.ask(IncrementalAlterConfigsRequest(resources=[changed]), 1).responses
    return answer


def set_to(wire: Wire, name: str, value: str | None, resource: str = "0") -> None:
    answer = change(wire, name, value, resource)
    assert answer.error_code == 0, answer.error_message


def registered(serving: Serving) -> list[tuple[str, str, int]]:
    """Return where the tree says that the broker is."""

    async def read() -> list[tuple[str, str, int]]:
        path = nodes.broker_path(0)
        data, _ = await serving.broker.tree.get(path)
        return list(nodes.BrokerRegistration.decode(path, data).endpoints)

    return asyncio.run_coroutine_threadsafe(read(), serving.broker.loop).result(60)


def names(serving: Serving) -> list[str]:
    return [endpoint.name for endpoint in serving.broker.endpoints]


def is_closed(wire: Wire) -> bool:
    """Return whether the broker has closed a connection, once it has."""
    wire.socket.settimeout(60)
    return wire.socket.recv(1) == b""


def test_a_listener_comes_and_goes(tmp_path: Path) -> None:
    serving = Serving(tmp_path, IN)
    with serving:
        wire = serving.connect()
        create_topic(wire, "t")
        address = f"IN://127.0.0.1:{serving.address[1]}"
        port = free_port()
        epoch = serving.broker.broker_epoch
        set_to(wire, "listeners", f"IN://127.0.0.1:0,OUT://127.0.0.1:{port}")
        wait_for(lambda: names(serving) == ["IN", "OUT"], "the listener is open")
        outside = serving.connect(1)
        assert produce(outside, "t", batch_of(["x"])).error_code == 0
        wait_for(lambda: len(registered(serving)) == 2, "the cluster knows")
        assert registered(serving)[1][::2] == ("OUT", port)
        (node,) = metadata(outside).brokers
        assert (node.host, node.port) == ("127.0.0.1", port)
        (node,) = metadata(wire).brokers
        assert node.port == serving.address[1], "the other one has not moved"
        assert address == str(serving.broker.endpoints[0])
        # Over a restart it stays; then it goes, with who is connected there.
        serving.stop()
        serving.start()
        assert names(serving) == ["IN", "OUT"]
        wire, outside = serving.connect(), serving.connect(1)
        assert values_of(fetch(outside, "t")) == [b"x"]
        set_to(wire, "listeners", None)
        wait_for(lambda: names(serving) == ["IN"], "the listener is closed")
        assert is_closed(outside)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=60)
        wait_for(lambda: len(registered(serving)) == 1, "the cluster knows")
        assert produce(wire, "t", batch_of(["y"])).error_code == 0
        assert serving.broker.broker_epoch > epoch, "of the restart alone"
        serving.inside(serving.broker.parts.network.sweep)
        assert serving.broker.parts.network._retired == []


def test_who_changes_the_address_that_he_uses_is_answered_there(tmp_path: Path) -> None:
    with Serving(tmp_path, IN) as serving:
        wire, waiting = serving.connect(), serving.connect()
        create_topic(wire, "t")
        waiting.send(fetch_request("t", max_wait_ms=1000), 12)
        serving.wait_inside(
            lambda: len(serving.broker.partitions.fetch_purgatory), "the reader waits"
        )
        port = free_port()
        set_to(wire, "listeners", f"IN://127.0.0.1:{port}")
        wait_for(lambda: serving.broker.endpoints[0].port == port, "it listens there")
        assert is_closed(wire)
        assert waiting.receive(type(fetch_request("t")), 12), (
            "a request that waits is answered, too"
        )
        assert is_closed(waiting)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(serving.address, timeout=60)
        assert produce(serving.connect(), "t", batch_of(["x"])).error_code == 0


def test_other_interfaces_of_the_same_port(tmp_path: Path) -> None:
    with Serving(tmp_path, {**IN, "listeners": f"IN://127.0.0.1:{free_port()}"}) as serving:
        wire = serving.connect()
        port = serving.address[1]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=60)
        set_to(wire, "listeners", f"IN://0.0.0.0:{port}")
        wait_for(lambda: serving.broker.endpoints[0].host == "0.0.0.0", "it listens everywhere")
        with Wire(("127.0.0.2", port)) as elsewhere:
            assert metadata(elsewhere).brokers[0].port == port


@pytest.mark.parametrize("same_port", [False, True])
def test_an_address_that_is_taken_leaves_all_as_they_were(tmp_path: Path, same_port: bool) -> None:
    with Serving(tmp_path, {**IN, "listeners": f"IN://127.0.0.1:{free_port()}"}) as serving:
        wire = serving.connect()
        before = registered(serving)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            new = f"IN://0.0.0.0:{serving.address[1]}" if same_port else "IN://127.0.0.1:0"
            set_to(wire, "listeners", f"{new},OUT://127.0.0.1:{port}")
            serving.expect_line("listeners unchanged: cannot listen on OUT://")
        assert names(serving) == ["IN"]
        assert metadata(serving.connect()).brokers
        assert registered(serving) == before
        # The change is there still, and the next one lets it act.
        set_to(wire, "advertised.listeners", "IN://inner.example:1,OUT://outer.example:2")
        wait_for(lambda: names(serving) == ["IN", "OUT"], "both are open")
        wait_for(lambda: registered(serving)[1:] == [("OUT", "outer.example", 2)], "and told")


def test_what_is_advertised_changes(tmp_path: Path) -> None:
    with Serving(tmp_path, IN) as serving:
        wire = serving.connect()
        set_to(wire, "advertised.listeners", "IN://outside.example:1234")

        def told() -> tuple[str, int]:
            (node,) = metadata(wire).brokers
            return node.host, node.port

        wait_for(lambda: told() == ("outside.example", 1234), "clients are told")
        assert registered(serving) == [("IN", "outside.example", 1234)]
        set_to(wire, "advertised.listeners", None)
        wait_for(lambda: told() == serving.address, "clients are told what they dial")
        assert change(wire, "advertised.listeners", "IN://0.0.0.0:1").error_code == 40
        assert change(wire, "listeners", "OUT://127.0.0.1:0").error_code == 40
        assert told() == serving.address


async def alter(host: Broker, name: str, value: str) -> None:
    change = Change(name, Operation.SET, value)
    await host.configs.alter(
        BROKER, str(host.broker_id), [change], host.store_configs, dry_run=False
    )


def test_others_hear_of_it_and_what_cannot_be_told_is_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker that moves is followed, by the controller too, although the tree was away."""
    monkeypatch.setattr("barnabas.broker.network.address_changes.RETRY_S", 0.01)

    async def story() -> None:
        store = MemoryStore()
        controller, moving = (broker(store, tmp_path, number) for number in range(2))
        await controller.start()
        await moving.start()
        await create(controller, NewTopic("t", 1, 2, {0: [1, 0]}))
        before = moving.endpoints[0].port
        set_data, failures = moving.tree.set, iter(range(3))

        async def away(path: str, *arguments: Any) -> Any:
            if path == nodes.broker_path(1) and next(failures, None) is not None:
                raise ServiceUnavailable("the tree is away")
            return await set_data(path, *arguments)

        moving.tree.set = away  # type: ignore[method-assign]
        port = free_port()
        await alter(moving, "listeners", f"PLAINTEXT://127.0.0.1:{port}")
        await until(
            lambda: controller.cluster.brokers[1].endpoints["PLAINTEXT"][1] == port,
            "the others know",
        )
        assert next(failures, None) is None, "it was tried until it worked"
        assert before != port == moving.endpoints[0].port
        # The controller reaches it there, and the follower its leader.
        await create(controller, NewTopic("u", 1, 2, {0: [1, 0]}))
        await until(lambda: moving.partitions["u", 0].is_leader, "it is told of roles")
        await until(lambda: len(moving.partitions["t", 0].isr) == 2, "the follower is in sync")
        await moving.stop()
        await controller.stop()

    asyncio.run(story())


@pytest.mark.parametrize("resource", ["0", ""])
def test_threads_come_and_go(tmp_path: Path, resource: str) -> None:
    with Serving(tmp_path, {"num.io.threads": 3}) as serving:

        def threads() -> int:
            executor = serving.broker._life._executor
            assert isinstance(executor, IoThreads)
            return executor.count

        wire = serving.connect()
        assert threads() == 3
        set_to(wire, "num.io.threads", "5", resource)
        assert threads() == 5
        create_topic(wire, "t", configs={"flush.messages": "1"})
        assert produce(wire, "t", batch_of(["flushed by one of them"])).error_code == 0
        serving.stop()
        serving.start()
        wire = serving.connect()
        assert threads() == 5
        set_to(wire, "num.io.threads", None, resource)
        assert threads() == 3
        assert produce(wire, "t", batch_of(["again"])).error_code == 0


def test_partitions_are_spread_over_more_fetchers_and_fewer(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        leader, follower = (broker(store, tmp_path, number) for number in range(2))
        await leader.start()
        await follower.start()
        await create(leader, NewTopic("t", 6, 2, {n: [0, 1] for n in range(6)}))
        await until(lambda: len(follower.partitions) == 6, "the follower has its roles")

        def spread() -> list[int]:
            fetchers = follower.parts.fetchers._fetchers.values()
            return sorted(len(list(each.partitions)) for each in fetchers)

        assert spread() == [6]
        for count, expected in ((3, [2, 2, 2]), (2, [3, 3]), (1, [6])):
            await alter(follower, "num.replica.fetchers", str(count))
            assert spread() == expected
            end = append(leader)
            await until(
                lambda end=end: all(  # type: ignore[misc]
                    p.log.log_end_offset == end for p in follower.partitions.values()
                ),
                "all are copied",
            )
        await follower.stop()
        await leader.stop()

    asyncio.run(story())


def append(leader: Broker) -> int:
    """Append one record to each partition; return where they end."""
    ends = set()
    for partition in leader.partitions.values():
        partition.append(bytearray(batch_of(["x"])), 1, 9, leader.now_ms())
        leader.partitions.appended(partition)
        ends.add(partition.log.log_end_offset)
    (end,) = ends
    return end
