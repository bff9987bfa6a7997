"""Tasks that nobody waits for."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.broker.tasks import spawn


def test_a_mistake_is_told_although_the_task_is_kept() -> None:
    async def fails() -> None:
        raise ZeroDivisionError("a bug")

    async def waits() -> None:
        await asyncio.Event().wait()

    async def works() -> None:
        return None

    async def story() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        kept = [spawn(work(), work.__name__) for work in (fails, waits, works)]
        await asyncio.wait(kept[::2])
        kept[1].cancel()
        await asyncio.wait(kept)
        await asyncio.sleep(0)
        assert [each["message"] for each in told] == ["fails has ended by a mistake"]
        assert isinstance(told[0]["exception"], ZeroDivisionError)

    asyncio.run(story())
