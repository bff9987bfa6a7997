"""Initial users in the coordination tree: added once, whichever broker is first.

A node for each name says that its user was added. What happened to the user since stays so: a
changed password is not reset by the next start, and a removed user does not return.
"""

from __future__ import annotations

from collections import defaultdict

from barnabas.coordination.contract import Coordination, NodeExists
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.acl_store import AclStore
from barnabas.metadata.config_store import ConfigStore
from barnabas.security.acl.binding import Entry, Pattern
from barnabas.security.initial_users import InitialUser
from barnabas.security.sasl.scram_credentials import MECHANISMS


class InitialUserStore:
    """Adds users to a cluster that has not seen them yet."""

    def __init__(self, tree: Coordination, configs: ConfigStore, acls: AclStore) -> None:
        self._tree = tree
        self._configs = configs
        self._acls = acls

    async def add(self, user: InitialUser) -> bool:
        """Add a user with credentials and ACLs; return False if that was done before.

        The node is created last: what a crash interrupts is done again. Credentials that exist
        are kept, all of them, or an old password would come back by the other mechanism.
        """
        path = nodes.initial_user_path(user.name)
        if await self._tree.exists(path) is not None:
            return False
        if user.acls:
            await self._acls.create_paths()
        entries: dict[Pattern, set[Entry]] = defaultdict(set)
        for pattern, entry in user.acls:
            entries[pattern].add(entry)
        for pattern, added in entries.items():
            await self._acls.update(pattern, added.union)

        def with_credentials(configs: dict[str, str]) -> dict[str, str]:
            known = any(mechanism in configs for mechanism in MECHANISMS)
            return configs if known else {**configs, **user.credentials}

        await self._configs.update("users", user.name, with_credentials)
        try:
            await self._tree.create(path, make_parents=True)
        except NodeExists:
            return False  # another broker was faster
        return True
