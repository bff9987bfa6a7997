"""What the flags of `kafka-acls` say: resources, and who may or may not do what with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from barnabas.admin.acls import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourceType,
)
from barnabas.cli.kafka.flags import Given, UsageError
from barnabas.model.errors import InvalidValueError

CLUSTER_NAME = "kafka-cluster"
OPERATIONS: dict[ResourceType, tuple[ACLOperation, ...]] = {
    ResourceType.TOPIC: (
        ACLOperation.READ,
        ACLOperation.WRITE,
        ACLOperation.CREATE,
        ACLOperation.DESCRIBE,
        ACLOperation.DELETE,
        ACLOperation.ALTER,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        ACLOperation.READ,
        ACLOperation.DESCRIBE,
        ACLOperation.DELETE,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        ACLOperation.CREATE,
        ACLOperation.CLUSTER_ACTION,
        ACLOperation.DESCRIBE_CONFIGS,
        ACLOperation.ALTER_CONFIGS,
        ACLOperation.IDEMPOTENT_WRITE,
        ACLOperation.ALTER,
        ACLOperation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        ACLOperation.DESCRIBE,
        ACLOperation.WRITE,
        ACLOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (ACLOperation.DESCRIBE,),
    ResourceType.USER: (ACLOperation.CREATE_TOKENS, ACLOperation.DESCRIBE_TOKENS),
}
NAMES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
"""Flags that name resources."""


class Resources(NamedTuple):
    """A pattern, or a filter of patterns."""

    type: ResourceType
    name: str | None
    pattern: ACLResourcePatternType

    def __str__(self) -> str:
        name = "<any>" if self.name is None else self.name
        return (
            f"ResourcePattern(resourceType={self.type.name}, name={name}, "
            f"patternType={self.pattern.name})"
        )


class Rule(NamedTuple):
    """Who may, or may not, do what, and from where."""

    principal: str
    host: str
    operation: ACLOperation
    permission: ACLPermissionType

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name})"
        )


Rules = dict[Resources, list[Rule]]

CLUSTER = Resources(ResourceType.CLUSTER, CLUSTER_NAME, ACLResourcePatternType.LITERAL)


def operation_of(text: str) -> ACLOperation:
    """Parse an operation as Kafka's documentation writes them: `Read`, `DescribeConfigs`, `All`."""
    spelled = text.strip().replace("_", "").lower()
    found = next(
        (each for each in ACLOperation if each.name.replace("_", "").lower() == spelled), None
    )
    if found is None or found in (ACLOperation.UNKNOWN, ACLOperation.ANY):
        names = ", ".join(title(each.name) for each in list(ACLOperation)[2:])
        raise ValueError(f"must be one of {names}")
    return found


def title(name: str) -> str:
    """Return an operation as Kafka's documentation writes it."""
    return "".join(word.capitalize() for word in name.split("_"))


def pattern_type_of(text: str) -> ACLResourcePatternType:
    """Parse literal, prefixed, match or any."""
    found = ACLResourcePatternType.__members__.get(text.strip().upper())
    if found is None or found is ACLResourcePatternType.UNKNOWN:
        raise ValueError("must be any, match, literal or prefixed")
    return found


def resources_of(given: Given) -> list[Resources]:
    """Return the resources that are named; none: all of them."""
    pattern = given["resource-pattern-type"]
    found = [Resources(NAMES["topic"], name.strip(), pattern) for name in given["topic"]]
    if pattern is ACLResourcePatternType.LITERAL and ("cluster" in given or "idempotent" in given):
        found.append(CLUSTER)
    for flag in list(NAMES)[1:]:
        found += [Resources(NAMES[flag], name.strip(), pattern) for name in given[flag]]
    return list(dict.fromkeys(found))


def principals_of(given: Given, flag: str) -> list[str]:
    """Return principals, each written Type:name."""
    found = [text.strip() for text in given[flag]]
    for text in found:
        kind, colon, name = text.partition(":")
        if not colon or not kind or not name:
            raise InvalidValueError(
                f"expected a string in format principalType:principalName but got {text}"
            )
    return list(dict.fromkeys(found))


def rules_of(given: Given) -> Rules:
    """Return the rules for each resource; a resource may have none, to remove all of it."""
    rules: Rules = {}
    if "producer" not in given and "consumer" not in given:
        own = _rules(given, given["operation"] or [ACLOperation.ALL])
        rules = dict.fromkeys(_some(resources_of(given)), own)
    if "producer" in given:
        for resource in _some(resources_of(given)):
            if resource.type is ResourceType.TOPIC:
                rules[resource] = _named(given, "WRITE DESCRIBE CREATE")
            elif resource.type is ResourceType.TRANSACTIONAL_ID:
                rules[resource] = _named(given, "WRITE DESCRIBE")
        if "idempotent" in given:
            rules[CLUSTER] = _named(given, "IDEMPOTENT_WRITE")
    if "consumer" in given:
        for resource in _some(resources_of(given)):
            if resource.type in (ResourceType.TOPIC, ResourceType.GROUP):
                names = "READ DESCRIBE" if resource.type is ResourceType.TOPIC else "READ"
                added = [*_named(given, names), *rules.get(resource, [])]
                rules[resource] = list(dict.fromkeys(added))
    for resource, each in rules.items():
        _check(resource, each)
    return rules


def _some(resources: list[Resources]) -> list[Resources]:
    if not resources:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    return resources


def _named(given: Given, names: str) -> list[Rule]:
    return _rules(given, [ACLOperation[name] for name in names.split()])


def _rules(given: Given, operations: Iterable[ACLOperation]) -> list[Rule]:
    found = []
    for verb, permission in (("allow", ACLPermissionType.ALLOW), ("deny", ACLPermissionType.DENY)):
        principals = principals_of(given, f"{verb}-principal")
        hosts: Collection[str] = [host.strip() for host in given[f"{verb}-host"]]
        for principal in principals:
            found += [
                Rule(principal, host, operation, permission)
                for host in hosts or ["*"]
                for operation in operations
            ]
    return list(dict.fromkeys(found))


def _check(resource: Resources, rules: list[Rule]) -> None:
    known = (*OPERATIONS[resource.type], ACLOperation.ALL)
    if any(rule.operation not in known for rule in rules):
        names = ", ".join(title(operation.name) for operation in known)
        raise UsageError(f"ResourceType {resource.type.name} only supports operations {names}")
