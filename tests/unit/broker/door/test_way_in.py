"""What stands for a connection while a request of the console is handled."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable

import pytest

from barnabas.broker.door.way_in import Closed, WayIn
from barnabas.broker.network import (
    client_quotas,
    request,
    request_metrics,
    router,
    turnstile,
)
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.session import Session
from barnabas.model.errors import StorageError
from barnabas.timing.purgatory import DelayedOperation


class Range:
    """A range of a file that can be read or not, and is released."""

    position = 0

    def __init__(self, data: bytes | None) -> None:
        self._data = data
        self.size = len(data or b"")
        self.released = 0

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int | None:
        return None

    def read(self) -> bytes:
        if self._data is None:
            raise StorageError("the disk is gone")
        return self._data

    def release(self) -> None:
        self.released += 1


class Waiting(DelayedOperation):
    """An operation that waits forever."""

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        raise AssertionError("it is cancelled")


def inside(act: Callable[[WayIn], None]) -> None:
    async def run() -> None:
        act(WayIn(Session("PLAIN", "192.0.2.1", "")))

    asyncio.run(run())


def test_the_first_answer_counts() -> None:
    def act(way: WayIn) -> None:
        assert way.is_open
        assert not way.is_idle
        way.answer(b"one")
        way.answer(b"two")
        way.close("too late")
        assert way.answered.result() == b"one"
        assert way.is_idle
        assert not way.is_open

    inside(act)


def test_ranges_of_files_are_read_and_released() -> None:
    def act(way: WayIn) -> None:
        file = Range(b"records")
        assert way.answer_parts([b"head", file, memoryview(b"tail")]), "nothing is left to send"
        assert way.answered.result() == b"headrecordstail"
        assert file.released == 1

    inside(act)


def test_a_range_that_cannot_be_read_fails_the_request() -> None:
    def act(way: WayIn) -> None:
        file = Range(None)
        way.answer_parts([b"head", file])
        with pytest.raises(Closed, match="the disk is gone"):
            way.answered.result()
        assert file.released == 1

    inside(act)


def test_what_is_parked_for_a_request_that_is_given_up_is_cancelled() -> None:
    def act(way: WayIn) -> None:
        operation = Waiting()
        way.parked = operation
        way.leave()
        assert way.parked is None
        assert way.answered.cancelled()
        assert not operation.complete(), "it was cancelled"

    inside(act)


def test_it_has_all_that_is_asked_of_a_connection() -> None:
    modules = (client_quotas, request, request_metrics, router, turnstile)
    used = {
        name
        for module in modules
        for name in re.findall(r"\bconnection\.(\w+)", inspect.getsource(module))
    }
    assert used > {"answer", "answer_parts", "close", "parked", "session"}
    # What follows `import` and `network.` is a module.
    missing = {name for name in used - {"import"} if not hasattr(Connection, name)}
    assert missing <= {"parked", "session"}, "attributes of instances"

    def act(way: WayIn) -> None:
        assert {name for name in used - {"import"} if not hasattr(way, name)} == set()
        sent: list[int] = []
        way.when_sent(lambda: sent.append(1))
        way.rejected("a reason")
        assert sent == [1]

    inside(act)


def test_a_throttle_is_remembered() -> None:
    def act(way: WayIn) -> None:
        way.throttle(1234)
        way.skip_answer()
        assert way.throttled_until_ms == 1234
        assert way.answered.result() == b""

    inside(act)
