"""ACLs in the coordination tree: paths and contents, byte for byte as Kafka 3.9 writes them.

    /kafka-acl/<Type>/<name>                     the ACLs of a literal name (`*` is a node, too)
    /kafka-acl-extended/prefixed/<Type>/<name>   those of a prefix
    /kafka-acl-changes/acl_changes_<n>           notices that the ACLs of a literal name changed
    /kafka-acl-extended-changes/acl_changes_<n>  those of a prefix

This module only has paths and bytes, and does no IO.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.metadata.tree_schema import compact, parsed
from barnabas.model.errors import CorruptFileError
from barnabas.security.acl.binding import Entry, Pattern, PatternType, Permission, title
from barnabas.security.authorizer import Operation, ResourceType

ROOTS = {
    PatternType.LITERAL: "/kafka-acl",
    PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
}
"""Where the ACLs are, by the type of their patterns."""

CHANGES = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
"""Where the notices are, by the type of the patterns that changed."""

_OPERATIONS = {title(operation): operation for operation in Operation}
_PERMISSIONS = {title(permission): permission for permission in Permission}


def types_path(pattern_type: PatternType, resource_type: ResourceType) -> str:
    """Return the parent of all patterns of a type."""
    return f"{ROOTS[pattern_type]}/{title(resource_type)}"


def acl_path(pattern: Pattern) -> str:
    """Return where the ACLs of a pattern are kept."""
    return f"{types_path(pattern.pattern_type, pattern.resource_type)}/{pattern.name}"


def notice_path(pattern_type: PatternType) -> str:
    """Return the beginning of a notice's path, which is sequential."""
    return f"{CHANGES[pattern_type]}/acl_changes_"


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """Return the node of a pattern's ACLs."""
    return compact(
        {
            "version": 1,
            "acls": [
                {
                    "principal": entry.principal,
                    "permissionType": title(entry.permission),
                    "operation": title(entry.operation),
                    "host": entry.host,
                }
                for entry in sorted(entries)
            ],
        }
    )


def decode_entries(path: str, data: bytes) -> frozenset[Entry]:
    """Read the ACLs of a pattern; an empty node has none."""
    if not data:
        return frozenset()
    value = parsed(path, data)
    try:
        return frozenset(
            Entry(
                str(each["principal"]),
                str(each["host"]),
                _OPERATIONS[each["operation"]],
                _PERMISSIONS[each["permissionType"]],
            )
            for each in value["acls"]
        )
    except (KeyError, TypeError) as failure:
        raise CorruptFileError(f"node {path} has no ACLs: {data[:80]!r}") from failure


def encode_notice(pattern: Pattern) -> bytes:
    """Return a notice that the ACLs of a pattern changed."""
    resource_type, name, pattern_type = pattern
    if pattern_type is PatternType.LITERAL:
        return f"{resource_type.name}:{name}".encode()
    return compact(
        {
            "version": 1,
            "resourceType": resource_type.name,
            "name": name,
            "patternType": pattern_type.name,
        }
    )


def decode_notice(path: str, data: bytes, pattern_type: PatternType) -> Pattern:
    """Return the pattern that a notice names; literal ones are not JSON."""
    try:
        if pattern_type is PatternType.LITERAL:
            resource, colon, name = data.decode().partition(":")
            if not colon:
                raise ValueError
            return Pattern(_resource_type(resource), name, pattern_type)
        value = parsed(path, data)
        return Pattern(
            _resource_type(str(value["resourceType"])),
            str(value["name"]),
            PatternType[str(value["patternType"]).upper()],
        )
    except (KeyError, ValueError) as failure:
        raise CorruptFileError(f"node {path} names no resource: {data[:80]!r}") from failure


def _resource_type(text: str) -> ResourceType:
    """Read `TRANSACTIONAL_ID`, and `TransactionalId` as older releases wrote it."""
    for resource_type in ResourceType:
        if text in (resource_type.name, title(resource_type)):
            return resource_type
    raise ValueError(f"unknown resource type {text}")
