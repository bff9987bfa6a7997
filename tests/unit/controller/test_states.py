"""What the controller is doing: the outermost event names it."""

from __future__ import annotations

import asyncio

from barnabas.controller.states import ControllerState, doing
from barnabas.controller.term import Term


class Worker:
    def __init__(self) -> None:
        self.state = ControllerState.IDLE

    @doing(ControllerState.TOPIC_CHANGE)
    async def outer(self, value: int) -> int:
        return await self.inner(value)

    @doing(ControllerState.BROKER_CHANGE)
    async def inner(self, value: int) -> int:
        """Return what it was given."""
        return value


def test_an_event_that_runs_within_another_does_not_rename_it() -> None:
    worker = Worker()
    assert asyncio.run(worker.outer(5)) == 5
    assert worker.state is ControllerState.TOPIC_CHANGE
    worker.state = ControllerState.IDLE
    assert asyncio.run(worker.inner(6)) == 6
    assert worker.state is ControllerState.BROKER_CHANGE


def test_it_looks_like_what_it_wraps() -> None:
    assert Worker.inner.__doc__ == "Return what it was given."
    assert Term.brokers_changed.__name__ == "brokers_changed"
