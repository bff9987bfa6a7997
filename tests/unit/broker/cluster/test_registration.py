"""How a broker enters the tree: ids that are kept and ids that clash, from session to session."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from barnabas.broker.cluster import registration as module
from barnabas.broker.cluster.registration import Registration, SessionRenewal
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import (
    NoPermission,
    ServiceUnavailable,
    SessionExpired,
    SessionState,
)
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import ConfigError

LISTENERS = BrokerOptions.parse({"listeners": "PLAINTEXT://h:1"}).endpoints
PORTS = {"PLAINTEXT": 1}


async def registration(
    store: MemoryStore, **options: str
) -> tuple[Registration, MemoryCoordination]:
    tree = MemoryCoordination(store)
    await tree.start()
    counter = itertools.count(7)
    given = {"zookeeper.session.timeout.ms": "50"}
    given |= {name.replace("_", "."): value for name, value in options.items()}
    parsed = BrokerOptions.parse(given)
    return Registration(tree, parsed, lambda size: next(counter).to_bytes(size, "big")), tree


def test_the_cluster_id_is_made_once() -> None:
    """The first broker makes it; a directory that knows another one is refused."""

    async def story() -> None:
        store = MemoryStore()
        first, tree = await registration(store)
        cluster_id = await first.find_cluster_id(None)
        assert len(cluster_id) == 22
        for path in nodes.PERSISTENT_PATHS:
            assert await tree.exists(path) is not None, path
        second, _ = await registration(store)
        assert await second.find_cluster_id(None) == cluster_id
        assert await second.find_cluster_id(cluster_id) == cluster_id
        with pytest.raises(ConfigError, match="another"):
            await second.find_cluster_id("another")

    asyncio.run(story())


def test_a_new_tree_keeps_the_stored_cluster_id() -> None:
    """A directory outlives the loss of an embedded tree."""

    async def story() -> None:
        made, _ = await registration(MemoryStore())
        assert await made.find_cluster_id("the-old-one") == "the-old-one"

    asyncio.run(story())


def test_broker_ids() -> None:
    """Configured, stored, or the next of the cluster's sequence."""

    async def story() -> None:
        store = MemoryStore()
        given, _ = await registration(store, broker_id="5")
        automatic, _ = await registration(store)
        await given.find_cluster_id(None)
        assert await given.find_broker_id(None) == 5
        assert await given.find_broker_id("5") == 5
        assert await automatic.find_broker_id("7") == 7
        assert [await automatic.find_broker_id(None) for _ in range(2)] == [1001, 1002]
        with pytest.raises(ConfigError, match="belongs to broker 7"):
            await given.find_broker_id("7")

    asyncio.run(story())


def test_registrations_clash() -> None:
    """Two live brokers cannot have one id; when the first is gone, the second may."""

    async def story() -> None:
        store = MemoryStore()
        first, first_tree = await registration(store, broker_id="1")
        await first.join({})
        view = await first.register(LISTENERS, PORTS, 0)
        second, second_tree = await registration(store, broker_id="1")
        await second.join({})
        with pytest.raises(ConfigError, match=r"broker\.id=1"):
            await second.register(LISTENERS, PORTS, 0)
        await first_tree.close()
        again = await second.register(LISTENERS, PORTS, 0)
        assert again.epoch > view.epoch
        data, stat = await second_tree.get(nodes.broker_path(1))
        claim = nodes.BrokerRegistration(
            [("PLAINTEXT", "h", 1)], {"PLAINTEXT": "PLAINTEXT"}, None, 0
        )
        assert data == claim.encode()
        assert stat.ephemeral_owner == second_tree.session_id

    asyncio.run(story())


class Story:
    """A session, and what its keeper did."""

    def __init__(self, *failures: Exception) -> None:
        self.store = MemoryStore()
        self.tree = MemoryCoordination(self.store)
        self.failures = list(failures)
        self.entered = 0
        self.left: list[SessionState] = []
        self.given_up: list[str] = []
        self.refusals = 0
        self.done = asyncio.Event()

    async def begin(self) -> SessionRenewal:
        await self.tree.start()
        keeper = SessionRenewal(self.tree, self._leave, self._enter, self._give_up, self._refused)
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

    def _refused(self) -> None:
        self.refusals += 1

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
        late.keeper = SessionRenewal(late.tree, late._leave, late._enter, late._give_up)
        late.keeper.start()
        async with asyncio.timeout(60):
            await late.done.wait()
        assert (late.entered, late.tree.state) == (1, SessionState.CONNECTED)

    asyncio.run(story())


def test_who_is_not_allowed_tries_again_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever runs the service can mend it; a broker that stopped would not come back."""
    monkeypatch.setattr(module, "NO_PERMISSION_PAUSE_S", 0.001)

    async def story() -> None:
        barred = Story(*[NoPermission("/x", "/x: not allowed")] * 3, NoPermission("", "no login"))
        await barred.expire()
        assert (barred.entered, barred.given_up) == (5, [])
        assert barred.refusals == 4

    asyncio.run(story())
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert said == [
        "broker cannot register again, retrying: /x: not allowed",
        "broker cannot register again, retrying: no login",
    ]


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
        assert broken.given_up == ["could not register again: ZeroDivisionError('a bug')"]
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
