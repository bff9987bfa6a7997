"""Who may read and write which node, with `zookeeper.set.acl`: the rules of Kafka 3.9, nearly.

    access_of("/config/users/alice", restricted=True)    # Access.CREATOR

The creator is the user that the session has proved to be: ZooKeeper writes its SASL name, its
certificate's subject or its digest into the node. All brokers of a cluster must be the same to it.
"""

from __future__ import annotations

from enum import Enum

SECRET_ROOTS = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""Nodes with passwords, or with keys to them."""

OPEN_ROOT = "/consumers"
"""Where the first consumers of Kafka write, under whatever name. In Kafka only this node is open,
so that such a consumer is locked out of a group for which a broker has created a node.
"""

RESTRICTED_ROOTS = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/controller",
    "/controller_epoch",
    "/isr_change_notification",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/delegation_token",
    "/kafka-acl-extended",
    "/migration",
    "/feature",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
)
"""The trees that a change of all ACLs visits, with everything below."""


class Access(Enum):
    """Who gets what."""

    EVERYONE = "all rights for everyone"
    CREATOR_AND_READERS = "all rights for the creator, reading for everyone"
    CREATOR = "all rights for the creator"


def access_of(path: str, *, restricted: bool) -> Access:
    """Return who may do what with the node at `path` (below the chroot)."""
    if not restricted or path == OPEN_ROOT or path.startswith(OPEN_ROOT + "/"):
        return Access.EVERYONE
    # By the beginning of the name alone, as in Kafka.
    return Access.CREATOR if path.startswith(SECRET_ROOTS) else Access.CREATOR_AND_READERS
