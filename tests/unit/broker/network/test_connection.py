"""Connections of a real broker: order, back-pressure, limits, idleness, listeners."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.broker.handlers.test_configs import BROKER, SET, TOPIC, change, value_of
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    metadata,
    produce,
    produce_request,
    values_of,
    wait_for,
)

from barnabas.broker.network.connection import BUFFER_BYTES, READ_AHEAD_BYTES, Connection
from barnabas.broker.network.connection_limits import ConnectionLimits
from barnabas.broker.network.listener import Listener, SocketOptions
from barnabas.config.listeners import Endpoint, SecurityProtocol
from barnabas.quotas.sampled_rate import Windows
from barnabas.wire.frame import request_frame
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest


def test_pipelined_answers_keep_their_order(wire: Wire, topic: str) -> None:
    """Requests sent ahead are answered one after the other, slow ones among them."""
    frames = []
    expected: list[tuple[type, int, int]] = []
    for number in range(300):
        requests = (
            (produce_request(topic, batch_of([str(number)])), 9),
            (ApiVersionsRequest(), 0),
            (fetch_request(topic, 10**9, max_wait_ms=0), 12),
            (MetadataRequest(topics=None), 12),
            (CreateTopicsRequest(topics=[CreatableTopic(name="..")]), 7),
        )
        for request, version in requests:
            correlation = len(expected)
            frames.append(request_frame(request, version, correlation, "pipelined"))
            expected.append((type(request), version, correlation))
    sent = b"".join(frames)
    wire.socket.setblocking(True)
    sender = threading.Thread(target=wire.socket.sendall, args=(sent,))
    sender.start()
    for kind, version, correlation in expected:
        assert wire.receive(kind, version)[0] == correlation
    sender.join(60)
    assert len(values_of(fetch(wire, topic))) == 300


def test_one_request_is_in_handling(serving: Serving, wire: Wire, topic: str) -> None:
    """While a fetch waits, the requests behind it wait too, and are not lost."""
    with serving.connect() as consumer:
        consumer.send(fetch_request(topic, max_wait_ms=60_000), 12)
        consumer.send(produce_request("nowhere", batch_of(["x"])), 9)
        consumer.send(ApiVersionsRequest(), 0)
        serving.wait_inside(
            lambda: len(serving.broker.partitions.fetch_purgatory), "the fetch waits"
        )
        produce(wire, topic, batch_of(["go"]))
        assert consumer.receive(FetchRequest, 12)[0] == 1
        assert consumer.receive(ProduceRequest, 9)[0] == 2
        assert consumer.receive(ApiVersionsRequest, 0)[0] == 3


def test_a_flood_behind_a_waiting_request_stays_in_the_socket(
    serving: Serving, wire: Wire, topic: str
) -> None:
    """Reading stops while a request is in handling: the broker's memory is not the queue."""
    with serving.connect() as flood:
        flood.send(fetch_request(topic, max_wait_ms=60_000), 12)
        serving.wait_inside(
            lambda: len(serving.broker.partitions.fetch_purgatory), "the fetch waits"
        )
        frame = request_frame(ApiVersionsRequest(), 0, 7, "x" * 30_000)
        flood.socket.settimeout(0.2)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 64 << 20:
                sent += flood.socket.send(frame)
        assert sent < 64 << 20, "the broker took everything"
        (connection,) = (
            each
            for listener in serving.broker.parts.network._listeners
            for each in listener.connections
            if not each.is_idle
        )
        assert connection._end - connection._start <= 2 * READ_AHEAD_BYTES
        produce(wire, topic, batch_of(["go"]))
        flood.socket.settimeout(60)
        assert flood.receive(FetchRequest, 12)[0] == 1
        assert flood.receive(ApiVersionsRequest, 0)[0] == 7


def test_large_buffers_are_given_back(serving: Serving, wire: Wire, topic: str) -> None:
    """A connection that once sent a large frame does not keep its buffer when it is quiet."""
    assert produce(wire, topic, batch_of([bytes(900_000)])).error_code == 0

    def connection() -> object:
        return next(iter(serving.broker.parts.network._listeners[0].connections))

    def shrunk() -> int:
        found = next(iter(serving.broker.parts.network._listeners[0].connections))
        found.shrink()
        return len(found._buffer)

    assert serving.inside(lambda: len(connection()._buffer)) > 900_000  # type: ignore[attr-defined]
    assert serving.inside(shrunk) == BUFFER_BYTES
    assert produce(wire, topic, batch_of(["still works"])).error_code == 0


