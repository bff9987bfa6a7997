"""Dynamic configs as nodes, and the notices about them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.controller.trees import prepared

from barnabas.coordination.contract import NoNode, Stat
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.config_store import ConfigStore


def test_each_change_is_stored_and_announced() -> None:
    async def story() -> None:
        tree = await prepared()
        store = ConfigStore(tree)
        await store.set("brokers", nodes.DEFAULT_ENTITY, {"a": "1"})
        await store.set("brokers", "0", {"b": "2"})
        await store.set("brokers", "0", {"b": "3"})
        assert await store.get_all("brokers") == {"<default>": {"a": "1"}, "0": {"b": "3"}}
        notices = sorted(await tree.children(nodes.CONFIG_CHANGES))
        assert notices == [f"config_change_{number:010}" for number in range(3)]
        texts = [(await tree.get(f"{nodes.CONFIG_CHANGES}/{name}"))[0] for name in notices]
        assert texts[0] == b'{"version":2,"entity_path":"brokers/<default>"}'
        assert texts[1] == texts[2] == b'{"version":2,"entity_path":"brokers/0"}'

    asyncio.run(story())


def test_an_entity_without_a_node_has_no_configs() -> None:
    async def story() -> None:
        store = ConfigStore(await prepared())
        assert await store.get("topics", "t") == {}
        assert await store.get_all("topics") == {}

    asyncio.run(story())


def test_names_of_any_kind_come_back_as_they_were() -> None:
    async def story() -> None:
        tree = await prepared()
        store = ConfigStore(tree)
        name = "CN=a/b, O=ü*+ c%"
        await store.set("users", name, {"k": "v"})
        assert await store.get_all("users") == {name: {"k": "v"}}
        [notice] = await tree.children(nodes.CONFIG_CHANGES)
        path = f"{nodes.CONFIG_CHANGES}/{notice}"
        assert nodes.decode_config_change(path, (await tree.get(path))[0]) == ("users", name)

    asyncio.run(story())


def test_no_options_are_an_empty_node() -> None:
    async def story() -> None:
        store = ConfigStore(await prepared())
        await store.set("topics", "t", {"a": "1"})
        await store.set("topics", "t", {})
        assert await store.get_all("topics") == {"t": {}}

    asyncio.run(story())


def test_another_may_be_quicker() -> None:
    """The node comes or goes between the look at it and the write."""

    async def story() -> None:
        tree = await prepared()
        store = ConfigStore(tree)
        path = nodes.config_path("topics", "t")
        look = tree.exists
        meanwhile = [lambda: tree.create(path, b"theirs"), lambda: tree.delete(path)]

        async def look_too_early(*asked: Any) -> Stat | None:
            seen = await look(*asked)
            if meanwhile:
                await meanwhile.pop(0)()
            return seen

        tree.exists = look_too_early  # type: ignore[method-assign]
        await store.set("topics", "t", {"a": "1"})
        assert await store.get("topics", "t") == {"a": "1"}
        assert not meanwhile
        assert len(await tree.children(nodes.CONFIG_CHANGES)) == 1

    asyncio.run(story())


def test_a_type_of_entities_that_the_tree_does_not_have_is_named() -> None:
    async def story() -> None:
        with pytest.raises(NoNode, match="/config/planets"):
            await ConfigStore(await prepared()).set("planets", "mars", {})

    asyncio.run(story())


def test_client_ids_of_a_user_are_entities_below_it() -> None:
    """Their parents are created with the first of them; the notice has the whole path."""

    async def story() -> None:
        tree = await prepared()
        store = ConfigStore(tree)
        await store.set("users", "bob", {"k": "u"})
        ada = nodes.clients_of("a/da")
        await store.set(ada, "w eb", {"k": "v"})
        await store.set(ada, nodes.DEFAULT_ENTITY, {"k": "w"})
        assert (await tree.get("/config/users/a%2Fda/clients/w%20eb"))[0] == (
            b'{"version":1,"config":{"k":"v"}}'
        )
        assert await store.get_all("users") == {"a/da": {}, "bob": {"k": "u"}}
        assert await store.get_all_clients() == {ada: {"w eb": {"k": "v"}, "<default>": {"k": "w"}}}
        notices = await tree.children(nodes.CONFIG_CHANGES)
        path = f"{nodes.CONFIG_CHANGES}/{notices[1]}"
        data = (await tree.get(path))[0]
        assert data == b'{"version":2,"entity_path":"users/a%2Fda/clients/w%20eb"}'
        assert nodes.decode_config_change(path, data) == (ada, "w eb")
        assert nodes.user_of(ada) == "a/da"
        assert nodes.user_of("users") is None

    asyncio.run(story())


def test_an_update_keeps_what_others_change_meanwhile() -> None:
    """The change is computed again from what another broker has written."""

    async def story() -> None:
        tree = await prepared()
        seen: list[dict[str, str]] = []

        class Overtaken(ConfigStore):
            async def _write(self, *arguments: Any) -> bool:
                if len(seen) < 3:
                    await ConfigStore(tree).set("users", "ada", {"theirs": str(len(seen))})
                return await super()._write(*arguments)

        store = Overtaken(tree)
        after = await store.update("users", "ada", lambda values: note(seen, values))
        assert after == {"theirs": "2", "mine": "1"}
        assert seen == [{}, {"theirs": "1"}, {"theirs": "2"}]
        assert await store.get("users", "ada") == after
        written = len(await tree.children(nodes.CONFIG_CHANGES))
        assert await store.update("users", "ada", lambda values: values) == after
        assert len(await tree.children(nodes.CONFIG_CHANGES)) == written

    def note(seen: list[dict[str, str]], values: dict[str, str]) -> dict[str, str]:
        seen.append(dict(values))
        return {**values, "mine": "1"}

    asyncio.run(story())
