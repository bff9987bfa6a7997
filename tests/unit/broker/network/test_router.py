"""The router: where exceptions become error codes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.unit.broker.serving import Serving, batch_of, create_topic, produce

from barnabas.broker.handlers import fetch as fetch_handler
from barnabas.broker.loop import LongSteps, Step
from barnabas.broker.network.request_metrics import RequestMetrics
from barnabas.broker.network.router import Router, Served
from barnabas.coordination.contract import SessionExpired
from barnabas.metrics.catalogue.requests import TOTAL_TIME
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.wire.frame import request_frame
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

KEY = 60


@pytest.fixture
def broken(serving: Serving) -> Any:
    """Replace the handler of DescribeCluster while a test runs."""
    served: dict[int, Served] = serving.broker.served
    original = served[KEY]

    def put(handle: Any) -> None:
        served[KEY] = replace(original, handle=handle)

    yield put
    served[KEY] = original


async def _later(outcome: BaseException | DescribeClusterResponse) -> DescribeClusterResponse:
    await asyncio.sleep(0)
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


@pytest.mark.parametrize("asynchronous", [False, True])
def test_refusals(serving: Serving, broken: Any, asynchronous: bool) -> None:
    """A RequestError is the client's affair: its code and message, and no log line."""

    def handle(broker: object, request: object) -> Any:
        refusal = RequestError(ErrorCode.POLICY_VIOLATION, "not today")
        if asynchronous:
            return _later(refusal)
        raise refusal

    broken(handle)
    with serving.connect() as wire:
        response = wire.ask(DescribeClusterRequest(), 1)
    assert (response.error_code, response.error_message) == (44, "not today")
    serving.expect_no_lines()


@pytest.mark.parametrize("asynchronous", [False, True])
def test_bugs(serving: Serving, broken: Any, asynchronous: bool) -> None:
    """Anything else is ours: the client learns nothing of it, the log has the trace."""

    def handle(broker: object, request: object) -> Any:
        bug = ZeroDivisionError("secret detail")
        if asynchronous:
            return _later(bug)
        raise bug

    broken(handle)
    with serving.connect() as wire:
        response = wire.ask(DescribeClusterRequest(), 1)
        assert (response.error_code, response.error_message) == (-1, None)
        assert serving.lines.records[-1].exc_info is not None
        serving.expect_line("DescribeCluster v1 from 127.0.0.1 failed")
        assert wire.ask(DescribeClusterRequest(), 1).error_code == -1
    serving.lines.clear()


def test_failures_that_we_know(serving: Serving, broken: Any) -> None:
    """An error of our own tree tells the client its message."""

    def handle(broker: object, request: object) -> Any:
        raise StorageError("the disk is on fire")

    broken(handle)
    with serving.connect() as wire:
        response = wire.ask(DescribeClusterRequest(), 1)
    assert (response.error_code, response.error_message) == (-1, "the disk is on fire")
    serving.expect_line("DescribeCluster v1")


def test_a_session_that_has_ended(serving: Serving, broken: Any) -> None:
    """Wherever a request finds that out, it is no bug: the client asks the next controller."""

    def handle(broker: object, request: object) -> Any:
        raise SessionExpired(7)

    broken(handle)
    with serving.connect() as wire:
        response = wire.ask(DescribeClusterRequest(), 1)
    assert response.error_code == ErrorCode.NOT_CONTROLLER
    assert "session 7 has expired" in response.error_message
    serving.expect_no_lines()


def test_answers_that_cannot_be_written(serving: Serving, broken: Any) -> None:
    """The connection is closed, since no other answer fits; others go on."""
    broken(lambda broker, request: DescribeClusterResponse(controller_id=2**40))
    with serving.connect() as wire:
        wire.send(DescribeClusterRequest(), 1)
        wire.expect_close()
    failure, closing = serving.lines.of()
    assert "could not be encoded" in failure
    assert "could not be encoded" in closing
    serving.lines.clear()


def test_answers_that_cannot_be_written_let_go_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before and those behind the field that cannot be written."""
    with Serving(tmp_path, {"barnabas.sendfile.min.bytes": 1}) as serving:
        with serving.connect() as wire:
            for name in ("a", "b", "c"):
                create_topic(wire, name)
                assert produce(wire, name, batch_of(["x"])).error_code == 0
        files = [serving.broker.partitions[name, 0].log.segments[-1].file for name in "abc"]
        monkeypatch.setattr(fetch_handler._Fetch, "read", unwritable(fetch_handler._Fetch.read))
        wanted = [FetchPartition(partition=0, partition_max_bytes=1000)]
        topics = [FetchTopic(topic=name, partitions=wanted) for name in "abc"]
        with serving.connect() as wire:
            wire.send(FetchRequest(topics=topics, max_bytes=1000, min_bytes=1), 12)
            wire.expect_close()
        assert [file.pins for file in files] == [0, 0, 0]
        serving.lines.clear()


def unwritable(read: Any) -> Any:
    """Spoil the second of an answer's topics, once its records are pinned."""

    def spoiled(fetch: Any) -> Any:
        response = read(fetch)
        for topic in response.responses:
            assert topic.partitions[0].records.fileno() is not None
        response.responses[1].partitions[0].high_watermark = 2**70
        return response

    return spoiled


def test_times_are_counted(tmp_path: Path) -> None:
    """Every answered request is in the histogram of its API."""
    with Serving(tmp_path) as serving, serving.connect() as wire:
        for _ in range(3):
            wire.ask(DescribeClusterRequest(), 1)
        times = serving.broker.metrics.histogram(TOTAL_TIME, "DescribeCluster")
        assert times.count == 3


