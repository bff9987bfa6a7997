"""Decides by ACLs, as Kafka does: super users first, then any DENY, then any ALLOW, else no.

    authorizer = AclAuthorizer({Principal("User", "admin")})
    authorizer.load([Binding(...), ...])
    authorizer.allows(alice, "10.0.0.7", Operation.READ, ResourceType.TOPIC, "orders")
    authorizer.explain(...).rule     # the ACL that decided

All ACLs of the literal name, of the literal `*` and of every prefix of the name count alike: a
prefixed DENY wins over a literal ALLOW. An ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE,
one of ALTER_CONFIGS implies DESCRIBE_CONFIGS; a DENY implies nothing.

The index finds the patterns of a name by cutting it at the lengths that prefixes have, and a
principal's entries of each by a dictionary; answers are remembered until an ACL changes. Until the
first `load` only super users are allowed anything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.security.acl.binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
    normal_host,
)
from barnabas.security.acl.filter import BindingFilter
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal

REMEMBERED_MAX = 65_536
"""How many answers are remembered; then all are forgotten, and asked for again."""

_IMPLIED_BY = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
_NOTHING: frozenset[Operation] = frozenset()

Question: TypeAlias = tuple[Principal, str, Operation, ResourceType, str]
Entries: TypeAlias = dict[str, tuple[tuple[str, Entry], ...]]
"""The entries of one pattern, by principal, each after its host in normal form."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer, and what it is based on."""

    allowed: bool
    reason: str
    rule: Binding | None = None
    """The ACL that decided, if one did."""


