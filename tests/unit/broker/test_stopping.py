"""A broker that stops answers what it has begun, and does not wait for what cannot come: news of
its own controller, or of a coordination service that is away.
"""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker import neighbours
from tests.unit.broker.serving import (
    DEADLINE_S,
    Serving,
    batch_of,
    create_topic,
    fetch,
    produce_request,
    values_of,
    wait_for,
)

from barnabas.broker import lifecycle as module
from barnabas.broker.broker import Broker
from barnabas.broker.cluster import topics
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import SessionExpired, SessionState
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.log.files import DiskFile, DiskFiles
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, StorageError
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.produce import ProduceRequest

STOP_S_MAX = 30.0
PATIENCE_S = 2 * STOP_S_MAX


class AwayCoordination(MemoryCoordination):
    """A session whose service can go away: its calls wait until it is closed."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.silent = False
        self.noticed = False
        self._closed: asyncio.Event = asyncio.Event()

    @property
    def state(self) -> SessionState:
        return SessionState.SUSPENDED if self.noticed else super().state

    async def _ask(self, question: Callable[[], Any]) -> Any:
        if self.silent:
            await self._closed.wait()
            raise SessionExpired(self.session_id)
        return await super()._ask(question)

    async def close(self) -> None:
        self._closed.set()
        await super().close()


def broker(store: MemoryStore, folder: Path, number: int, **options: str) -> Broker:
    given = {
        "broker.id": str(number),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(folder / str(number)),
        **options,
    }
    return Broker(BrokerOptions.parse(given), coordination=AwayCoordination(store))


@pytest.mark.parametrize("noticed", [True, False])
def test_a_stop_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed: bool) -> None:
    """Neither the leaderships to hand over nor a request that waits for the tree hold it up.

    The options leave patience for a minute. Until the session is known to be in trouble, one
    request's worth of patience is spent.
    """
    patience_s = PATIENCE_S if noticed else 0.3
    monkeypatch.setattr(module, "DRAIN_S_MAX", patience_s)

    async def story() -> None:
        store = MemoryStore()
        options = {
            "controller.socket.timeout.ms": f"{patience_s * 1000:.0f}",
            "controlled.shutdown.retry.backoff.ms": f"{PATIENCE_S * 1000:.0f}",
        }
        controller = broker(store, tmp_path, 0, **options)
        other = broker(store, tmp_path, 1, **{"controlled.shutdown.retry.backoff.ms": "50"})
        await controller.start()
        await other.start()
        assert await controller.control.learned.until(
            lambda: len(controller.cluster.brokers) == 2, 30_000
        )
        assert controller.controller.term is not None
        tree = controller.tree
        assert isinstance(tree, AwayCoordination)
        tree.silent, tree.noticed = True, noticed
        endpoint = controller.endpoints[0]
        connection = await Connection.open(Address(endpoint.host, endpoint.port), client_id="test")
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        asked = asyncio.ensure_future(
            connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        )
        async with asyncio.timeout(60):
            while not controller.parts.network.routers[0].in_progress:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)
        began = time.monotonic()
        await controller.stop()
        assert time.monotonic() - began < STOP_S_MAX
        answers = await asyncio.gather(asked, return_exceptions=True)
        assert noticed != isinstance(answers[0], BarnabasError), "who can be told is told"
        connection.close()
        await other.stop()

    asyncio.run(story())


def test_requests_that_wait_for_the_controller_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group's first member asks for a coordinator just when the broker is stopped."""
    monkeypatch.setattr(topics, "AUTOMATIC_TIMEOUT_MS", 10 * DEADLINE_S * 1000)
    monkeypatch.setattr(module, "DRAIN_S_MAX", 10 * DEADLINE_S)
    serving = Serving(tmp_path).start()
    wire = serving.connect()
    monkeypatch.setattr(serving.broker.topics, "_is_led", lambda topic: False)
    monkeypatch.setattr(serving.broker.cluster, "topic", lambda name: None)
    wire.send(FindCoordinatorRequest(key="g"), 3)
    serving.wait_inside(lambda: serving.broker.control.learned._waiting, "the request waits")
    asked = threading.Thread(target=serving._runner.stop)
    asked.start()
    _, answer = wire.receive(FindCoordinatorRequest, 3)
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    asked.join(DEADLINE_S)
    assert not asked.is_alive()
    serving._forget()
    serving.expect_no_lines()


def test_an_expired_session_ends_the_handing_over(tmp_path: Path) -> None:
    """The controller has given the partitions to others: there is nothing left to ask it for."""

    async def story() -> None:
        store = MemoryStore()
        options = {"controlled.shutdown.retry.backoff.ms": f"{PATIENCE_S * 1000:.0f}"}
        controller = neighbours.broker(store, tmp_path, 0)
        other = broker(store, tmp_path, 1, **options)
        await controller.start()
        await other.start()
        asked = asyncio.Event()

        async def ask(*arguments: object) -> None:
            asked.set()
            raise BarnabasError("nobody answers")

        other.parts.to_controller.ask = ask  # type: ignore[method-assign, assignment]
        began = time.monotonic()
        stopping = [asyncio.ensure_future(other.stop()) for _ in range(2)]
        await asked.wait()
        await other.give_up("in the middle of it")
        assert not any(each.done() for each in stopping)
        store.expire(other.tree.session_id)
        await asyncio.gather(*stopping)
        assert time.monotonic() - began < STOP_S_MAX
        assert not other.logs.unclosed
        await other.stop()
        await controller.stop()

    asyncio.run(story())


