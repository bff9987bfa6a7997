"""Who may do what with which node."""

from __future__ import annotations

import pytest

from barnabas.coordination.zookeeper.node_acls import RESTRICTED_ROOTS, Access, access_of
from barnabas.metadata import tree_schema


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/", Access.CREATOR_AND_READERS),
        ("/brokers/ids/1", Access.CREATOR_AND_READERS),
        ("/config/topics/orders", Access.CREATOR_AND_READERS),
        ("/config/users", Access.CREATOR),
        ("/config/users/alice/clients/app", Access.CREATOR),
        ("/config/brokers/1", Access.CREATOR),
        ("/delegation_token", Access.CREATOR_AND_READERS),
        ("/delegation_token/tokens/id", Access.CREATOR),
        ("/delegation_token/token_changes/token_change_0000000000", Access.CREATOR_AND_READERS),
        ("/consumers", Access.EVERYONE),
        ("/consumers/g/offsets", Access.EVERYONE),
        ("/consumers-of-others", Access.CREATOR_AND_READERS),
    ],
)
def test_access(path: str, access: Access) -> None:
    assert access_of(path, restricted=True) is access
    assert access_of(path, restricted=False) is Access.EVERYONE


def test_every_tree_that_brokers_write_is_restricted() -> None:
    tops = {"/" + path.split("/")[1] for path in tree_schema.PERSISTENT_PATHS}
    assert tops - set(RESTRICTED_ROOTS) == {"/consumers"}
