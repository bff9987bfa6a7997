"""What a scrape finds of a broker's front: who is connected, what waits, the state, the process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.scraping import read, scrape
from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch_request,
    produce,
    produce_request,
)

from barnabas.broker.broker import Broker
from barnabas.broker.loop import LongSteps
from barnabas.broker.monitoring.broker_state import BrokerState
from barnabas.broker.monitoring.front import loop_monitor
from barnabas.config.broker import BrokerOptions
from barnabas.metrics.catalogue import loop, network, process, waiting
from barnabas.metrics.catalogue.rejections import REJECTIONS, THROTTLES
from barnabas.metrics.registry import Registry
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.produce import ProduceRequest

LISTENER = {"listener": "PLAINTEXT", "networkProcessor": "0"}


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A broker of each test's own, whose numbers begin with 0."""
    with Serving(tmp_path, {"socket.request.max.bytes": 1_000_000}) as serving:
        yield serving


def test_connections_and_their_bytes(serving: Serving) -> None:
    with serving.connect() as wire:
        sent = len(wire_bytes(ApiVersionsRequest(), 2))
        wire.send(ApiVersionsRequest(), 2)
        received = len(wire.read_frame() or b"") + 4
        found = scrape(serving)
        assert found.of(network.CONNECTIONS, **LISTENER) == 1
        assert found.of(network.CONNECTIONS_OPENED, **LISTENER) == 1
        assert found.of(network.OPENING_RATE, **LISTENER) > 0
        assert found.of(network.INCOMING_BYTES, **LISTENER) == sent
        assert found.of(network.OUTGOING_BYTES, **LISTENER) == received
    serving.wait_inside(
        lambda: read(serving.broker).of(network.CONNECTIONS_CLOSED, **LISTENER) == 1, "it is closed"
    )
    found = scrape(serving)
    assert found.of(network.CONNECTIONS, **LISTENER) == 0
    assert found.of(network.CLOSING_RATE, **LISTENER) > 0
    assert found.of(network.ACCEPTOR_BLOCKED, listener="PLAINTEXT") == 0


def wire_bytes(message: Any, version: int) -> bytes:
    from barnabas.wire.frame import request_frame

    return request_frame(message, version, 1, "test")


def test_bytes_of_responses_that_are_sent_from_files(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, {"barnabas.sendfile.min.bytes": 1}) as serving,
        serving.connect() as wire,
    ):
        create_topic(wire, "orders")
        assert produce(wire, "orders", batch_of(["x" * 1000])).error_code == 0
        before = scrape(serving).of(network.OUTGOING_BYTES, **LISTENER)
        wire.send(fetch_request("orders"), 12)
        received = len(wire.read_frame() or b"") + 4
        assert received > 1000
        assert scrape(serving).of(network.OUTGOING_BYTES, **LISTENER) - before == received


def test_connections_by_software(serving: Serving) -> None:
    with serving.connect() as first, serving.connect() as second, serving.connect() as third:
        for wire in (first, second):
            wire.ask(
                ApiVersionsRequest(
                    client_software_name="apache-kafka-java", client_software_version="3.9.0"
                ),
                3,
            )
        third.ask(ApiVersionsRequest(), 2)
        assert scrape(serving).series(network.SOFTWARE) == {
            'clientSoftwareName="apache-kafka-java",clientSoftwareVersion="3.9.0",'
            'listener="PLAINTEXT",networkProcessor="0"': 2,
            'clientSoftwareName="unknown",clientSoftwareVersion="unknown",'
            'listener="PLAINTEXT",networkProcessor="0"': 1,
        }


def test_clients_that_are_rejected(serving: Serving) -> None:
    with serving.connect() as wire:
        wire.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wire.expect_close()
        serving.expect_line("an HTTP request")
    with serving.connect() as wire:
        wire.socket.sendall(b"\0\0\0\x0b\0\x03\x7f\xff\0\0\0\x01\xff\xff\0")
        wire.expect_close()
        serving.expect_line("is not supported")
    with serving.connect() as wire:
        wire.socket.sendall(b"\0\0\0\x04\x7f\x00\0\0")
        wire.expect_close()
        serving.expect_line("unreadable request")
    assert scrape(serving).series(REJECTIONS) == {
        'reason="frame-size"': 1,
        'reason="unsupported-version"': 1,
        'reason="unreadable"': 1,
    }


def test_connections_above_a_limit(tmp_path: Path) -> None:
    with Serving(tmp_path, {"max.connections.per.ip": 1}) as serving, serving.connect() as wire:
        wire.ask(ApiVersionsRequest(), 2)
        with serving.connect() as second:
            second.expect_close()
        serving.expect_line("max.connections.per.ip=1")
        assert scrape(serving).series(REJECTIONS) == {'reason="connection-limit"': 1}