class HeldFile(DiskFile):
    """A file whose flushes wait until the disk lets them go on, or are refused."""

    __slots__ = ("disk",)
    disk: HeldFiles

    def flush(self) -> None:
        assert self.disk.let_go.wait(DEADLINE_S)
        if self.disk.full:
            raise StorageError(f"cannot flush {self.path}") from OSError(errno.ENOSPC, "no room")
        super().flush()


class HeldFiles(DiskFiles):
    """A disk that flushes when it is told to."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.let_go.set()
        self.full = False

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        file = super().open(path, create=create)
        held = HeldFile(file.path, file._descriptor)
        held.disk = self
        return held


def test_producers_that_wait_for_a_flush_are_answered(tmp_path: Path) -> None:
    """What was appended is told; a request behind it, not begun yet, is left unanswered."""
    disk = HeldFiles()
    serving = Serving(tmp_path, files=disk).start()
    wire = serving.connect()
    create_topic(wire, "t", configs={"flush.messages": "1"})
    disk.let_go.clear()
    wire.send(produce_request("t", batch_of(["first"])), 9)
    wire.send(produce_request("t", batch_of(["second"])), 9)
    (connection,) = serving.broker.parts.network._listeners[0].connections
    serving.wait_inside(
        lambda: len(serving.broker.partitions.produce_purgatory), "the first one waits"
    )
    serving.wait_inside(lambda: connection._end > connection._start, "the second one is here")
    asked = threading.Thread(target=serving._runner.stop)
    asked.start()
    wait_for(lambda: connection._muted, "no more requests are begun")
    disk.let_go.set()
    _, answer = wire.receive(ProduceRequest, 9)
    result = answer.responses[0].partition_responses[0]
    assert (result.error_code, result.base_offset) == (0, 0)
    wire.expect_close()
    asked.join(DEADLINE_S)
    assert not asked.is_alive()
    serving._forget()
    serving.expect_no_lines()
    with Serving(tmp_path) as again, again.connect() as reader:
        assert values_of(fetch(reader, "t")) == [b"first"]


def test_a_flush_that_was_refused_is_tried_again_for_who_waits(tmp_path: Path) -> None:
    """The disk was full for a moment; nobody else would ask for that flush again."""
    disk = HeldFiles()
    serving = Serving(tmp_path, files=disk).start()
    wire = serving.connect()
    create_topic(wire, "t", configs={"flush.messages": "1"})
    disk.full = True
    wire.send(produce_request("t", batch_of(["kept"])), 9)
    serving.expect_line("t-0: flush failed")
    assert serving.inside(lambda: len(serving.broker.partitions.produce_purgatory)) == 1
    disk.full = False
    serving._runner.stop()
    _, answer = wire.receive(ProduceRequest, 9)
    result = answer.responses[0].partition_responses[0]
    assert (result.error_code, result.base_offset) == (0, 0)
    serving._forget()
    serving.expect_no_lines()
    with Serving(tmp_path) as again, again.connect() as reader:
        assert values_of(fetch(reader, "t")) == [b"kept"]


@pytest.mark.parametrize(("acks", "code"), [(1, ErrorCode.NONE), (-1, ErrorCode.REQUEST_TIMED_OUT)])
def test_producers_do_not_wait_for_followers_of_a_broker_that_stops(
    tmp_path: Path, acks: int, code: ErrorCode
) -> None:
    """With acks=1 a flush is enough; with -1 it is told that the record may not be safe."""

    async def story() -> None:
        store = MemoryStore()
        disk = HeldFiles()
        options = {"controlled_shutdown_enable": "false"}  # else another leads by then
        leader = neighbours.broker(store, tmp_path, 0, disk, **options)
        follower = neighbours.broker(store, tmp_path, 1, **options)
        await leader.start()
        await follower.start()
        await neighbours.until(lambda: len(leader.cluster.brokers) == 2, "both know each other")
        await neighbours.create(leader, NewTopic("t", 1, 2, {0: [0, 1]}, {"flush.messages": "1"}))
        await neighbours.until(lambda: leader.partitions["t", 0].is_leader, "it is led")
        await follower.parts.fetchers.stop()
        disk.let_go.clear()
        endpoint = leader.endpoints[0]
        connection = await Connection.open(Address(endpoint.host, endpoint.port), client_id="test")
        request = produce_request("t", batch_of(["x"]), acks=acks)
        asked = asyncio.ensure_future(connection.send(request, version=9))
        await neighbours.until(
            lambda: len(leader.partitions.produce_purgatory) == 1, "the producer waits"
        )
        stopping = asyncio.ensure_future(leader.stop())
        disk.let_go.set()
        response = await asked
        assert response.responses[0].partition_responses[0].error_code == code
        await stopping
        connection.close()
        await follower.stop()

    asyncio.run(story())
