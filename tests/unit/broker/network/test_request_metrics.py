"""Requests are counted by version, error, size, and by where their time went."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.broker.scraping import scrape
from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    produce,
    produce_request,
)

from barnabas.broker.handlers import served_apis
from barnabas.broker.loop import LongSteps
from barnabas.broker.network.phases import Phases
from barnabas.broker.network.request_metrics import AT_ONCE_US, RequestCounts, RequestMetrics
from barnabas.metrics.catalogue.requests import (
    ERRORS,
    LOCAL_TIME,
    QUEUE_TIME,
    REMOTE_TIME,
    REQUEST_BYTES,
    REQUEST_SECONDS,
    REQUESTS,
    RESPONSE_QUEUE_TIME,
    SEND_TIME,
    THROTTLE_TIME,
    TOTAL_TIME,
)
from barnabas.metrics.instruments import Histogram
from barnabas.metrics.registry import Registry
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.fetch import ReplicaState
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

PRODUCE = 0
VERSION = 9
ONE = ProduceResponse(
    responses=[TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse()])]
)


class Counted:
    """The metrics of Produce, without a broker."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.served = served_apis()
        self.metrics = RequestMetrics(self.registry, self.served, LongSteps(lambda: 0.0))
        self.counts: RequestCounts = self.metrics.begin(self.served[PRODUCE], VERSION)

    def answer(self, seconds: float, size: int = 100, phases: Phases | None = None) -> None:
        """Count a request that arrived at 0 and is answered after some seconds."""
        request: Any = SimpleNamespace(phases=phases, received=0.0, size_bytes=size)
        self.counts.answered(request, ONE, seconds)

    def times(self, metric: Any, name: str = "Produce") -> Histogram:
        return self.registry.histogram(metric, name)


def test_a_request_that_is_answered_at_once_is_local_time_and_no_other() -> None:
    counted = Counted()
    for us in (5, 5, 700, AT_ONCE_US - 1, AT_ONCE_US, 80_000):
        counted.answer((us + 0.5) / 1e6)
    for metric in (LOCAL_TIME, TOTAL_TIME):
        times = counted.times(metric)
        assert times.count == 6
        assert times.total == 5 + 5 + 700 + 1023 + 1024 + 80_000
        assert times.quantile(0.3) == 5
        assert times.quantile(1.0) == pytest.approx(80_000, rel=1 / 32)
    for metric in (QUEUE_TIME, REMOTE_TIME, THROTTLE_TIME, RESPONSE_QUEUE_TIME, SEND_TIME):
        times = counted.times(metric)
        assert (times.count, times.total, times.quantile(1.0)) == (6, 0, 0)
    assert list(counted.metrics.requests()) == [("Produce", VERSION, 6)]


@pytest.mark.parametrize("us", [0, 31, 32, 127, 128, 700, AT_ONCE_US - 1, AT_ONCE_US, 10**7])
def test_a_single_request_is_in_one_bucket(us: int) -> None:
    counted = Counted()
    counted.answer((us + 0.5) / 1e6)
    times = counted.times(TOTAL_TIME)
    assert [count for _, count in times.buckets()] == [1]
    assert times.quantile(0.5) == pytest.approx(us, rel=1 / 32)
    counted.answer((us + 0.5) / 1e6)
    assert [count for _, count in times.buckets()] == [2]
    assert (times.count, times.total) == (2, 2 * us)


def test_a_request_that_waits_is_counted_in_each_of_its_phases() -> None:
    counted = Counted()
    counted.answer(0.00001)
    phases = Phases(0.0, queue_s=0.5)
    phases.pause(1.0)
    phases.hand_over(3.0)
    counted.answer(7.0, phases=phases)
    expected = {QUEUE_TIME: 0.5, LOCAL_TIME: 1, REMOTE_TIME: 2, SEND_TIME: 4, TOTAL_TIME: 7.5}
    for metric, seconds in expected.items():
        times = counted.times(metric)
        assert times.count == 2, metric.name
        assert times.total == pytest.approx(seconds * 1e6, abs=11), metric.name
        assert times.quantile(1.0) == pytest.approx(seconds * 1e6, rel=1 / 32), metric.name


def test_phases_that_never_took_time_have_no_buckets() -> None:
    counted = Counted()
    counted.answer(0.00002)
    shown = {
        phase: counted.registry.histogram(REQUEST_SECONDS, "Produce", phase).buckets()
        for phase in ("queue", "local", "remote", "throttle", "send", "total")
    }
    assert {phase for phase, buckets in shown.items() if buckets} == {"local", "total"}
    phases = Phases(0.0)
    phases.pause(1.0)
    counted.answer(3.0, phases=phases)
    remote = counted.registry.histogram(REQUEST_SECONDS, "Produce", "remote").buckets()
    assert [count for _, count in remote] == [1, 1]


def test_sizes_are_counted_whatever_they_are() -> None:
    counted = Counted()
    for size in (7, 900, 70_000, 5_000_000):
        counted.answer(0.00002, size)
    sizes = counted.times(REQUEST_BYTES)
    assert sizes.count == 4
    assert sizes.quantiles(0.25, 1.0) == [7, pytest.approx(5_000_000, rel=1 / 32)]
    assert sizes.total == pytest.approx(5_070_907, rel=1 / 32)


