"""The turnstile before the data plane, turn by turn, on a clock of the test's own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.network.turnstile import TURN_S_MAX, Turnstile


class Plane:
    """A data plane each of whose requests takes a while, and a controller that may be heard."""

    def __init__(self, request_s: float) -> None:
        self.request_s = request_s
        self.now_s = 100.0
        self.heard = False
        self.passed: list[int] = []
        self.waits: list[float] = []
        self.turnstile = Turnstile(self, lambda: self.heard, lambda: self.now_s)
        self.connections: list[Any] = []

    def dispatch(self, connection: Any, frame: memoryview, queued_s: float = 0.0) -> None:
        self.passed.append(frame[0])
        self.waits.append(queued_s)
        self.now_s += self.request_s

    def send(self, *numbers: int) -> list[Any]:
        """Send requests over connections of their own."""
        connections = [SimpleNamespace(is_open=True) for _ in numbers]
        for connection, number in zip(connections, numbers, strict=True):
            self.turnstile.dispatch(connection, memoryview(bytes([number])))  # type: ignore[arg-type]
        return connections

    async def turn(self) -> int:
        """Let the loop turn once; return how many requests have passed in it."""
        before = len(self.passed)
        await asyncio.sleep(0)
        return len(self.passed) - before


def test_requests_pass_for_some_milliseconds_per_turn_in_their_order() -> None:
    async def story() -> None:
        plane = Plane(TURN_S_MAX / 4)
        plane.send(*range(10))
        assert plane.passed == [0, 1, 2, 3]
        assert plane.turnstile.waiting == 6
        assert await plane.turn() == 4
        plane.send(10)
        assert plane.turnstile.waiting == 3, "behind those who wait"
        assert await plane.turn() == 3
        assert await plane.turn() == 0
        assert plane.passed == list(range(11))
        plane.send(11)
        assert plane.passed[-1] == 11, "nobody waits where nobody is before"

    asyncio.run(story())


def test_a_request_that_takes_longer_than_a_turn_passes_all_the_same() -> None:
    async def story() -> None:
        plane = Plane(10 * TURN_S_MAX)
        plane.send(0, 1, 2)
        assert plane.passed == [0]
        assert [await plane.turn() for _ in range(3)] == [1, 1, 0]
        assert plane.waits == pytest.approx([0, 0, 10 * TURN_S_MAX])

    asyncio.run(story())


def test_while_the_controller_is_heard_one_passes_per_turn() -> None:
    """Not none: what the controller says may take as long as the coordination service does."""

    async def story() -> None:
        plane = Plane(TURN_S_MAX / 100)
        plane.heard = True
        plane.send(*range(40))
        assert plane.passed == [0]
        assert [await plane.turn() for _ in range(5)] == [1] * 5
        plane.heard = False
        assert await plane.turn() == 34

    asyncio.run(story())


def test_who_has_gone_is_passed_over() -> None:
    async def story() -> None:
        plane = Plane(TURN_S_MAX)
        _, second, _ = plane.send(0, 1, 2)
        second.is_open = False
        while plane.turnstile.waiting:
            await plane.turn()
        assert plane.passed == [0, 2]

    asyncio.run(story())


def test_a_broker_that_stops_lets_all_pass() -> None:
    async def story() -> None:
        plane = Plane(TURN_S_MAX)
        plane.send(*range(5))
        plane.turnstile.release()
        assert plane.passed == list(range(5))
        assert await plane.turn() == 0

    asyncio.run(story())
