"""Filters of ACLs, as DescribeAcls and DeleteAcls carry them: None matches everything."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.security.acl.binding import (
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
)
from barnabas.security.authorizer import Operation, ResourceType


@dataclass(frozen=True, slots=True)
class BindingFilter:
    """What the ACLs that it matches have in common."""

    resource_type: ResourceType | None = None
    name: str | None = None
    pattern_type: PatternType | None = None
    match: bool = False
    """Find every pattern that concerns the resource `name`, of any pattern type."""
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission: Permission | None = None

    def matches(self, binding: Binding) -> bool:
        """Return whether an ACL matches."""
        return self.matches_pattern(binding.pattern) and self.matches_entry(binding.entry)

    def matches_pattern(self, pattern: Pattern) -> bool:
        """Return whether the ACLs of a pattern can match."""
        if self.resource_type is not None and pattern.resource_type is not self.resource_type:
            return False
        if self.match:
            return self.name is None or pattern.covers(self.name)
        if self.pattern_type is not None and pattern.pattern_type is not self.pattern_type:
            return False
        return self.name is None or pattern.name == self.name

    def matches_entry(self, entry: Entry) -> bool:
        """Return whether an ACL's entry matches; wildcards in it are compared as they are."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (None, entry.operation)
            and self.permission in (None, entry.permission)
        )
