"""Work on other threads ends before anybody who asked for it goes on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from barnabas.broker.elsewhere import elsewhere


async def settle() -> None:
    """Let everything run that can run now."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_result_and_failure() -> None:
    async def story() -> None:
        assert await elsewhere(None, divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await elsewhere(None, divmod, 7, 0)

    asyncio.run(story())


def test_cancelled_after_its_end() -> None:
    """Who is cancelled meanwhile comes back when the thread is done, not before."""

    async def story() -> None:
        begun, gate, ended = Event(), Event(), Event()

        def work() -> None:
            begun.set()
            gate.wait()
            ended.set()

        with ThreadPoolExecutor(1) as executor:
            asking = asyncio.get_running_loop().create_task(elsewhere(executor, work))
            await asyncio.to_thread(begun.wait)
            asking.cancel()
            await settle()
            assert not asking.done()
            gate.set()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert ended.is_set()

    asyncio.run(story())
