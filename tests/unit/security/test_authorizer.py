"""Principals and the bits that say what they may do."""

from __future__ import annotations

from barnabas.security.authorizer import (
    CLUSTER_NAME,
    AllowAll,
    Operation,
    ResourceType,
    authorized_bits,
)
from barnabas.security.principal import ANONYMOUS, Principal


class Only:
    """Allows one operation on one topic to one principal."""

    def __init__(self, principal: Principal, operation: Operation, name: str) -> None:
        self._allowed = (principal, operation, name)

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        return (principal, operation, name) == self._allowed


def test_principals_are_written_with_their_type() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert str(Principal("User", "CN=a,O=b")) == "User:CN=a,O=b"


def test_an_open_cluster_allows_everything() -> None:
    """The bits are the protocol's numbers of the operations that a resource has."""
    everyone = AllowAll()
    topic = authorized_bits(everyone, ANONYMOUS, "h", ResourceType.TOPIC, "t")
    cluster = authorized_bits(everyone, ANONYMOUS, "h", ResourceType.CLUSTER, CLUSTER_NAME)
    assert [bit for bit in range(32) if topic >> bit & 1] == [3, 4, 5, 6, 7, 8, 10, 11]
    assert [bit for bit in range(32) if cluster >> bit & 1] == [5, 7, 8, 9, 10, 11, 12]


def test_bits_ask_the_authorizer() -> None:
    """Each bit is one answer."""
    alice = Principal("User", "alice")
    reader = Only(alice, Operation.READ, "t")
    assert authorized_bits(reader, alice, "h", ResourceType.TOPIC, "t") == 1 << Operation.READ
    assert authorized_bits(reader, alice, "h", ResourceType.TOPIC, "u") == 0
    assert authorized_bits(reader, ANONYMOUS, "h", ResourceType.TOPIC, "t") == 0
