"""User code asked for by the loop runs in the thread that waits for the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from barnabas.blocking.errands import Errands
from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.errors import WakeupError
from barnabas.consumer.group.callbacks import unbroken


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


def test_an_interrupt_ends_the_wait_that_is_under_way(errands: Errands) -> None:
    """From another thread, while the coroutine waits for something that does not come."""
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    def interrupt() -> None:
        assert begun.wait(10)
        errands.interrupt()

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(WakeupError):
        errands.run(work(), interruptible=True)
    other.join()
    assert errands.run(asyncio.sleep(0, "on"), interruptible=True) == "on"


def test_an_interrupt_waits_for_a_wait_that_can_be_ended(errands: Errands) -> None:
    """Others are left alone; what was interrupted before it began is not begun."""
    errands.interrupt()
    assert errands.run(asyncio.sleep(0, "quiet")) == "quiet"
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)
        await asyncio.Event().wait()

    with pytest.raises(WakeupError):
        errands.run(work(), interruptible=True)
    errands.raise_interrupt()  # it was taken


def test_an_interrupt_lets_an_unbroken_step_and_its_errands_be_done(errands: Errands) -> None:
    """The errand asked for before and those asked for after it are carried out."""
    done: list[str] = []

    async def step() -> None:
        await errands.invoke(errands.interrupt)
        await errands.invoke(done.append, "after")

    async def work() -> None:
        await unbroken(step())
        done.append("too far")

    with pytest.raises(WakeupError):
        errands.run(work(), interruptible=True)
    assert done == ["after"]


def test_an_interrupt_that_comes_too_late_is_for_the_next_wait(errands: Errands) -> None:
    """The coroutine had a result, which is returned."""

    async def work() -> str:
        try:
            await errands.invoke(errands.interrupt)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return "done"

    assert errands.run(work(), interruptible=True) == "done"
    with pytest.raises(WakeupError):
        errands.raise_interrupt()


def test_ctrl_c_breaks_an_unbroken_step_off(errands: Errands) -> None:
    """Nobody is there any more to do what it asks for."""
    ended = threading.Event()

    def press() -> None:
        raise KeyboardInterrupt

    async def step() -> None:
        try:
            await errands.invoke(press)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        errands.run(unbroken(step()))
    assert ended.wait(10)
