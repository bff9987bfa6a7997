"""Handshakes in turns of the loop."""

from __future__ import annotations

import asyncio
from functools import partial

from barnabas.broker.network.handshakes import Handshakes


def test_a_few_steps_are_made_per_turn_in_their_order() -> None:
    made: list[int] = []
    per_turn: list[int] = []

    async def crowd() -> None:
        handshakes = Handshakes(steps_max=3)
        for number in range(8):
            handshakes.take(partial(made.append, number))
        per_turn.append(len(made))
        while handshakes.waiting:
            await asyncio.sleep(0)
            per_turn.append(len(made))
        await asyncio.sleep(0)
        handshakes.take(lambda: made.append(8))  # the crowd is gone: at once
        per_turn.append(len(made))

    asyncio.run(crowd())
    assert per_turn == [3, 6, 8, 9]
    assert made == list(range(9))


def test_steps_that_ask_for_more_steps_wait_behind_the_others() -> None:
    made: list[str] = []

    async def both() -> None:
        handshakes = Handshakes(steps_max=1)

        def first() -> None:
            made.append("first")
            handshakes.take(lambda: made.append("its second"))

        handshakes.take(first)
        handshakes.take(lambda: made.append("other"))
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(both())
    assert made == ["first", "its second", "other"]