def test_queued_requests_are_all_answered(tmp_path: Path) -> None:
    """With room for two, twenty requests that need a task still get their answers."""
    with Serving(tmp_path, {"queued.max.requests": 2}) as serving:
        wires = [serving.connect() for _ in range(20)]
        for number, wire in enumerate(wires):
            topic = CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
            wire.send(CreateTopicsRequest(topics=[topic]), 7)
        for number, wire in enumerate(wires):
            _, response = wire.receive(CreateTopicsRequest, 7)
            assert [(t.name, t.error_code) for t in response.topics] == [(f"t{number}", 0)]
        assert serving.inside(lambda: serving.broker.parts.network.routers[0].in_progress) == 0


def test_queued_requests_of_closed_connections_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes away while waiting in the queue does not hold up the others."""
    with Serving(tmp_path, {"queued.max.requests": 1}) as serving:
        wires = [serving.connect() for _ in range(10)]
        for number, wire in enumerate(wires):
            topic = CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
            wire.send(CreateTopicsRequest(topics=[topic]), 7)
        for wire in wires[:-1]:
            wire.socket.close()
        _, response = wires[-1].receive(CreateTopicsRequest, 7)
        assert response.topics[0].error_code == 0
        serving.wait_inside(
            lambda: serving.broker.parts.network.routers[0].in_progress == 0, "nothing waits"
        )


class TestLimits:
    def test_connections_in_all(self, tmp_path: Path) -> None:
        """One more than max.connections waits, unread, until one leaves; so do those after it."""
        with Serving(tmp_path, {"max.connections": 2}) as serving:
            first, second = serving.connect(), serving.connect()
            assert first.ask(ApiVersionsRequest(), 0).error_code == 0
            assert second.ask(ApiVersionsRequest(), 0).error_code == 0
            late = [serving.connect() for _ in range(3)]
            for wire in late:
                wire.send(ApiVersionsRequest(), 0)
            serving.expect_line("new ones wait for one to close: 2 are open (max.connections=2)")
            limits = serving.broker.parts.network._limits
            for wire in late:
                assert serving.inside(lambda: limits.total) == 2
                first.socket.close()
                assert wire.receive(ApiVersionsRequest, 0)[1].error_code == 0
                first = wire
            first.socket.close()
            with serving.connect() as last:
                assert last.ask(ApiVersionsRequest(), 0).error_code == 0

    def test_a_lower_limit_closes_the_least_recently_used(self, tmp_path: Path) -> None:
        """As many as are too many."""
        with Serving(tmp_path) as serving:
            wires = [serving.connect() for _ in range(4)]
            for number in (1, 0, 2, 3):
                assert wires[number].ask(ApiVersionsRequest(), 0).error_code == 0
                serving.let_pass(1000)
            fewer = ("max.connections", SET, "2")
            assert change(wires[3], BROKER, "", fewer).error_code == 0
            for number in (1, 0):
                wires[number].expect_close()
            lines = serving.lines.of()
            assert len(lines) == 2
            assert all("least recently used of 4 connections" in line for line in lines)
            serving.lines.clear()
            assert wires[2].ask(ApiVersionsRequest(), 0).error_code == 0

    def test_brokers_take_the_place_of_clients(self, tmp_path: Path) -> None:
        """Their listener ignores max.connections; the client that was quiet longest has to go."""
        options = {
            "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
            "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
            "inter.broker.listener.name": "IN",
            "max.connections": 2,
        }
        with Serving(tmp_path, options) as serving:
            clients = [serving.connect(1) for _ in range(2)]
            for wire in clients:
                assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
                serving.let_pass(1000)
            broker = serving.connect(0)
            assert broker.ask(ApiVersionsRequest(), 0).error_code == 0
            clients[0].expect_close()
            serving.expect_line("least recently used of 3 connections (max.connections=2)")
            assert clients[1].ask(ApiVersionsRequest(), 0).error_code == 0

    @pytest.mark.parametrize(
        "options",
        [
            {"max.connections.per.ip": 1},
            {"max.connections.per.ip": 9, "max.connections.per.ip.overrides": "127.0.0.1:1"},
        ],
    )
    def test_connections_from_one_address(self, tmp_path: Path, options: dict[str, object]) -> None:
        """The limit of an address, or its own override."""
        with Serving(tmp_path, options) as serving, serving.connect() as first:
            assert first.ask(ApiVersionsRequest(), 0).error_code == 0
            with serving.connect() as second:
                second.expect_close()
            serving.expect_line("max.connections.per.ip=1")
            assert first.ask(ApiVersionsRequest(), 0).error_code == 0

    def test_connections_per_second(self, tmp_path: Path) -> None:
        """A flood of new connections is accepted more slowly, and none is closed."""
        options = {"max.connection.creation.rate": 20, "quota.window.num": 2}
        with Serving(tmp_path, options) as serving:
            began = time.monotonic()
            wires = [serving.connect() for _ in range(30)]
            for wire in wires:
                wire.send(ApiVersionsRequest(), 0)
            for wire in wires:
                assert wire.receive(ApiVersionsRequest, 0)[1].error_code == 0
            assert time.monotonic() - began >= 0.4
            serving.expect_line("accepted more slowly (max.connection.creation.rate=20)")

    def test_an_address_that_connects_too_fast_is_closed_later(self, tmp_path: Path) -> None:
        """The quota of ips, at once for new connections; nothing of it is read meanwhile."""
        with Serving(tmp_path, {"quota.window.num": 2}) as serving:
            first = serving.connect()
            entity = EntityData(entity_type="ip", entity_name="127.0.0.1")
            rate = OpData(key="connection_creation_rate", value=1.0)
            request = AlterClientQuotasRequest(entries=[EntryData(entity=[entity], ops=[rate])])
            assert first.ask(request).entries[0].error_code == 0
            assert serving.connect().ask(ApiVersionsRequest(), 0).error_code == 0
            began = time.monotonic()
            with serving.connect() as second:
                second.send(ApiVersionsRequest(), 0)
                second.expect_close()
            assert time.monotonic() - began >= 0.9
            serving.expect_line("127.0.0.1 opens connections too fast (connection_creation_rate)")
            assert first.ask(ApiVersionsRequest(), 0).error_code == 0

    def test_a_broker_stops_while_connections_wait_for_room(self, tmp_path: Path) -> None:
        """They do not hold it up."""
        with Serving(tmp_path, {"max.connections": 1}) as serving:
            assert serving.connect().ask(ApiVersionsRequest(), 0).error_code == 0
            for _ in range(3):
                serving.connect()
            serving.expect_line("1 are open (max.connections=1)")

    def test_a_broker_stops_while_connections_wait_to_be_closed(self, tmp_path: Path) -> None:
        """Nor do these."""
        with Serving(tmp_path, {"quota.window.size.seconds": 3600}) as serving:
            network = serving.broker.parts.network
            serving.inside(lambda: network._limits.set_address_rate("127.0.0.1", 0))
            serving.connect()
            (listener,) = network._listeners
            serving.wait_inside(lambda: len(listener._rejected) == 1, "one is kept for an hour")

    def test_host_names_have_quotas_of_their_addresses(self, tmp_path: Path) -> None:
        """They are resolved when the quota is set; without it the addresses have none."""
        with Serving(tmp_path) as serving:
            network = serving.broker.parts.network
            limits = network._limits
            rate = {"connection_creation_rate": "3"}
            serving.inside(lambda: network.address_quota_changed("localhost", rate))
            serving.wait_inside(lambda: "127.0.0.1" in limits._rate_of, "it is resolved")
            assert limits._rate_of["127.0.0.1"] == 3
            serving.inside(lambda: network.address_quota_changed("localhost", {}))
            serving.wait_inside(lambda: not limits._rate_of, "it is removed")
            serving.inside(lambda: network.address_quota_changed("<default>", rate))
            assert limits._rate_of == {None: 3}
            serving.inside(lambda: network.address_quota_changed("no such host", rate))
            serving.expect_line("ips/no such host: quota has no effect")

    def test_connections_of_one_listener(self, tmp_path: Path) -> None:
        """listener.name.<name>.max.connections leaves the other listeners alone, and can change."""
        options = {
            "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
            "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
            "inter.broker.listener.name": "IN",
            "listener.name.out.max.connections": 1,
        }
        with Serving(tmp_path, options) as serving:
            inner = [serving.connect(0) for _ in range(3)]
            for wire in (*inner, serving.connect(1)):
                assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
            late = serving.connect(1)
            late.send(ApiVersionsRequest(), 0)
            serving.expect_line("1 are open (listener.name.out.max.connections=1)")
            wider = ("listener.name.out.max.connections", SET, "2")
            assert change(inner[0], BROKER, "0", wider).error_code == 0
            assert late.receive(ApiVersionsRequest, 0)[1].error_code == 0

    def test_frame_size(self, tmp_path: Path) -> None:
        """socket.request.max.bytes is the largest frame."""
        with Serving(tmp_path, {"socket.request.max.bytes": 1000}) as serving:
            with serving.connect() as wire:
                create_topic(wire, "t")
                empty = len(request_frame(produce_request("t", b""), 8, 1, "test")) - 4
                largest = 1000 - empty
                wire.send(produce_request("t", bytes(largest)), 8)
                assert wire.receive(ProduceRequest, 8)[1].responses[0].partition_responses
                wire.send(produce_request("t", bytes(largest + 1)), 8)
                wire.expect_close()
            serving.expect_line("socket.request.max.bytes")


IDLE_MS = 60_000


def grow_old(serving: Serving) -> None:
    """Let more time pass than a connection may be idle, and have the broker look."""
    serving.let_pass(IDLE_MS + 1)
    serving.inside(serving.broker.parts.network.sweep)


class TestIdleness:
    def test_idle_connections_are_closed(self, tmp_path: Path) -> None:
        """Silent ones go, half a frame or not; one that speaks or waits stays."""
        with Serving(tmp_path, {"connections.max.idle.ms": IDLE_MS}) as serving:
            silent, half, waiting, busy = (serving.connect() for _ in range(4))
            create_topic(busy, "t")
            half.socket.sendall(b"\0\0\1\0half a frame")
            waiting.send(fetch_request("t", max_wait_ms=10 * IDLE_MS), 12)
            serving.wait_inside(
                lambda: len(serving.broker.partitions.fetch_purgatory), "the fetch waits"
            )
            connections = serving.broker.parts.network._listeners[0].connections
            serving.wait_inside(
                lambda: sorted(each._end - each._start for each in connections) == [0, 0, 0, 16],
                "all are connected, and half a frame is there",
            )
            serving.let_pass(IDLE_MS + 1)
            assert busy.ask(ApiVersionsRequest(), 0).error_code == 0
            serving.inside(serving.broker.parts.network.sweep)
            silent.expect_close()
            half.expect_close()
            produce(busy, "t", batch_of(["x"]))
            assert waiting.receive(FetchRequest, 12)[0] == 1

    def test_minus_one_never_closes(self, tmp_path: Path) -> None:
        """-1 keeps idle connections however long they are silent."""
        with (
            Serving(tmp_path, {"connections.max.idle.ms": -1}) as serving,
            serving.connect() as wire,
        ):
            assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
            grow_old(serving)
            assert wire.ask(ApiVersionsRequest(), 0).error_code == 0

    def test_closed_ones_that_do_not_read_are_dropped(self, tmp_path: Path) -> None:
        """A client that never reads cannot keep a closed connection, and its answers, alive."""
        with (
            Serving(tmp_path, {"connections.max.idle.ms": IDLE_MS}) as serving,
            socket.socket() as victim,
        ):
            with serving.connect() as wire:
                create_topic(wire, "t" * 200, 60)
            victim.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            victim.connect(serving.address)
            victim.setblocking(False)
            frame = request_frame(MetadataRequest(topics=None), 12, 1, "greedy")
            unsent = bytearray()
            listener = serving.broker.parts.network._listeners[0]

            def stuffed() -> bool:
                if not unsent:
                    unsent.extend(frame * 100)
                with contextlib.suppress(BlockingIOError):
                    del unsent[: victim.send(unsent)]
                return serving.inside(
                    lambda: any(each._write_paused for each in listener.connections)
                )

            def gone() -> bool:
                grow_old(serving)
                return serving.inside(lambda: not listener.connections)

            wait_for(stuffed, "the broker has more to say than the client takes")
            wait_for(gone, "all connections are gone")

    def test_readers_that_stall_are_dropped(self, tmp_path: Path) -> None:
        """A client that stops in the middle of a large answer does not pin its file for ever."""
        options = {"connections.max.idle.ms": IDLE_MS, "message.max.bytes": 20_000_000}
        with Serving(tmp_path, options) as serving:
            with serving.connect() as wire:
                create_topic(wire, "t")
                for _ in range(3):
                    produce(wire, "t", batch_of([bytes(4_000_000)]))
            stalled = serving.connect()
            stalled.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.send(fetch_request("t", partition_max_bytes=1 << 25), 12)
            log = serving.broker.partitions["t", 0].log
            listener = serving.broker.parts.network._listeners[0]

            def gone() -> bool:
                grow_old(serving)
                return serving.inside(lambda: not listener.connections)

            serving.wait_inside(lambda: log.segments[0].file.pins, "the file is pinned")
            wait_for(gone, "the connection is gone")
            assert not serving.inside(lambda: log.segments[0].file.pins), "the file is let go"


class TestListeners:
    def test_the_dialled_address_is_told(self, tmp_path: Path) -> None:
        """A broker that advertises nothing tells each client the address that it dialled."""
        with Serving(tmp_path, {"listeners": "PLAINTEXT://0.0.0.0:0"}) as serving:
            port = serving.address[1]
            for host in ("127.0.0.1", "127.0.0.2"):
                with Wire((host, port)) as wire:
                    (node,) = metadata(wire).brokers
                    assert (node.host, node.port) == (host, port)

    def test_advertised_listeners_are_told(self, tmp_path: Path) -> None:
        """What is advertised is told, whatever was dialled, by the listener of the client."""
        options = {
            "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
            "advertised.listeners": "IN://inner.example:1111,OUT://outer.example:2222",
            "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
            "inter.broker.listener.name": "IN",
        }
        with Serving(tmp_path, options) as serving:
            told = []
            for index in (0, 1):
                with serving.connect(index) as wire:
                    (node,) = metadata(wire).brokers
                    told.append((node.host, node.port))
            assert told == [("inner.example", 1111), ("outer.example", 2222)]

    def test_the_control_plane_is_apart(self, tmp_path: Path) -> None:
        """A data plane whose queue is full does not hold up the control plane."""
        options = {
            "listeners": "DATA://127.0.0.1:0,CONTROL://127.0.0.1:0",
            "listener.security.protocol.map": "DATA:PLAINTEXT,CONTROL:PLAINTEXT",
            "inter.broker.listener.name": "DATA",
            "control.plane.listener.name": "CONTROL",
            "queued.max.requests": 1,
        }
        with Serving(tmp_path, options) as serving:
            data, control = serving.connect(0), serving.connect(1)
            assert serving.broker.endpoints[1].name == "CONTROL"
            assert data.ask(ApiVersionsRequest(), 0).error_code == 0
            assert control.ask(ApiVersionsRequest(), 0).error_code == 0
            routers = serving.broker.parts.network.routers
            assert routers[0] is not routers[1]
            # The data plane's one slot is taken: only the control plane gets an answer.
            lock = serving.broker.topics._lock
            serving.inside(lambda: serving.broker.loop.create_task(lock.acquire()))
            for number, wire in enumerate((data, data)):
                topic = CreatableTopic(name=f"d{number}", num_partitions=1, replication_factor=1)
                wire.send(CreateTopicsRequest(topics=[topic]), 7)
            serving.wait_inside(lambda: routers[0].in_progress == 1, "the data plane is busy")
            assert control.ask(ApiVersionsRequest(), 0).error_code == 0
            serving.inside(lock.release)
            assert data.receive(CreateTopicsRequest, 7)[1].topics[0].error_code == 0
            assert data.receive(CreateTopicsRequest, 7)[1].topics[0].error_code == 0


def test_a_broker_without_descriptors_drops_the_reader_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append that wakes a reader who cannot be served is acknowledged all the same."""

    def none_left(descriptor: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    options = {"barnabas.sendfile.min.bytes": 1}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        with serving.connect() as reader, monkeypatch.context() as patched:
            reader.send(fetch_request("t", max_wait_ms=60_000), 12)
            serving.wait_inside(
                lambda: len(serving.broker.partitions.fetch_purgatory), "the reader waits"
            )
            patched.setattr(os, "dup", none_left)
            assert produce(wire, "t", batch_of(["x"])).error_code == 0
            reader.expect_close()
        serving.expect_line("its response could not be sent: [Errno 24] Too many open files")
        assert serving.broker.partitions["t", 0].log.segments[-1].file.pins == 0
        assert values_of(fetch(wire, "t")) == [b"x"]


def test_restart_keeps_everything(tmp_path: Path, new_name: Callable[[], str]) -> None:
    """Topics, ids, configs, records and producers' sequences outlive a restart, and a kill."""
    serving = Serving(tmp_path)
    serving.start()
    with serving.connect() as wire:
        topic_id = create_topic(wire, name := new_name(), 2, {"flush.messages": "1"})
        assert change(wire, TOPIC, name, ("retention.ms", SET, "123456")).error_code == 0
        producer_id = wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
    cluster_id = serving.broker.cluster.cluster_id

    def batch(sequence: int) -> bytes:
        return batch_of(
            [f"r{sequence}"],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )

    for life, end in enumerate([serving.stop, serving.kill, serving.stop]):
        with serving.connect() as wire:
            assert produce(wire, name, batch(life), acks=-1).base_offset == life
        end()
        serving.start()
        with serving.connect() as wire:
            (topic,) = metadata(wire, name).topics
            assert (topic.topic_id, len(topic.partitions)) == (topic_id, 2)
            assert topic.partitions[0].leader_epoch == life + 1, "every life is a new epoch"
            assert serving.broker.cluster.cluster_id == cluster_id
            assert value_of(wire, TOPIC, name, "retention.ms")[0] == "123456"
            assert len(values_of(fetch(wire, name))) == life + 1
            assert produce(wire, name, batch(life), acks=-1).base_offset == life, "a duplicate"
            assert produce(wire, name, batch(life + 5), acks=-1).error_code == 45
            again = wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
            assert again > producer_id
    serving.stop()


def test_divergence_after_a_restart(tmp_path: Path) -> None:
    """A reader that saw more of an old epoch than we kept learns where to cut."""
    serving = Serving(tmp_path)
    serving.start()
    with serving.connect() as wire:
        create_topic(wire, "t")
        produce(wire, "t", batch_of(["epoch 0"]))
    serving.stop()
    serving.start()
    with serving.connect() as wire:
        produce(wire, "t", batch_of(["epoch 1"]))
        wanted = FetchPartition(
            partition=0, fetch_offset=2, last_fetched_epoch=0, partition_max_bytes=1000
        )
        request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[wanted])])
        result = wire.ask(request, 12).responses[0].partitions[0]
        assert result.diverging_epoch is not None
        assert (result.diverging_epoch.epoch, result.diverging_epoch.end_offset) == (0, 1)
        assert fetch(wire, "t", leader_epoch=0).error_code == 74
    serving.stop()


def test_answers_to_requests_that_arrive_together_leave_together() -> None:
    """Pipelined requests cost one write, in order, and nothing is held back for later."""

    class Echo:
        def dispatch(self, connection: Connection, frame: memoryview) -> None:
            connection.answer(bytes(frame))

    class Recorder(asyncio.Transport):
        def __init__(self) -> None:
            super().__init__()
            self.written: list[bytes] = []

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.written.append(bytes(data))

    options = SocketOptions(1000, -1, -1, 50, 1000)
    endpoint = Endpoint("PLAINTEXT", "", 0, SecurityProtocol.PLAINTEXT)
    limits = ConnectionLimits(Windows()).of(endpoint.name)
    listener = Listener(endpoint, options, limits, Echo(), lambda: 0)
    connection, transport = Connection(listener, Echo()), Recorder()
    connection.connection_made(transport)
    frames = b"".join(len(word).to_bytes(4, "big") + word for word in (b"one", b"two", b"three"))
    room = connection.get_buffer(-1)
    room[: len(frames)] = frames
    connection.buffer_updated(len(frames))
    assert transport.written == [b"onetwothree"]
