"""An ACL: an entry (who, from where, which operation, allowed or denied) bound to a pattern.

A pattern names one resource (LITERAL; the name `*` is every resource of the type), or all whose
names begin with it (PREFIXED). Numbers are the protocol's own.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from barnabas.model.errors import InvalidValueError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType

WILDCARD = "*"
"""As a literal name: every resource of the type. As a host: every host."""

WILDCARD_PRINCIPAL = "User:*"
"""Every principal of type User."""


class PatternType(IntEnum):
    """How the name of a pattern is compared to that of a resource."""

    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """Whether an ACL allows or denies."""

    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """The resources that an ACL concerns."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{title(self.resource_type)}:{self.pattern_type.name}:{self.name}"

    def covers(self, name: str) -> bool:
        """Return whether a resource of this type is concerned."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class Entry(NamedTuple):
    """Who may, or may not, do an operation, and from where."""

    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        verdict, operation = self.permission.name, self.operation.name
        return f"{self.principal} has {verdict} permission for {operation} from host {self.host}"


class Binding(NamedTuple):
    """One ACL."""

    pattern: Pattern
    entry: Entry

    def __str__(self) -> str:
        return f"{self.entry} on {self.pattern}"


def title(member: IntEnum) -> str:
    """Return a member's name as Kafka writes it in the coordination tree: `TransactionalId`."""
    return "".join(word.capitalize() for word in member.name.split("_"))


def check_binding(binding: Binding) -> None:
    """Raise InvalidValueError if an ACL cannot be stored; useless ones can, as in Kafka."""
    (resource_type, name, _), entry = binding
    if not name:
        raise InvalidValueError("the name of the resource must not be empty")
    if "/" in name:
        raise InvalidValueError(f"resource name {name!r} must not contain a slash")
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidValueError(f"the only resource of type CLUSTER is {CLUSTER_NAME}, not {name}")
    if ":" not in entry.principal:
        raise InvalidValueError(
            f"principal {entry.principal!r} must be written Type:name, as in User:alice"
        )


@lru_cache(maxsize=4096)
def normal_host(text: str) -> str:
    """Return an address in its shortest form; an IPv4 address mapped into IPv6 as IPv4.

    Java writes `0:0:0:0:0:0:0:1` where sockets say `::1`. What is no address is returned as it is.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
