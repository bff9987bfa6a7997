"""Waiting for something to hold: until it does, until time is up, or until nothing can change."""

from __future__ import annotations

import asyncio

from barnabas.broker.conditions import Conditions


def test_who_waits_is_woken_when_it_holds() -> None:
    async def story() -> None:
        conditions, found = Conditions(), []
        waiting = asyncio.ensure_future(conditions.until(lambda: bool(found), 60_000))
        await asyncio.sleep(0)
        conditions.look()
        await asyncio.sleep(0)
        assert not waiting.done()
        found.append(1)
        conditions.look()
        assert await waiting

    asyncio.run(story())


def test_time_may_be_up() -> None:
    assert not asyncio.run(Conditions().until(lambda: False, 1))


def test_when_nothing_more_happens_nobody_waits() -> None:
    async def story() -> None:
        conditions = Conditions()
        waiting = asyncio.ensure_future(conditions.until(lambda: False, 60_000))
        await asyncio.sleep(0)
        conditions.end()
        assert not await waiting
        assert not await conditions.until(lambda: False, 60_000)
        assert await conditions.until(lambda: True, 60_000)

    asyncio.run(story())