class AclAuthorizer:
    """The ACLs of a cluster, indexed, and the decisions that follow from them."""

    def __init__(
        self, super_users: Collection[Principal] = (), *, allow_everyone: bool = False
    ) -> None:
        """Allow super users everything; `allow_everyone` opens resources without any ACL."""
        self.super_users = frozenset(super_users)
        self.allow_everyone = allow_everyone
        self.is_loaded = False
        self._bindings: dict[Pattern, frozenset[Entry]] = {}
        self._index: dict[ResourceType, dict[tuple[PatternType, str], Entries]] = {
            resource: {} for resource in ResourceType
        }
        self._prefix_lengths: dict[ResourceType, Counter[int]] = defaultdict(Counter)
        self._cuts: dict[ResourceType, tuple[int, ...]] = {}
        """The lengths of the prefixes of each type, in ascending order; absent if not known."""
        self._patterns_of: dict[tuple[ResourceType, str], set[Pattern]] = defaultdict(set)
        """The patterns that have entries of a principal, by resource type and principal."""
        self._answers: dict[Question, bool] = {}
        self._answers_any: dict[tuple[Principal, str, Operation, ResourceType], bool] = {}

    # what is known

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._bindings.values())

    @property
    def patterns(self) -> Collection[Pattern]:
        """The patterns that have ACLs."""
        return self._bindings.keys()

    def entries(self, pattern: Pattern) -> frozenset[Entry]:
        """Return the ACLs of one pattern."""
        return self._bindings.get(pattern, frozenset())

    def find(self, wanted: BindingFilter) -> Iterator[Binding]:
        """Yield the ACLs that a filter matches, in a stable order."""
        for pattern in sorted(self._bindings):
            if wanted.matches_pattern(pattern):
                for entry in sorted(self._bindings[pattern]):
                    if wanted.matches_entry(entry):
                        yield Binding(pattern, entry)

    def load(self, bindings: Iterable[Binding]) -> None:
        """Replace all ACLs."""
        found: dict[Pattern, set[Entry]] = defaultdict(set)
        for pattern, entry in bindings:
            found[pattern].add(entry)
        for gone in self._bindings.keys() - found.keys():
            self.set_entries(gone, ())
        for pattern, entries in found.items():
            self.set_entries(pattern, entries)
        self.is_loaded = True
        self._forget_answers()

    def set_entries(self, pattern: Pattern, entries: Iterable[Entry]) -> None:
        """Replace the ACLs of one pattern; none removes it."""
        new = frozenset(entries)
        if new == self.entries(pattern):
            return
        self._remove(pattern)
        if new:
            self._add(pattern, new)
        self._forget_answers()

    def _remove(self, pattern: Pattern) -> None:
        if self._bindings.pop(pattern, None) is None:
            return
        for principal in self._index[pattern.resource_type].pop(_key(pattern)):
            self._patterns_of[pattern.resource_type, principal].discard(pattern)
        self._count_prefix(pattern, -1)

    def _add(self, pattern: Pattern, entries: frozenset[Entry]) -> None:
        index: dict[str, list[tuple[str, Entry]]] = defaultdict(list)
        for entry in sorted(entries):
            index[entry.principal].append((normal_host(entry.host), entry))
        for principal in index:
            self._patterns_of[pattern.resource_type, principal].add(pattern)
        self._bindings[pattern] = entries
        self._index[pattern.resource_type][_key(pattern)] = {
            principal: tuple(index[principal]) for principal in index
        }
        self._count_prefix(pattern, 1)

    def _count_prefix(self, pattern: Pattern, change: int) -> None:
        if pattern.pattern_type is PatternType.PREFIXED:
            self._prefix_lengths[pattern.resource_type][len(pattern.name)] += change
            self._cuts.pop(pattern.resource_type, None)

    def _forget_answers(self) -> None:
        self._answers.clear()
        self._answers_any.clear()

    # the decision

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        """Return whether the principal, calling from host, may do the operation on the resource."""
        question = (principal, host, operation, resource, name)
        answer = self._answers.get(question)
        if answer is None:
            answer = self.explain(principal, host, operation, resource, name).allowed
            if len(self._answers) >= REMEMBERED_MAX:
                self._answers.clear()
            self._answers[question] = answer
        return answer

    def explain(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> Decision:
        """Decide, and return the ACL or the rule that decided."""
        if principal in self.super_users:
            return Decision(True, "super user")
        if not self.is_loaded:
            return Decision(False, "ACLs are not loaded yet")
        concerning = self._concerning(resource, name)
        if not concerning:
            if self.allow_everyone:
                return Decision(True, "the resource has no ACLs (allow.everyone.if.no.acl.found)")
            return Decision(False, "the resource has no ACLs")
        allowing: Binding | None = None
        implied_by = _IMPLIED_BY.get(operation, _NOTHING)
        at = normal_host(host)
        names = _names_of(principal)
        for (pattern_type, pattern_name), entries in concerning:
            for who in names:
                for where, entry in entries.get(who, ()):
                    if where != WILDCARD and where != at:
                        continue
                    denies = entry.permission is Permission.DENY
                    exact = entry.operation is operation or entry.operation is Operation.ALL
                    if exact and denies:
                        rule = Binding(Pattern(resource, pattern_name, pattern_type), entry)
                        return Decision(False, "denied by an ACL", rule)
                    if allowing is None and not denies and (exact or entry.operation in implied_by):
                        allowing = Binding(Pattern(resource, pattern_name, pattern_type), entry)
        if allowing is not None:
            return Decision(True, "allowed by an ACL", allowing)
        return Decision(False, "no ACL matches")

    def _concerning(
        self, resource: ResourceType, name: str
    ) -> list[tuple[tuple[PatternType, str], Entries]]:
        """Return the patterns that concern a resource, and their entries."""
        index = self._index[resource]
        literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
        keys = [(literal, name), (literal, WILDCARD)]
        cuts = self._cuts.get(resource)
        if cuts is None:
            lengths = self._prefix_lengths[resource]
            cuts = self._cuts[resource] = tuple(sorted(n for n in lengths if lengths[n]))
        keys += [(prefixed, name[:cut]) for cut in cuts if cut <= len(name)]
        return [(key, index[key]) for key in keys if key in index]

    def allows_any(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        """Return whether the principal may do the operation on at least one resource of a type.

        No operation is implied here. An ALLOW counts unless a DENY covers all that it allows.
        """
        question = (principal, host, operation, resource)
        answer = self._answers_any.get(question)
        if answer is None:
            answer = self._decide_any(principal, host, operation, resource)
            if len(self._answers_any) >= REMEMBERED_MAX:
                self._answers_any.clear()
            self._answers_any[question] = answer
        return answer

    def _decide_any(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        if principal in self.super_users:
            return True
        if not self.is_loaded:
            return False
        denied = set(self._patterns(principal, host, operation, resource, Permission.DENY))
        if Pattern(resource, WILDCARD) in denied:
            return False
        if self.allow_everyone:
            return True
        prefixes = [each.name for each in denied if each.pattern_type is PatternType.PREFIXED]
        return any(
            not _is_covered(pattern, denied, prefixes)
            for pattern in self._patterns(principal, host, operation, resource, Permission.ALLOW)
        )

    def _patterns(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        permission: Permission,
    ) -> Iterator[Pattern]:
        """Yield the patterns with an entry of this permission for the principal."""
        hosts = (normal_host(host), WILDCARD)
        operations = (operation, Operation.ALL)
        for who in _names_of(principal):
            for pattern in self._patterns_of.get((resource, who), ()):
                if any(
                    entry.permission is permission
                    and entry.operation in operations
                    and where in hosts
                    for where, entry in self._index[resource][_key(pattern)][who]
                ):
                    yield pattern


def _key(pattern: Pattern) -> tuple[PatternType, str]:
    return pattern.pattern_type, pattern.name


def _names_of(principal: Principal) -> tuple[str, ...]:
    """Return the principals whose entries concern this one."""
    if principal.kind == "User" and principal.name != WILDCARD:
        return (str(principal), WILDCARD_PRINCIPAL)
    return (str(principal),)


def _is_covered(pattern: Pattern, denied: set[Pattern], prefixes: list[str]) -> bool:
    """Return whether everything that a pattern allows is denied by others."""
    if pattern.pattern_type is PatternType.LITERAL:
        if pattern.name == WILDCARD:
            return False
        if pattern in denied:
            return True
    return pattern.name.startswith(tuple(prefixes))
