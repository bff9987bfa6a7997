"""The share of each user in the work of searches."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.console.records.work import BusyError, Work


def test_a_user_has_two_turns_and_others_have_their_own() -> None:
    async def run() -> None:
        work = Work(per_user=2, waiting_max=3)
        entered: list[str] = []
        leave = asyncio.Event()

        async def search(user: str) -> None:
            async with work.turn(user):
                entered.append(user)
                await leave.wait()

        tasks = [asyncio.create_task(search("alice")) for _ in range(3)]
        tasks.append(asyncio.create_task(search("bob")))
        for _ in range(5):
            await asyncio.sleep(0)
        assert entered == ["alice", "alice", "bob"]
        with pytest.raises(BusyError, match="3 of your searches"):
            async with work.turn("alice"):
                pass
        leave.set()
        await asyncio.gather(*tasks)
        assert entered.count("alice") == 3
        assert work._rooms == {}
        work.executor.shutdown()

    asyncio.run(run())
