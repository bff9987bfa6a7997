"""The router: where exceptions become error codes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import Serving

from barnabas.broker.router import Served
from barnabas.coordination.contract import SessionExpired
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)

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
    assert "session 7 has ended" in response.error_message
    serving.expect_no_lines()


def test_answers_that_cannot_be_written(serving: Serving, broken: Any) -> None:
    """The connection is closed, since no other answer fits; others go on."""
    broken(lambda broker, request: DescribeClusterResponse(controller_id=2**40))
    with serving.connect() as wire:
        wire.send(DescribeClusterRequest(), 1)
        wire.expect_close()
    failure, closing = serving.lines.of()
    assert "cannot be encoded" in failure
    assert "cannot be encoded" in closing
    serving.lines.clear()


def test_times_are_counted(tmp_path: Path) -> None:
    """Every answered request is in the histogram of its API."""
    with Serving(tmp_path) as serving, serving.connect() as wire:
        for _ in range(3):
            wire.ask(DescribeClusterRequest(), 1)
        times = serving.broker.metrics.histogram(
            "request_time_us", "Time from a request's frame to its answer.", api="DescribeCluster"
        )
        assert times.count == 3
