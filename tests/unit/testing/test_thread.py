"""A broker in a thread: its failures are raised where it was started or stopped."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from barnabas.config.listeners import Endpoint
from barnabas.testing.thread import ThreadRunner


class FakeBroker:
    """Notes what happens to it, and in which thread; fails where it is told to."""

    def __init__(self, options: Mapping[str, str], notes: list[str]) -> None:
        self.failing = options.get("failing")
        self.notes = notes

    async def _note(self, what: str) -> None:
        self.notes.append(f"{what} in {threading.current_thread().name}")
        if self.failing == what:
            raise RuntimeError(f"cannot {what}")

    async def start(self) -> None:
        await self._note("start")

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        from barnabas.config.listeners import SecurityProtocol

        return [Endpoint("PLAINTEXT", "127.0.0.1", 5, SecurityProtocol.PLAINTEXT)]

    async def stop(self) -> None:
        await self._note("stop")

    async def kill(self) -> None:
        await self._note("kill")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_broker_lives_in_its_thread(end: str) -> None:
    notes: list[str] = []
    before = set(threading.enumerate())
    runner = ThreadRunner(lambda options: FakeBroker(options, notes))
    assert runner.start({}) == ("127.0.0.1", 5)
    getattr(runner, end)()
    assert notes == ["start in barnabas-broker", f"{end} in barnabas-broker"]
    assert set(threading.enumerate()) <= before


def test_a_failure_to_start_is_raised_by_start() -> None:
    runner = ThreadRunner(lambda options: FakeBroker(options, []))
    with pytest.raises(RuntimeError, match="cannot start"):
        runner.start({"failing": "start"})


def test_a_failure_to_stop_is_raised_by_stop() -> None:
    runner = ThreadRunner(lambda options: FakeBroker(options, []))
    runner.start({"failing": "stop"})
    with pytest.raises(RuntimeError, match="cannot stop"):
        runner.stop()
