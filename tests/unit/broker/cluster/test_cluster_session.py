"""A broker's place in the cluster, kept when sessions end."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.broker.cluster.cluster_session import ClusterSession
from barnabas.coordination.contract import ServiceUnavailable, SessionExpired, SessionState
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.model.errors import ConfigError


class Story:
    """A session, and what its keeper did."""

    def __init__(self, *failures: Exception) -> None:
        self.store = MemoryStore()
        self.tree = MemoryCoordination(self.store)
        self.failures = list(failures)
        self.entered = 0
        self.left: list[SessionState] = []
        self.given_up: list[str] = []
        self.done = asyncio.Event()

    async def begin(self) -> ClusterSession:
        await self.tree.start()
        keeper = ClusterSession(self.tree, self._leave, self._enter, self._give_up)
        keeper.start()
        return keeper

    async def _leave(self) -> None:
        self.left.append(self.tree.state)

    async def _enter(self) -> None:
        self.entered += 1
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, SessionExpired):
                self.store.expire(self.tree.session_id)
            raise failure
        await self.tree.exists("/")
        self.done.set()

    async def _give_up(self, reason: str) -> None:
        self.given_up.append(reason)
        self.keeper.stop()
        self.done.set()

    async def expire(self) -> None:
        self.keeper = await self.begin()
        self.store.expire(self.tree.session_id)
        async with asyncio.timeout(60):
            await self.done.wait()


def test_a_new_session_is_opened_and_entered() -> None:
    """After an expiry the broker enters again; failures that pass are tried again."""

    async def story() -> None:
        plain = Story()
        await plain.expire()
        assert (plain.entered, plain.tree.state) == (1, SessionState.CONNECTED)
        assert plain.left == [SessionState.EXPIRED], "it holds no office while it has no session"
        unlucky = Story(ServiceUnavailable("away"), SessionExpired(1))
        await unlucky.expire()
        assert unlucky.given_up == []
        assert unlucky.failures == []
        entered = unlucky.entered
        unlucky.done.clear()
        unlucky.store.expire(unlucky.tree.session_id)
        async with asyncio.timeout(60):
            await unlucky.done.wait()
        assert unlucky.entered == entered + 1

    asyncio.run(story())


def test_a_session_that_ended_during_the_start_is_noticed() -> None:
    """Nobody listened then; the broker would serve on and never be in the cluster again."""

    async def story() -> None:
        late = Story()
        await late.tree.start()
        late.store.expire(late.tree.session_id)
        await asyncio.sleep(0)
        assert late.tree.state is SessionState.EXPIRED
        late.keeper = ClusterSession(late.tree, late._leave, late._enter, late._give_up)
        late.keeper.start()
        async with asyncio.timeout(60):
            await late.done.wait()
        assert (late.entered, late.tree.state) == (1, SessionState.CONNECTED)

    asyncio.run(story())


def test_who_cannot_enter_gives_up() -> None:
    """Another broker has the id by now: the reason is told, once."""

    async def story() -> None:
        refused = Story(ConfigError("broker.id=1: taken"))
        await refused.expire()
        assert refused.given_up == ["broker.id=1: taken"]
        assert refused.entered == 1

    asyncio.run(story())


def test_a_bug_is_told_and_ends_the_broker() -> None:
    """One that served on would be dead for the cluster, and nobody would know why."""

    async def story() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        broken = Story(ZeroDivisionError("a bug"))
        await broken.expire()
        assert broken.given_up == [
            "the cluster cannot be entered again: ZeroDivisionError('a bug')"
        ]
        assert [type(each["exception"]) for each in told] == [ZeroDivisionError]

    asyncio.run(story())


def test_a_stopped_keeper_lets_the_session_go() -> None:
    """After `stop` an expiry is nobody's business."""

    async def story() -> None:
        stopped = Story()
        (await stopped.begin()).stop()
        stopped.store.expire(stopped.tree.session_id)
        await asyncio.sleep(0)
        assert stopped.tree.state is SessionState.EXPIRED
        assert stopped.entered == 0

    asyncio.run(story())