def test_throttled_clients_by_quota(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        assert scrape(serving).of(THROTTLES, quota="Produce") == 0
        serving.inside(
            lambda: serving.broker.quotas.configs_changed(
                "users", "<default>", {"producer_byte_rate": "1"}
            )
        )
        assert wire.ask(produce_request("orders", batch_of(["x"])), 9).throttle_time_ms > 0
    assert scrape(serving).of(THROTTLES, quota="Produce") == 1


def test_what_waits_and_what_expires(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving, serving.connect() as wire:
        create_topic(wire, "orders", 2)
        request = fetch_request("orders", max_wait_ms=30_000, session_epoch=-1)
        request.topics[0].partitions.append(type(request.topics[0].partitions[0])(partition=1))
        wire.send(request, 12)
        partitions = serving.broker.partitions
        serving.wait_inside(lambda: len(partitions.fetch_purgatory) == 1, "the fetch waits")
        found = scrape(serving)
        assert found.of(waiting.DELAYED_OPERATIONS, delayedOperation="Fetch") == 1
        assert found.of(waiting.PURGATORY_SIZE, delayedOperation="Fetch") == 2
        assert found.of(waiting.DELAYED_OPERATIONS, delayedOperation="Produce") == 0
        serving.let_pass(40_000)
        wire.receive(FetchRequest, 12)
        found = scrape(serving)
        assert found.of(waiting.DELAYED_OPERATIONS, delayedOperation="Fetch") == 0
        assert found.of(waiting.EXPIRED_FETCHES, fetcherType="consumer") == 1
        assert found.of(waiting.EXPIRED_FETCHES, fetcherType="follower") == 0


def test_appends_that_are_not_committed_in_time(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders", configs={"flush.messages": "1"})
        flusher = serving.broker.partitions.flusher
        monkeypatch.setattr(flusher, "request", lambda partition: None)  # as if it never ended
        wire.send(produce_request("orders", batch_of(["x"]), acks=-1, timeout_ms=30_000), 9)
        purgatory = serving.broker.partitions.produce_purgatory
        serving.wait_inside(lambda: len(purgatory) == 1, "the append waits")
        serving.let_pass(40_000)
        _, response = wire.receive(ProduceRequest, 9)
        assert response.responses[0].partition_responses[0].error_code == 7
    found = scrape(serving)
    assert found.of(waiting.EXPIRED_APPENDS) == 1
    assert found.of(waiting.EXPIRED_APPENDS, topic="orders", partition="0") == 1


def test_fetch_sessions(tmp_path: Path) -> None:
    with Serving(tmp_path, {"max.incremental.fetch.session.cache.slots": 1}) as serving:
        with serving.connect() as wire:
            create_topic(wire, "orders", 2)
            wire.ask(fetch_request("orders", session_epoch=0), 12)
            found = scrape(serving)
            assert found.of(waiting.FETCH_SESSIONS) == 1
            assert found.of(waiting.SESSION_PARTITIONS) == 1
            assert found.of(waiting.SESSION_EVICTIONS) == 0
            larger = fetch_request("orders", session_epoch=0)
            larger.topics[0].partitions.append(type(larger.topics[0].partitions[0])(partition=1))
            wire.ask(larger, 12)
        found = scrape(serving)
        assert found.of(waiting.SESSION_PARTITIONS) == 2
        assert found.of(waiting.SESSION_EVICTIONS) == 1


def test_the_loop_is_measured_while_a_broker_runs(serving: Serving) -> None:
    serving.wait_inside(
        lambda: serving.broker.metrics.value(loop.LOOP_LAG) >= 2, "the loop has ticked twice"
    )
    found = scrape(serving)
    for metric in (loop.PROCESSOR_IDLE, loop.HANDLER_IDLE, loop.LOOP_BUSY):
        assert 0 <= found.of(metric) <= 1, metric.name


def test_a_virtual_loop_is_not_measured() -> None:
    steps = LongSteps(lambda: 0.0)
    nothing = loop_monitor(
        Registry(), lambda: 0.0, None, lambda: 0.0, steps, lambda cause, data: None
    )
    assert nothing is None


def test_the_process_and_what_runs(serving: Serving) -> None:
    found = scrape(serving)
    assert found.of(waiting.EXECUTOR_QUEUE) == 0
    assert found.of(process.CPU_SECONDS) > 0
    (info,) = found.series(process.BUILD_INFO).values()
    assert info == 1
    assert found.of(process.BROKER_STATE) == BrokerState.RUNNING


def test_the_state_of_a_broker(tmp_path: Path) -> None:
    options = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}

    async def story() -> tuple[list[float], float]:
        broker = Broker(BrokerOptions.parse(options))
        states = []

        def note() -> None:
            states.append(broker.metrics.value(process.BROKER_STATE))

        note()
        starting = asyncio.ensure_future(broker.start())
        while not starting.done():
            note()
            await asyncio.sleep(0)
        note()
        stopping = asyncio.ensure_future(broker.stop())
        while not stopping.done():
            note()
            await asyncio.sleep(0)
        note()
        return list(dict.fromkeys(states)), states[-1]

    seen, last = asyncio.run(story())
    assert seen == [0, 1, 2, 3, 6, 7]
    assert last == BrokerState.NOT_RUNNING