def test_a_queued_handler_is_called_again(tmp_path: Path) -> None:
    """Its first coroutine never ran; the second one does, once there is room."""
    called: list[int] = []
    ran: list[int] = []
    with Serving(tmp_path, {"queued.max.requests": 1}) as serving:
        room = serving.inside(asyncio.Event)

        async def answer(number: int) -> DescribeClusterResponse:
            ran.append(number)
            await room.wait()
            return DescribeClusterResponse()

        def handle(broker: object, request: Any) -> Any:
            called.append(request.correlation_id)
            return answer(request.correlation_id)

        served: dict[int, Served] = serving.broker.served
        served[KEY] = replace(served[KEY], handle=handle)
        with serving.connect() as first, serving.connect() as second:
            first.send(DescribeClusterRequest(), 1)
            serving.wait_inside(lambda: len(ran) == 1, "the first one runs")
            second.send(DescribeClusterRequest(), 1)
            serving.wait_inside(lambda: len(called) == 2, "the second one is queued")
            assert len(ran) == 1
            serving.inside(room.set)
            for wire in (first, second):
                assert wire.receive(DescribeClusterRequest, 1)[1].error_code == 0
    assert (len(called), len(ran)) == (3, 2)


@pytest.mark.parametrize(
    ("parked", "is_idle", "bug"), [(object(), False, "parked"), (None, True, "answered")]
)
def test_a_queued_handler_must_not_have_done_anything(
    serving: Serving, parked: object, is_idle: bool, bug: str
) -> None:
    connection = SimpleNamespace(parked=parked, is_idle=is_idle)
    pending = _later(DescribeClusterResponse())
    served = replace(serving.broker.served[KEY], handle=lambda broker, request: pending)
    broker = serving.broker
    metrics = RequestMetrics(Registry(), {}, LongSteps(broker.clock))
    router = Router(broker, {}, broker.silence, broker.clock, metrics, broker.quotas, 0, {})
    with pytest.raises(AssertionError, match=bug):
        router._handle(served, cast(Any, SimpleNamespace(connection=connection)))
    pending.close()


class Peer:
    """A connection that keeps what it was given."""

    def __init__(self) -> None:
        self.session = SimpleNamespace(client_host="h")
        self.answers: list[bytes] = []
        self.closed = ""

    def answer(self, data: bytes) -> None:
        self.answers.append(data)

    def close(self, reason: str) -> None:
        self.closed = reason


@pytest.mark.parametrize("late", ["before", "meanwhile", "never"])
def test_a_broker_looks_at_the_clock_before_it_handles_and_before_it_answers(
    serving: Serving, late: str
) -> None:
    """It may have stood still at any moment: nothing from before its silence is sent."""
    now_s = 9.0
    seen: list[bool] = []

    class Silence:
        until_s = 10.0
        is_silent = False

        def look(self) -> None:
            self.is_silent, self.until_s = True, float("inf")

    silence = Silence()

    def handle(broker: object, request: object) -> DescribeClusterResponse:
        nonlocal now_s
        seen.append(silence.is_silent)
        if late == "meanwhile":
            now_s = 10.0
        return DescribeClusterResponse()

    served = {KEY: replace(serving.broker.served[KEY], handle=handle)}
    metrics = RequestMetrics(Registry(), served, LongSteps(lambda: now_s))
    quotas = serving.broker.quotas
    router: Any = Router(None, served, cast(Any, silence), lambda: now_s, metrics, quotas, 1, {})
    if late == "before":
        now_s = 10.0
    peer = Peer()
    router.dispatch(
        cast(Any, peer), memoryview(request_frame(DescribeClusterRequest(), 1, 1, "")[4:])
    )
    assert seen == [late == "before"]
    assert len(peer.answers) == (late != "meanwhile")
    assert bool(peer.closed) == (late == "meanwhile")


@pytest.mark.parametrize("later", [False, True])
def test_a_handler_that_holds_the_loop_up_is_recorded(serving: Serving, later: bool) -> None:
    """Its steps count, not what it waits for."""
    now_s = 9.0
    took_s = [0.4, 0.3]

    async def steps() -> DescribeClusterResponse:
        nonlocal now_s
        now_s += took_s[0]
        await asyncio.sleep(0)
        now_s += took_s[1]
        return DescribeClusterResponse()

    def handle(broker: object, request: object) -> Any:
        nonlocal now_s
        if later:
            return steps()
        now_s += 0.4
        return DescribeClusterResponse()

    async def story() -> Step | None:
        served = {KEY: replace(serving.broker.served[KEY], handle=handle)}
        long_steps = LongSteps(lambda: now_s)
        metrics = RequestMetrics(Registry(), served, long_steps)
        silence: Any = SimpleNamespace(until_s=1000.0, is_silent=False)
        quotas = serving.broker.quotas
        router: Any = Router(None, served, silence, lambda: now_s, metrics, quotas, 1, {})
        peer = Peer()
        frame = memoryview(request_frame(DescribeClusterRequest(), 1, 1, "")[4:])
        router.dispatch(cast(Any, peer), frame)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=60)
        assert len(peer.answers) == 1
        return long_steps.take()

    step = asyncio.run(story())
    assert step is not None
    assert (step.kind, step.name) == ("request", "DescribeCluster")
    assert step.seconds == pytest.approx(0.4)