def test_quantiles_forget_what_is_older_than_two_windows() -> None:
    counted = Counted()
    counted.answer(1.0)
    for _ in range(2):
        counted.registry.rotate()
        counted.answer(0.00001)
    times = counted.times(TOTAL_TIME)
    assert (times.count, times.quantile(1.0)) == (3, 10)
    assert sum(count for _, count in times.buckets()) == 3


def test_appends_that_take_long_are_thought_to_wait_for_a_disk() -> None:
    counted = Counted()
    counted.answer(0.004)
    assert counted.metrics.blocked_s == 0
    counted.answer(0.25)
    assert counted.metrics.blocked_s == 0.25


# through a broker


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A broker of each test's own, whose numbers begin with 0."""
    with Serving(tmp_path) as serving:
        yield serving


def test_requests_and_errors_by_version(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        before = scrape(serving)
        assert produce(wire, "orders", batch_of(["x"]), 9).error_code == 0
        assert produce(wire, "orders", batch_of(["x"]), 9).error_code == 0
        assert produce(wire, "orders", batch_of(["x"]), 8).error_code == 0
        assert produce(wire, "absent", batch_of(["x"]), 8).error_code == 3
    now = scrape(serving)

    def grown(metric: Any, **labels: str) -> float:
        return now.of(metric, **labels) - before.of(metric, **labels)

    assert grown(REQUESTS, request="Produce", version="9") == 2
    assert grown(REQUESTS, request="Produce", version="8") == 2
    assert grown(ERRORS, request="Produce", error="NONE") == 3
    assert grown(ERRORS, request="Produce", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
    assert grown(TOTAL_TIME, request="Produce") == grown(LOCAL_TIME, request="Produce") == 4
    assert grown(REQUEST_BYTES, request="Produce") == 4


def test_produce_without_a_response_is_counted_and_has_no_error(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        before = scrape(serving)
        wire.send(produce_request("orders", batch_of(["x"]), acks=0), 9)
        assert fetch(wire, "orders").error_code == 0  # it is handled after the other
    now = scrape(serving)
    for metric, labels, count in (
        (REQUESTS, {"request": "Produce", "version": "9"}, 1),
        (ERRORS, {"request": "Produce", "error": "NONE"}, 0),
        (TOTAL_TIME, {"request": "Produce"}, 1),
    ):
        assert now.of(metric, **labels) - before.of(metric, **labels) == count


def test_a_fetch_that_waits_is_remote_time_of_a_consumer(serving: Serving) -> None:
    with serving.connect() as wire, serving.connect() as other:
        create_topic(wire, "orders")
        wire.send(fetch_request("orders", max_wait_ms=60_000), 12)
        purgatory = serving.broker.partitions.fetch_purgatory
        serving.wait_inside(lambda: len(purgatory) == 1, "the fetch waits")
        assert produce(other, "orders", batch_of(["x"])).error_code == 0
        wire.receive(type(fetch_request("orders")), 12)
    now = scrape(serving)
    for name in ("Fetch", "FetchConsumer"):
        assert now.of(REQUESTS, request=name, version="12") == 1
        times = serving.broker.metrics.histogram(REMOTE_TIME, name)
        assert times.count == 1
        assert times.total > 0
    assert now.of(REQUESTS, request="FetchFollower", version="12") == 0
    assert now.of(ERRORS, request="Fetch", error="NONE") == 2  # of the response and the partition
    assert now.of(REQUEST_SECONDS, api="FetchConsumer", phase="remote") == 1
    assert now.of(REQUEST_SECONDS, api="Fetch", phase="remote") == 0, "it would be counted twice"


def test_a_follower_has_a_name_of_its_own(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        state = ReplicaState(replica_id=7, replica_epoch=1)
        wire.ask(fetch_request(serving_topic_id(serving), replica_state=state), 15)
        wire.ask(fetch_request(serving_topic_id(serving)), 15)
    now = scrape(serving)
    counted = {
        name: (
            now.of(REQUESTS, request=name, version="15"),
            now.of(TOTAL_TIME, request=name),
            now.of(REQUEST_BYTES, request=name),
        )
        for name in ("Fetch", "FetchConsumer", "FetchFollower")
    }
    assert counted == {"Fetch": (2, 2, 2), "FetchConsumer": (1, 1, 1), "FetchFollower": (1, 1, 1)}


def serving_topic_id(serving: Serving) -> bytes:
    return serving.inside(lambda: cast(Any, serving.broker.cluster.topic("orders")).topic_id)


def test_requests_that_only_verify_have_a_name_of_their_own(serving: Serving) -> None:
    with serving.connect() as wire:
        verified = AddPartitionsToTxnTransaction(transactional_id="t", verify_only=True)
        wire.ask(AddPartitionsToTxnRequest(transactions=[verified]), 4)
    now = scrape(serving)
    assert now.of(REQUESTS, request="AddPartitionsToTxnVerification", version="4") == 1
    assert now.of(REQUESTS, request="AddPartitionsToTxn", version="4") == 0


def test_a_coroutine_that_waits_behind_others_is_queue_time(tmp_path: Path) -> None:
    """While `queued.max.requests` of them run; what it awaits is remote time."""
    key = 60
    with Serving(tmp_path, {"queued.max.requests": 1}) as serving:
        rooms = [serving.inside(asyncio.Event) for _ in range(2)]
        called: list[int] = []

        async def answer(number: int) -> DescribeClusterResponse:
            await rooms[number].wait()
            return DescribeClusterResponse()

        def handle(broker: object, request: Any) -> Any:
            called.append(request.correlation_id)
            return answer(0 if len(called) == 1 else 1)

        served: dict[int, Any] = serving.broker.served
        served[key] = replace(served[key], handle=handle)
        request = served[key].api.request
        with serving.connect() as first, serving.connect() as second:
            first.send(request(), 1)
            serving.wait_inside(lambda: len(called) == 1, "the first one runs")
            second.send(request(), 1)
            serving.wait_inside(lambda: len(called) == 2, "the second one is queued")
            serving.inside(rooms[0].set)
            first.receive(request, 1)
            serving.inside(rooms[1].set)
            second.receive(request, 1)
        now = scrape(serving)
        for metric in (QUEUE_TIME, LOCAL_TIME, REMOTE_TIME, TOTAL_TIME):
            times = serving.broker.metrics.histogram(metric, "DescribeCluster")
            assert times.count == 2, metric.name
            assert times.total > 0, metric.name
        assert now.of(REQUEST_SECONDS, api="DescribeCluster", phase="queue") == 2


def test_a_large_response_is_counted_once_its_client_has_read_it(tmp_path: Path) -> None:
    with (
        Serving(tmp_path, {"barnabas.sendfile.min.bytes": 1}) as serving,
        serving.connect() as wire,
    ):
        create_topic(wire, "orders")
        batch = batch_of(["x" * 900_000])
        for _ in range(16):
            assert produce(wire, "orders", batch).error_code == 0
        wire.send(fetch_request("orders", partition_max_bytes=1 << 26), 12)
        serving.wait_inside(
            lambda: serving.broker.parts.network._responses_queued() == 1, "the response waits"
        )
        assert scrape(serving).of(TOTAL_TIME, request="FetchConsumer") == 0
        wire.receive(type(fetch_request("orders")), 12)
        serving.wait_inside(
            lambda: serving.broker.metrics.value(TOTAL_TIME, "FetchConsumer") == 1, "it is counted"
        )
        sending = serving.broker.metrics.histogram(SEND_TIME, "FetchConsumer")
        assert (sending.count, sending.total > 0) == (1, True)


def test_a_large_response_whose_client_has_gone_is_counted_as_well(tmp_path: Path) -> None:
    with Serving(tmp_path, {"barnabas.sendfile.min.bytes": 1}) as serving:
        with serving.connect() as wire:
            create_topic(wire, "orders")
            for _ in range(16):
                assert produce(wire, "orders", batch_of(["x" * 900_000])).error_code == 0
            wire.send(fetch_request("orders", partition_max_bytes=1 << 26), 12)
            serving.wait_inside(
                lambda: serving.broker.parts.network._responses_queued() == 1, "it waits"
            )
        serving.wait_inside(
            lambda: serving.broker.metrics.value(TOTAL_TIME, "FetchConsumer") == 1, "it is counted"
        )


def test_a_response_without_files_that_a_client_is_slow_to_read(tmp_path: Path) -> None:
    """It is counted when it is written, and the time until the client has read it afterwards."""
    with (
        Serving(tmp_path, {"barnabas.sendfile.min.bytes": 1 << 30}) as serving,
        serving.connect() as wire,
    ):
        create_topic(wire, "orders")
        for _ in range(16):
            assert produce(wire, "orders", batch_of(["x" * 900_000])).error_code == 0
        wire.send(fetch_request("orders", partition_max_bytes=1 << 26), 12)
        serving.wait_inside(
            lambda: serving.broker.parts.network._responses_queued() == 1, "the response waits"
        )
        sending = serving.broker.metrics.histogram(SEND_TIME, "FetchConsumer")
        assert (sending.count, sending.total) == (1, 0)
        serving.let_pass(5000)
        wire.receive(type(fetch_request("orders")), 12)
        serving.wait_inside(lambda: sending.total >= 5_000_000, "the client has read it")
        assert sending.count == 1


def test_throttle_times_are_counted(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        serving.inside(
            lambda: serving.broker.quotas.configs_changed(
                "users", "<default>", {"producer_byte_rate": "1"}
            )
        )
        response = wire.ask(produce_request("orders", batch_of(["x" * 1000])), 9)
        assert response.throttle_time_ms > 0
        times = serving.broker.metrics.histogram(THROTTLE_TIME, "Produce")
        assert times.count == 1
        assert times.total == response.throttle_time_ms * 1000
