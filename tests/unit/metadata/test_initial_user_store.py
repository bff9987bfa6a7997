"""Initial users are added once, whatever happened to them since."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.controller.trees import prepared

from barnabas.coordination.contract import Coordination
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.acl_store import AclStore
from barnabas.metadata.config_store import ConfigStore
from barnabas.metadata.initial_user_store import InitialUserStore
from barnabas.security.initial_users import InitialUser, own_names

Story = Callable[[Coordination, ConfigStore, AclStore, InitialUserStore], Awaitable[None]]
ADA = InitialUser("ada", {"SCRAM-SHA-256": "one", "SCRAM-SHA-512": "two"}, own_names("ada", "a-"))


def told(story: Story) -> None:
    async def run() -> None:
        tree = await prepared()
        configs, acls = ConfigStore(tree), AclStore(tree, lambda: 0.5)
        await story(tree, configs, acls, InitialUserStore(tree, configs, acls))

    asyncio.run(run())


def test_a_user_gets_credentials_and_acls_and_brokers_are_notified() -> None:
    async def story(
        tree: Coordination, configs: ConfigStore, acls: AclStore, store: InitialUserStore
    ) -> None:
        assert await store.add(ADA)
        assert await configs.get("users", "ada") == dict(ADA.credentials)
        assert set(await acls.load()) == set(ADA.acls)
        [notice] = await tree.children(nodes.CONFIG_CHANGES)
        data, _ = await tree.get(f"{nodes.CONFIG_CHANGES}/{notice}")
        assert b"users/ada" in data

    told(story)


def test_what_was_changed_or_removed_since_stays_so() -> None:
    async def story(
        tree: Coordination, configs: ConfigStore, acls: AclStore, store: InitialUserStore
    ) -> None:
        await store.add(ADA)
        await configs.set("users", "ada", {})
        for pattern, _ in ADA.acls:
            await acls.update(pattern, lambda old: ())
        assert not await store.add(ADA)
        assert await configs.get("users", "ada") == {}
        assert await acls.load() == []

    told(story)


def test_a_user_who_exists_keeps_the_password_and_the_quotas() -> None:
    async def story(
        tree: Coordination, configs: ConfigStore, acls: AclStore, store: InitialUserStore
    ) -> None:
        own = {"producer_byte_rate": "1", "SCRAM-SHA-512": "of before"}
        await configs.set("users", "ada", own)
        assert await store.add(ADA)
        assert await configs.get("users", "ada") == own

    told(story)


def test_what_was_interrupted_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(
        tree: Coordination, configs: ConfigStore, acls: AclStore, store: InitialUserStore
    ) -> None:
        async def fail(*_: object) -> None:
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(configs, "update", fail)
            with pytest.raises(OSError):
                await store.add(ADA)
        assert await acls.load() != []
        assert await store.add(ADA)
        assert await configs.get("users", "ada") == dict(ADA.credentials)

    told(story)


def test_of_two_brokers_one_adds_a_user() -> None:
    async def story(
        tree: Coordination, configs: ConfigStore, acls: AclStore, store: InitialUserStore
    ) -> None:
        plain = InitialUser("bob/ö", {"SCRAM-SHA-256": "one"})
        assert sorted(await asyncio.gather(store.add(plain), store.add(plain))) == [False, True]
        assert await configs.get("users", "bob/ö") == {"SCRAM-SHA-256": "one"}

    told(story)
