"""Sessions of a store in memory that expire by the clock, and ways to it that hold things back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.coordination.contract import Event, EventType, SessionExpired, SessionState
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


def test_heartbeats_keep_a_session_and_their_absence_ends_it():
    loop = SimulatedLoop(seed=1)
    store = MemoryStore()
    there, back = Way(loop), Way(loop)
    lonely = MemoryCoordination(store, timeout_ms=6000, to_store=there, to_session=back)
    witness = MemoryCoordination(store, timeout_ms=6000)
    gone = loop.create_future()
    states: list[SessionState] = []
    lonely.add_session_listener(states.append)

    async def scenario() -> None:
        await lonely.start()
        await witness.start()
        await lonely.create("/controller", ephemeral=True)
        await witness.exists("/controller", lambda event: gone.set_result((loop.time(), event)))
        for way in (there, back):
            loop.call_at(60, setattr, way, "cut", True)
        when, event = await gone
        assert event == Event(EventType.DELETED, "/controller")
        # Alive as long as it was heard of, expired at most a timeout after the last heartbeat.
        assert 64 <= when <= 66.1
        assert lonely.state is SessionState.CONNECTED, "it cannot know yet"
        there.heal()
        back.heal()
        with pytest.raises(SessionExpired):
            await lonely.exists("/controller")
        await lonely.start()
        assert await lonely.children("/") == []
        await lonely.close()
        await witness.close()

    loop.run_until_complete(scenario())
    loop.close()
    assert states == [
        SessionState.CONNECTED,
        SessionState.EXPIRED,
        SessionState.CONNECTED,
        SessionState.CLOSED,
    ]
