"""How a broker enters the tree: ids that are kept, and ids that clash."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from barnabas.broker.cluster.registration import Registration
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import ConfigError

CLAIM = nodes.BrokerRegistration([("PLAINTEXT", "h", 1)], {"PLAINTEXT": "PLAINTEXT"}, None, 0)


async def registration(store: MemoryStore) -> tuple[Registration, MemoryCoordination]:
    tree = MemoryCoordination(store)
    await tree.start()
    counter = itertools.count(7)
    made = Registration(tree, lambda size: next(counter).to_bytes(size, "big"), 50)
    return made, tree


def test_the_cluster_id_is_made_once() -> None:
    """The first broker makes it; a directory that knows another one is refused."""

    async def story() -> None:
        store = MemoryStore()
        first, tree = await registration(store)
        cluster_id = await first.cluster_id(None)
        assert len(cluster_id) == 22
        for path in nodes.PERSISTENT_PATHS:
            assert await tree.exists(path) is not None, path
        second, _ = await registration(store)
        assert await second.cluster_id(None) == cluster_id
        assert await second.cluster_id(cluster_id) == cluster_id
        with pytest.raises(ConfigError, match="another"):
            await second.cluster_id("another")

    asyncio.run(story())


def test_a_new_tree_keeps_the_stored_cluster_id() -> None:
    """A directory outlives the loss of an embedded tree."""

    async def story() -> None:
        made, _ = await registration(MemoryStore())
        assert await made.cluster_id("the-old-one") == "the-old-one"

    asyncio.run(story())


def test_broker_ids() -> None:
    """Configured, stored, or the next of the cluster's sequence."""

    async def story() -> None:
        made, _ = await registration(MemoryStore())
        await made.cluster_id(None)
        given = BrokerOptions.parse({"broker.id": "5"})
        automatic = BrokerOptions.parse({})
        assert await made.broker_id(given, None) == 5
        assert await made.broker_id(given, "5") == 5
        assert await made.broker_id(automatic, "7") == 7
        assert [await made.broker_id(automatic, None) for _ in range(2)] == [1001, 1002]
        with pytest.raises(ConfigError, match="belongs to broker 7"):
            await made.broker_id(given, "7")

    asyncio.run(story())


def test_registrations_clash() -> None:
    """Two live brokers cannot have one id; when the first is gone, the second may."""

    async def story() -> None:
        store = MemoryStore()
        first, first_tree = await registration(store)
        await first.cluster_id(None)
        epoch = await first.register(1, CLAIM)
        second, second_tree = await registration(store)
        with pytest.raises(ConfigError, match=r"broker\.id=1"):
            await second.register(1, CLAIM)
        await first_tree.close()
        assert await second.register(1, CLAIM) > epoch
        data, stat = await second_tree.get(nodes.broker_path(1))
        assert data == CLAIM.encode()
        assert stat.ephemeral_owner == second_tree.session_id

    asyncio.run(story())
