"""Gives the nodes of an existing cluster the ACLs that new ones get, or opens them again.

    tree = ZooKeeperCoordination(replace(settings, set_acl=True))
    await tree.start()
    changed = await change_acls(tree)

Kafka's `zookeeper-security-migration` creates the roots that are missing; here they stay missing.
With the ACL of the cluster's root nobody but a broker can create them, and then with theirs.
"""

from __future__ import annotations

import asyncio

from barnabas.coordination.contract import NoNode
from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
from barnabas.coordination.zookeeper.node_acls import RESTRICTED_ROOTS

NODES_PER_ROUND = 1000


async def change_acls(tree: ZooKeeperCoordination) -> int:
    """Set the ACL of each node according to the settings of `tree`; return how many have it.

    Nodes that are deleted meanwhile are skipped. Raise NoPermission at the first that belongs to
    another user: what was done until then stays, and the call can be repeated.
    """
    await tree.set_access("/")
    changed = 1
    waiting = list(RESTRICTED_ROOTS)
    while waiting:
        paths, waiting = waiting[:NODES_PER_ROUND], waiting[NODES_PER_ROUND:]
        for below in await asyncio.gather(*(_change(tree, path) for path in paths)):
            if below is not None:
                changed += 1
                waiting += below
    return changed


async def _change(tree: ZooKeeperCoordination, path: str) -> list[str] | None:
    """Return the nodes below; None if there is no node."""
    try:
        await tree.set_access(path)
        return [f"{path}/{name}" for name in await tree.children(path)]
    except NoNode:
        return None
