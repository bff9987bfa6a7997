"""What a session makes of the ways to its store and back."""

from __future__ import annotations

import contextvars
from collections.abc import Callable

from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.simulation.loop import SimulatedLoop


class Way:
    """A link that can be cut: it keeps what was sent, in order, until it is healed."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.cut = False
        self.held: list[Callable[[], None]] = []

    def __call__(self, act: Callable[[], None]) -> None:
        if self.cut:
            self.held.append(act)
        else:
            self.loop.call_soon(act)

    def heal(self) -> None:
        self.cut = False
        held, self.held = self.held, []
        for act in held:
            self.loop.call_soon(act)


def test_a_cut_off_session_waits_and_goes_on_when_contact_is_back_in_time():
    loop = SimulatedLoop(seed=1)
    store = MemoryStore()
    there, back = Way(loop), Way(loop)
    session = MemoryCoordination(store, timeout_ms=6000, to_store=there, to_session=back)

    async def scenario() -> float:
        await session.start()
        there.cut = True
        loop.call_later(3, there.heal)
        await session.create("/a", ephemeral=True)
        waited = loop.time()
        await session.close()
        return waited

    assert loop.run_until_complete(scenario()) == 3
    loop.close()


async def test_watches_run_in_the_context_of_their_own_session():
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    store = MemoryStore()
    one, two = MemoryCoordination(store), MemoryCoordination(store)
    heard: list[str] = []
    who.set("two")
    await two.start()
    who.set("one")
    await one.start()
    await two.exists("/a", lambda event: heard.append(who.get()))
    await one.create("/a")
    await two.exists("/a")
    assert heard == ["two"]
    await one.close()
    await two.close()
