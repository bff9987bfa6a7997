"""Where `kafka-acls` finds rules: at the brokers, or in the tree before there are any."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING

from barnabas.admin.acls import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    create_acls,
    delete_acls,
    describe_acls,
)
from barnabas.cli.kafka.acl_rules import Resources, Rule, Rules
from barnabas.client.cluster_client import ClusterClient

if TYPE_CHECKING:
    from barnabas.coordination.contract import Coordination
    from barnabas.security.acl.binding import Entry
    from barnabas.security.acl.filter import BindingFilter

EVERYTHING = Resources(ResourceType.ANY, None, ACLResourcePatternType.ANY)


class AclPlace(ABC):
    """Where rules are kept."""

    @abstractmethod
    async def find(self, wanted: Resources) -> Rules:
        """Return the rules of all patterns that match."""

    @abstractmethod
    async def add(self, resource: Resources, rules: list[Rule]) -> None:
        """Add rules for one pattern."""

    @abstractmethod
    async def remove(self, wanted: Resources, rules: list[Rule]) -> None:
        """Remove rules of all patterns that match; without rules, all of them."""


class BrokerAcls(AclPlace):
    """Rules at the brokers."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    async def find(self, wanted: Resources) -> Rules:
        found: Rules = defaultdict(list)
        for acl in await describe_acls(self._client, _filter(wanted, None)):
            pattern = acl.resource_pattern
            key = Resources(pattern.resource_type, pattern.resource_name, pattern.pattern_type)
            found[key].append(Rule(acl.principal, acl.host, acl.operation, acl.permission_type))
        return found

    async def add(self, resource: Resources, rules: list[Rule]) -> None:
        assert resource.name is not None
        pattern = ResourcePattern(resource.type, resource.name, resource.pattern)
        added = [
            ACL(rule.principal, rule.host, rule.operation, rule.permission, pattern)
            for rule in rules
        ]
        for outcome in await create_acls(self._client, added):
            if outcome.error is not None:
                raise outcome.error

    async def remove(self, wanted: Resources, rules: list[Rule]) -> None:
        filters = [_filter(wanted, rule) for rule in rules] or [_filter(wanted, None)]
        for deletion in await delete_acls(self._client, filters):
            errors = [deletion.error, *(outcome.error for outcome in deletion.matched)]
            for error in errors:
                if error is not None:
                    raise error


def _filter(wanted: Resources, rule: Rule | None) -> ACLFilter:
    pattern = ResourcePatternFilter(wanted.type, wanted.name, wanted.pattern)
    if rule is None:
        return ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
    return ACLFilter(rule.principal, rule.host, rule.operation, rule.permission, pattern)


class TreeAcls(AclPlace):
    """Rules in the coordination tree, where brokers read them."""

    def __init__(self, tree: Coordination) -> None:
        from barnabas.metadata.acl_store import AclStore

        self._store = AclStore(tree, random.random)

    async def prepare(self) -> None:
        """Create the parents of all rules, as the first broker does."""
        await self._store.create_paths()

    async def find(self, wanted: Resources) -> Rules:
        found: Rules = defaultdict(list)
        filter = _binding_filter(wanted)
        for pattern, entry in await self._store.load():
            if filter.matches_pattern(pattern):
                key = Resources(
                    ResourceType(pattern.resource_type),
                    pattern.name,
                    ACLResourcePatternType(pattern.pattern_type),
                )
                found[key].append(_rule(entry))
        return found

    async def add(self, resource: Resources, rules: list[Rule]) -> None:
        from barnabas.security.acl.binding import Binding, Pattern, PatternType, check_binding
        from barnabas.security.authorizer import ResourceType as Type

        assert resource.name is not None
        pattern = Pattern(Type(resource.type), resource.name, PatternType(resource.pattern))
        entries = {_entry(rule) for rule in rules}
        for entry in entries:
            check_binding(Binding(pattern, entry))
        await self._store.update(pattern, entries.union)

    async def remove(self, wanted: Resources, rules: list[Rule]) -> None:
        filter = _binding_filter(wanted)
        gone = {_entry(rule) for rule in rules}
        for pattern in {binding.pattern for binding in await self._store.load()}:
            if filter.matches_pattern(pattern):
                await self._store.update(
                    pattern, lambda entries: entries - gone if gone else frozenset()
                )


def _binding_filter(wanted: Resources) -> BindingFilter:
    from barnabas.security.acl.binding import PatternType
    from barnabas.security.acl.filter import BindingFilter
    from barnabas.security.authorizer import ResourceType as Type

    loose = wanted.pattern in (ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH)
    return BindingFilter(
        None if wanted.type is ResourceType.ANY else Type(wanted.type),
        wanted.name,
        None if loose else PatternType(wanted.pattern),
        match=wanted.pattern is ACLResourcePatternType.MATCH,
    )


def _entry(rule: Rule) -> Entry:
    from barnabas.security.acl.binding import Entry, Permission
    from barnabas.security.authorizer import Operation

    return Entry(rule.principal, rule.host, Operation(rule.operation), Permission(rule.permission))


def _rule(entry: Entry) -> Rule:
    return Rule(
        entry.principal,
        entry.host,
        ACLOperation(entry.operation),
        ACLPermissionType(entry.permission),
    )
