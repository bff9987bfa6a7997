"""ACLs: rules, and filters of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, ClassVar

from barnabas.admin import acls as ours
from barnabas.compat.confluent_kafka.model import OrderedEnum, member


class ResourceType(OrderedEnum):
    """The type of a resource; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    BROKER = 4
    TRANSACTIONAL_ID = 5


class ResourcePatternType(OrderedEnum):
    """How a name is read; ANY and MATCH are for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(OrderedEnum):
    """What a rule allows or denies; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class AclPermissionType(OrderedEnum):
    """Whether a rule allows or denies; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def operations_of(given: Iterable[Any] | None) -> list[AclOperation] | None:
    """Return operations of ours or theirs, in order; None if there are none."""
    if not given:
        return None
    numbers = sorted(each.value if isinstance(each, AclOperation) else int(each) for each in given)
    known = {each.value for each in AclOperation}
    return [AclOperation(number) for number in numbers if number in known]


@functools.total_ordering
class AclBinding:
    """A rule: who, from where, may or may not do what, with which resources."""

    _needed: ClassVar[tuple[str, ...]] = (
        "restype",
        "name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    _forbidden: ClassVar[tuple[str, ...]] = ("ANY", "MATCH")

    def __init__(
        self,
        restype: ResourceType | str | int,
        name: str | None,
        resource_pattern_type: ResourcePatternType | str | int,
        principal: str | None,
        host: str | None,
        operation: AclOperation | str | int,
        permission_type: AclPermissionType | str | int,
    ) -> None:
        given = dict(zip(AclBinding._needed, _given(locals()), strict=True))
        for field in self._needed:
            if given[field] is None:
                raise ValueError(f"{field} must not be None")
        for field in ("name", "principal", "host"):
            if given[field] is not None and not isinstance(given[field], str):
                raise TypeError(f"{field} must be a str, not {type(given[field]).__name__}")
        self.restype = member(ResourceType, restype)
        self.name = name
        self.resource_pattern_type = member(ResourcePatternType, resource_pattern_type)
        self.principal = principal
        self.host = host
        self.operation = member(AclOperation, operation)
        self.permission_type = member(AclPermissionType, permission_type)
        for each in (
            self.restype,
            self.resource_pattern_type,
            self.operation,
            self.permission_type,
        ):
            if each.name in self._forbidden:
                raise ValueError(f"{type(each).__name__}.{each.name} cannot be used here")

    @property
    def ours(self) -> ours.ACLFilter:
        """The rule or filter as our admin client takes it."""
        kinds: tuple[type[ours.ACLFilter], type[ours.ResourcePatternFilter]] = (
            ours.ACL,
            ours.ResourcePattern,
        )
        if isinstance(self, AclBindingFilter):
            kinds = (ours.ACLFilter, ours.ResourcePatternFilter)
        rule, pattern = kinds
        return rule(
            self.principal,
            self.host,
            ours.ACLOperation(self.operation.value),
            ours.ACLPermissionType(self.permission_type.value),
            pattern(
                ours.ResourceType(self.restype.value),
                self.name,
                ours.ACLResourcePatternType(self.resource_pattern_type.value),
            ),
        )

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field) for field in AclBinding._needed)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(str(each) for each in self._fields())})"

    def __hash__(self) -> int:
        return hash(self._fields())

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, AclBinding):
            return NotImplemented
        return self._fields() < other._fields()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AclBinding):
            return NotImplemented
        return self._fields() == other._fields()


class AclBindingFilter(AclBinding):
    """The rules to look for: None and ANY match everything."""

    _needed = ("restype", "resource_pattern_type", "operation", "permission_type")
    _forbidden = ("UNKNOWN",)


def _given(names: dict[str, Any]) -> list[Any]:
    return [names[field] for field in AclBinding._needed]


def binding_of(acl: ours.ACL) -> AclBinding:
    """Return a rule of ours."""
    pattern = acl.resource_pattern
    return AclBinding(
        ResourceType(int(pattern.resource_type)),
        pattern.resource_name,
        ResourcePatternType(int(pattern.pattern_type)),
        acl.principal,
        acl.host,
        AclOperation(int(acl.operation)),
        AclPermissionType(int(acl.permission_type)),
    )
