"""Notices of changed configs: what came while we looked is acted upon, once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from tests.unit.controller.trees import prepared, session

from barnabas.broker.cluster import config_notices
from barnabas.broker.cluster.config_notices import ConfigNotices
from barnabas.coordination.contract import Found, NoPermission, Watch
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.config_store import ConfigStore


class Told:
    """The part of a broker that hears of changed configs."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, str]]] = []

    def configs_changed(self, entity_type: str, name: str, values: Mapping[str, str]) -> None:
        self.calls.append((entity_type, name, dict(values)))


async def following(tree: MemoryCoordination) -> tuple[Told, ConfigNotices]:
    told = Told()
    notices = ConfigNotices(tree, ConfigStore(tree), told.configs_changed)
    await notices.start()
    return told, notices


async def heard(told: Told, count: int) -> None:
    """Let the loop turn until so many changes were heard of."""
    for _ in range(200):
        if len(told.calls) >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{told.calls} instead of {count}")


def test_changes_of_others_are_read_anew() -> None:
    async def story() -> None:
        store = MemoryStore()
        tree, other = await prepared(store), await session(store)
        await ConfigStore(other).set("topics", "before", {"a": "0"})
        told, _ = await following(tree)
        await ConfigStore(other).set("topics", "t", {"a": "1"})
        await heard(told, 1)
        await ConfigStore(other).set("brokers", "<default>", {"b": "2"})
        await heard(told, 2)
        assert told.calls == [("topics", "t", {"a": "1"}), ("brokers", "<default>", {"b": "2"})]

    asyncio.run(story())


def test_a_new_session_catches_up() -> None:
    async def story() -> None:
        store = MemoryStore()
        tree, other = await prepared(store), await session(store)
        told, notices = await following(tree)
        await tree.close()
        await ConfigStore(other).set("topics", "t", {"a": "1"})
        assert told.calls == []
        await tree.start()
        await notices.start()
        assert told.calls == [("topics", "t", {"a": "1"})]

    asyncio.run(story())


def test_a_damaged_notice_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        store = MemoryStore()
        tree, other = await prepared(store), await session(store)
        told, _ = await following(tree)
        path = f"{nodes.CONFIG_CHANGES}/config_change_"
        await other.create(path, b"no json", sequence=True)
        await ConfigStore(other).set("topics", "t", {"a": "1"})
        await heard(told, 1)
        assert told.calls == [("topics", "t", {"a": "1"})]

    asyncio.run(story())
    assert "config_change_0000000000" in caplog.text


def test_configs_that_may_not_be_read_hold_up_no_others(caplog: pytest.LogCaptureFixture) -> None:
    """ZooKeeper keeps ACLs; a node may belong to somebody else."""

    async def story() -> None:
        store = MemoryStore()
        tree, other = await prepared(store), await session(store)
        told, _ = await following(tree)
        read = tree.get

        async def get(path: str, watch: Watch | None = None) -> Found:
            if path == "/config/users/eve":
                raise NoPermission(path, f"{path}: not allowed")
            return await read(path, watch)

        tree.get = get  # type: ignore[method-assign]
        await ConfigStore(other).set("users", "eve", {"a": "1"})
        await ConfigStore(other).set("topics", "t", {"a": "1"})
        await heard(told, 1)
        assert told.calls == [("topics", "t", {"a": "1"})]

    asyncio.run(story())
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert said.endswith("config_change_0000000000 skipped: /config/users/eve: not allowed")


def test_old_notices_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_notices, "KEPT", 2)

    async def story() -> None:
        store = MemoryStore()
        tree = await prepared(store)
        for number in range(5):
            await ConfigStore(tree).set("topics", "t", {"a": str(number)})
        await following(tree)
        assert await tree.children(nodes.CONFIG_CHANGES) == [
            "config_change_0000000003",
            "config_change_0000000004",
        ]

    asyncio.run(story())


def test_damaged_configs_hold_up_no_others(caplog: pytest.LogCaptureFixture) -> None:
    """Several changes may be read at once, after a session was lost."""

    async def story() -> None:
        store = MemoryStore()
        tree, other = await prepared(store), await session(store)
        told, notices = await following(tree)
        await tree.close()
        await ConfigStore(other).set("topics", "bad", {"a": "0"})
        await other.set(nodes.config_path("topics", "bad"), b"no json")
        await ConfigStore(other).set("topics", "t", {"a": "1"})
        await tree.start()
        await notices.start()
        assert told.calls == [("topics", "t", {"a": "1"})]

    asyncio.run(story())
    assert nodes.config_path("topics", "bad") in caplog.text


def test_what_changes_between_the_first_look_and_the_start_is_heard_of() -> None:
    """Loading logs may take minutes, and configs were read before that."""

    async def story() -> None:
        store = MemoryStore()
        tree, other = await prepared(store), await session(store)
        await ConfigStore(other).set("brokers", "<default>", {"a": "0"})
        told = Told()
        notices = ConfigNotices(tree, ConfigStore(tree), told.configs_changed)
        await notices.skip()
        await ConfigStore(other).set("brokers", "<default>", {"a": "1"})
        assert told.calls == []
        await notices.start()
        assert told.calls == [("brokers", "<default>", {"a": "1"})]

    asyncio.run(story())
