"""User code asked for by the loop runs in the thread that waits for the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from barnabas.blocking.loop_thread import LoopThread
from barnabas.blocking.user_callbacks import UserCallbacks
from barnabas.client.errors import WakeupError
from barnabas.consumer.group.callbacks import unbroken


@pytest.fixture
def callbacks() -> Iterator[UserCallbacks]:
    thread = LoopThread("callbacks")
    yield UserCallbacks(thread)
    thread.stop()


def test_functions_run_in_the_waiting_thread(callbacks: UserCallbacks) -> None:
    """The coroutine runs on the loop, its callback here, and the result goes back."""

    async def work() -> tuple[int, object]:
        return threading.get_ident(), await callbacks.invoke(threading.get_ident)

    loop_thread, errand_thread = callbacks.run(work())
    assert errand_thread == threading.get_ident()
    assert loop_thread != errand_thread


def test_functions_of_a_quick_loop_run_in_the_waiting_thread(
    callbacks: UserCallbacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the loop asks before the thread that waits has got any further."""
    thread = callbacks._thread
    post = thread.post

    async def turns() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    def post_and_be_overtaken(function: Callable[[], None]) -> None:
        post(function)
        thread.call(turns())

    async def work() -> object:
        return await callbacks.invoke(threading.get_ident)

    monkeypatch.setattr(thread, "post", post_and_be_overtaken)
    assert callbacks.run(work()) == threading.get_ident()


def test_failures_go_back(callbacks: UserCallbacks) -> None:
    """What an callback raises is raised where it was asked for, and from there to the caller."""

    def fail() -> None:
        raise LookupError("not here")

    async def work() -> None:
        await callbacks.invoke(fail)

    with pytest.raises(LookupError, match="not here"):
        callbacks.run(work())


def test_callbacks_nest(callbacks: UserCallbacks) -> None:
    """An callback may itself wait for the loop, and have callbacks done meanwhile."""

    async def inner() -> object:
        return await callbacks.invoke(lambda: "deep")

    async def outer() -> object:
        return await callbacks.invoke(lambda: callbacks.run(inner()))

    assert callbacks.run(outer()) == "deep"


def test_coroutines_are_awaited_on_the_loop(callbacks: UserCallbacks) -> None:
    """A function that gives a coroutine is called here and awaited there."""

    async def elsewhere() -> int:
        return threading.get_ident()

    async def work() -> tuple[int, object]:
        return threading.get_ident(), await callbacks.invoke(elsewhere)

    loop_thread, awaited = callbacks.run(work())
    assert awaited == loop_thread


def test_without_anyone_waiting(callbacks: UserCallbacks) -> None:
    """Then it runs on the loop itself."""
    asyncio.run(_alone(callbacks))


async def _alone(callbacks: UserCallbacks) -> None:
    assert await callbacks.invoke(lambda: "here") == "here"


def test_an_ended_loop_is_told(callbacks: UserCallbacks) -> None:
    """The coroutine is closed, not leaked."""
    callbacks._thread.stop()

    async def work() -> None: ...

    with pytest.raises(Exception, match="is closed"):
        callbacks.run(work())


def test_an_interrupt_ends_the_wait_that_is_under_way(callbacks: UserCallbacks) -> None:
    """From another thread, while the coroutine waits for something that does not come."""
    begun = threading.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    def interrupt() -> None:
        assert begun.wait(10)
        callbacks.interrupt()

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(WakeupError):
        callbacks.run(work(), interruptible=True)
    other.join()
    assert callbacks.run(asyncio.sleep(0, "on"), interruptible=True) == "on"


def test_an_interrupt_waits_for_a_wait_that_can_be_ended(callbacks: UserCallbacks) -> None:
    """Others are left alone; what was interrupted before it began is not begun."""
    callbacks.interrupt()
    assert callbacks.run(asyncio.sleep(0, "quiet")) == "quiet"
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)
        await asyncio.Event().wait()

    with pytest.raises(WakeupError):
        callbacks.run(work(), interruptible=True)
    callbacks.raise_interrupt()  # it was taken


def test_an_interrupt_lets_an_unbroken_step_and_its_callbacks_end(callbacks: UserCallbacks) -> None:
    """The callback asked for before and those asked for after it are carried out."""
    done: list[str] = []

    async def step() -> None:
        await callbacks.invoke(callbacks.interrupt)
        await callbacks.invoke(done.append, "after")

    async def work() -> None:
        await unbroken(step())
        done.append("too far")

    with pytest.raises(WakeupError):
        callbacks.run(work(), interruptible=True)
    assert done == ["after"]


def test_an_interrupt_that_comes_too_late_is_for_the_next_wait(callbacks: UserCallbacks) -> None:
    """The coroutine had a result, which is returned."""

    async def work() -> str:
        try:
            await callbacks.invoke(callbacks.interrupt)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return "done"

    assert callbacks.run(work(), interruptible=True) == "done"
    with pytest.raises(WakeupError):
        callbacks.raise_interrupt()


def test_ctrl_c_breaks_an_unbroken_step_off(callbacks: UserCallbacks) -> None:
    """Nobody is there any more to do what it asks for."""
    ended = threading.Event()

    def press() -> None:
        raise KeyboardInterrupt

    async def step() -> None:
        try:
            await callbacks.invoke(press)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        callbacks.run(unbroken(step()))
    assert ended.wait(10)
