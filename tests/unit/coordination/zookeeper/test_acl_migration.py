"""An existing cluster's nodes are restricted, and opened again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from tests.unit.coordination.zookeeper.test_link import READERS, acl_of, connect
from tests.zookeeper import SecuredServer

from barnabas.coordination.contract import NoPermission
from barnabas.coordination.zookeeper import acl_migration
from barnabas.coordination.zookeeper.acl_migration import change_acls
from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
from barnabas.coordination.zookeeper.settings import settings_of

OPEN = [("world", "anyone", ["ALL"])]
PATHS = (
    "/brokers/topics/t/partitions/0/state",
    "/config/users/alice",
    "/consumers/g/ids",
    "/foreign/node",
)


async def change(secured: SecuredServer, chroot: str, user: str, *, restrict: bool) -> int:
    settings = settings_of(secured.options(chroot, **secured.login(user)))
    tree = ZooKeeperCoordination(replace(settings, set_acl=restrict))
    await tree.start()
    try:
        return await change_acls(tree)
    finally:
        await tree.close()


async def test_there_and_back(secured: SecuredServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that brokers write; what is beside it, and /consumers, stays as it is."""
    monkeypatch.setattr(acl_migration, "NODES_PER_ROUND", 3)
    chroot = secured.new_chroot()
    broker = await connect(secured.options(chroot, **secured.login("broker")))
    for path in PATHS:
        await broker.create(path, make_parents=True)
    mine = ("sasl", "broker", ["ALL"])
    assert await change(secured, chroot, "broker", restrict=True) == 10
    for path in ("/", "/brokers", "/brokers/topics/t/partitions/0/state", "/config"):
        assert await acl_of(broker, path) == [mine, READERS], path
    for path in ("/config/users", "/config/users/alice"):
        assert await acl_of(broker, path) == [mine], path
    for path in ("/consumers", "/consumers/g/ids", "/foreign/node"):
        assert await acl_of(broker, path) == OPEN, path
    with pytest.raises(NoPermission, match="/"):
        await change(secured, chroot, "other", restrict=False)
    assert await acl_of(broker, "/config/users") == [mine]
    assert await change(secured, chroot, "broker", restrict=False) == 10
    nobody = await connect(secured.options(chroot))
    for path in ("/", "/brokers", "/config/users/alice"):
        assert await acl_of(nobody, path) == OPEN, path
    await broker.close()
    await nobody.close()


async def test_nodes_that_go_away_meanwhile(secured: SecuredServer) -> None:
    chroot = secured.new_chroot()
    broker: Any = await connect(secured.options(chroot, **secured.login("broker")))
    await broker.create("/brokers/ids", make_parents=True)
    look = broker.children

    async def children(path: str) -> list[str]:
        found: list[str] = await look(path)
        if path == "/brokers":
            await broker.delete("/brokers/ids")
        return found

    broker.children = children
    assert await change_acls(broker) == 2
    await broker.close()
