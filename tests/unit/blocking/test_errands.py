"""User code asked for by the loop runs in the thread that waits for the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from barnabas.blocking.errands import Errands
from barnabas.blocking.loop_thread import LoopThread


@pytest.fixture
def errands() -> Iterator[Errands]:
    thread = LoopThread("errands")
    yield Errands(thread)
    thread.stop()


def test_functions_run_in_the_waiting_thread(errands: Errands) -> None:
    """The coroutine runs on the loop, its errand here, and the result goes back."""

    async def work() -> tuple[int, object]:
        return threading.get_ident(), await errands.invoke(threading.get_ident)

    loop_thread, errand_thread = errands.run(work())
    assert errand_thread == threading.get_ident()
    assert loop_thread != errand_thread


def test_failures_go_back(errands: Errands) -> None:
    """What an errand raises is raised where it was asked for, and from there to the caller."""

    def fail() -> None:
        raise LookupError("not here")

    async def work() -> None:
        await errands.invoke(fail)

    with pytest.raises(LookupError, match="not here"):
        errands.run(work())


def test_errands_nest(errands: Errands) -> None:
    """An errand may itself wait for the loop, and have errands done meanwhile."""

    async def inner() -> object:
        return await errands.invoke(lambda: "deep")

    async def outer() -> object:
        return await errands.invoke(lambda: errands.run(inner()))

    assert errands.run(outer()) == "deep"


def test_coroutines_are_awaited_on_the_loop(errands: Errands) -> None:
    """A function that gives a coroutine is called here and awaited there."""

    async def elsewhere() -> int:
        return threading.get_ident()

    async def work() -> tuple[int, object]:
        return threading.get_ident(), await errands.invoke(elsewhere)

    loop_thread, awaited = errands.run(work())
    assert awaited == loop_thread


def test_without_anyone_waiting(errands: Errands) -> None:
    """Then it runs on the loop itself."""
    asyncio.run(_alone(errands))


async def _alone(errands: Errands) -> None:
    assert await errands.invoke(lambda: "here") == "here"


def test_an_ended_loop_is_told(errands: Errands) -> None:
    """The coroutine is closed, not leaked."""
    errands._thread.stop()

    async def work() -> None: ...

    with pytest.raises(Exception, match="has ended"):
        errands.run(work())
