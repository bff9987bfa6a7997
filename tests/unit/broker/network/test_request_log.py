"""The request log: nothing while it is off, a line per request while it is on."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, Wire, batch_of, create_topic

from barnabas.broker.network.phases import Phases
from barnabas.broker.network.request_log import LoggedCounts
from barnabas.broker.network.request_metrics import RequestMetrics
from barnabas.broker.network.session import Session
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.messages import produce as produce_wire
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.metadata import MetadataRequest

LOGGER = "barnabas.request"
SET, DELETE = 0, 1

Lines = Callable[[], list[logging.LogRecord]]


@pytest.fixture
def serving(tmp_path: Any) -> Iterator[Serving]:
    before = logging.getLogger(LOGGER).level
    with Serving(tmp_path) as running:
        yield running
    logging.getLogger(LOGGER).setLevel(before)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return the new lines of the request log."""

    def new() -> list[logging.LogRecord]:
        found = [each for each in caplog.records if each.name == LOGGER]
        caplog.clear()
        return found

    return new


def set_level(wire: Wire, level: str | None) -> None:
    operation = DELETE if level is None else SET
    config = AlterableConfig(name="kafka.request.logger", config_operation=operation, value=level)
    resource = AlterConfigsResource(resource_type=8, resource_name="0", configs=[config])
    (result,) = wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert result.error_code == 0


def test_the_log_is_on_while_the_level_is_debug(serving: Serving, lines: Lines) -> None:
    with serving.connect() as wire:
        wire.ask(MetadataRequest(topics=[]), 9)
        assert lines() == []
        set_level(wire, "DEBUG")
        lines()  # the request that turned the log on, or not
        wire.ask(MetadataRequest(topics=[]), 9)
        wire.ask(ListGroupsRequest(), 4)  # the first of its kind
        first, second = lines()
        set_level(wire, None)
        lines()
        wire.ask(MetadataRequest(topics=[]), 9)
        wire.ask(ListGroupsRequest(), 3)
        assert lines() == []
    assert first.getMessage().startswith("Completed request:{")
    logged = json.loads(first.getMessage().partition(":")[2])
    header = logged["requestHeader"]
    assert (header["requestApiKey"], header["requestApiKeyName"]) == (3, "METADATA")
    assert header["requestApiVersion"] == 9
    assert logged["principal"] == "User:ANONYMOUS"
    assert logged["securityProtocol"] == "PLAINTEXT"
    assert logged["totalTimeMs"] >= logged["localTimeMs"] >= 0
    fields = vars(second)["fields"]
    assert (fields["api"], fields["version"], fields["host"]) == ("ListGroups", 4, "127.0.0.1")
    assert fields["request_bytes"] > 0
    assert fields["response_bytes"] > 0
    assert vars(second)["event"] == "request.completed"
    assert vars(second)["summary"] == "ListGroups v4 completed"


def test_requests_are_counted_all_the_same(serving: Serving) -> None:
    def counted() -> int:
        return sum(
            count
            for name, _, count in serving.inside(lambda: list(metrics.requests()))
            if name == "Metadata"
        )

    collectors = serving.broker.metrics.collectors
    (metrics,) = [each for each in collectors if isinstance(each, RequestMetrics)]
    with serving.connect() as wire:
        wire.ask(MetadataRequest(topics=[]), 9)
        before = counted()
        set_level(wire, "DEBUG")
        wire.ask(MetadataRequest(topics=[]), 9)
        assert counted() == before + 1
        set_level(wire, None)
        wire.ask(MetadataRequest(topics=[]), 9)
        assert counted() == before + 2


def test_a_produce_without_a_response_is_logged(serving: Serving, lines: Lines) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        set_level(wire, "DEBUG")
        lines()
        data = produce_wire.PartitionProduceData(index=0, records=batch_of([b"v"]))
        topic = produce_wire.TopicProduceData(name="orders", partition_data=[data])
        wire.send(produce_wire.ProduceRequest(acks=0, timeout_ms=1000, topic_data=[topic]), 9)
        wire.ask(MetadataRequest(topics=[]), 9)
        produced, _ = lines()
    fields = vars(produced)["fields"]
    assert (fields["api"], fields["response_bytes"]) == ("Produce", 0)
    assert fields["request_bytes"] > 60


class Recorder:
    """What a request is counted with while it is not logged."""

    def __init__(self, other: Recorder | None = None) -> None:
        self.other = other
        self.calls: list[str] = []

    def answered(self, request: Any, response: Any, now: float) -> None:
        self.calls.append("answered")

    def unanswered(self, request: Any, now: float) -> None:
        self.calls.append("unanswered")

    def throttled(self, throttle_ms: int) -> None:
        self.calls.append(f"throttled {throttle_ms}")


def request(client_id: str | None = "c", phases: Phases | None = None) -> Any:
    return SimpleNamespace(
        session=Session("IN", "10.0.0.7", "10.0.0.1"),
        client_id=client_id,
        correlation_id=5,
        version=4,
        size_bytes=77,
        received=10.0,
        phases=phases,
    )


def test_where_the_time_went(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    phases = Phases(10.0, 0.001)
    phases.pause(10.002)
    phases.resume(10.010)
    phases.hand_over(10.011)
    phases.end(10.015)
    recorder = Recorder(other=Recorder())
    counts = LoggedCounts(recorder, API_BY_NAME["ListGroups"])
    counts.answered(request(phases=phases), ListGroupsResponse(throttle_time_ms=30), 10.015)
    counts.throttled(30)
    (record,) = caplog.records
    times = vars(record)["fields"]
    assert {name: times[name] for name in times if name.endswith("_ms")} == {
        "total_ms": 16.0,
        "queue_ms": 1.0,
        "local_ms": 3.0,
        "remote_ms": 8.0,
        "send_ms": 4.0,
        "throttle_ms": 30.0,
    }
    assert recorder.calls == ["answered", "throttled 30"]
    assert "error" not in times
    assert isinstance(counts.other, LoggedCounts)
    assert counts.other.counts is recorder.other


def test_errors_and_names_of_clients(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    counts = LoggedCounts(Recorder(), API_BY_NAME["ListGroups"])
    hostile = 'c\n"}\u202e' + "x" * 10_000
    counts.answered(request(hostile), ListGroupsResponse(error_code=15), 10.5)
    counts.unanswered(request(None), 10.5)
    first, second = caplog.records
    assert vars(first)["fields"]["error"] == "COORDINATOR_NOT_AVAILABLE"
    assert first.getMessage().isprintable()
    assert len(first.getMessage()) < 1500
    logged = json.loads(first.getMessage().partition(":")[2])
    assert logged["requestHeader"]["clientId"] == hostile[:200] + "…"
    assert vars(second)["fields"]["client_id"] is None
    assert vars(second)["fields"]["total_ms"] == 500.0
