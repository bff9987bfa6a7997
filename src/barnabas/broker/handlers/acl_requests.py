"""What the three APIs about ACLs share: wire codes to bindings and filters, and the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableSequence
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.acl.authorizer import AclAuthorizer
from barnabas.security.acl.binding import Binding, Entry, Pattern, PatternType, Permission
from barnabas.security.acl.filter import BindingFilter
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.wire.messages.create_acls import AclCreation

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.cluster.acls import Acls

ANY, MATCH = 1, 2
"""Codes of filters: everything, and (of pattern types) everything that concerns a name."""

NO_AUTHORIZER = "No Authorizer is configured on the broker"

Member = TypeVar("Member", bound=IntEnum)
Asked = TypeVar("Asked")
Valid = TypeVar("Valid")
Result = TypeVar("Result")


class Filter(Protocol):
    """The fields of a filter, alike in DescribeAcls and DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def acls_of(broker: Broker) -> tuple[Acls, AclAuthorizer]:
    """Return the cluster's ACLs; raise SECURITY_DISABLED if the broker has no authorizer."""
    if broker.acls is None or not isinstance(broker.authorizer, AclAuthorizer):
        raise RequestError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    return broker.acls, broker.authorizer


def binding_of(asked: AclCreation) -> Binding:
    """Return the ACL to create; raise INVALID_REQUEST if a code is unknown or for filters."""
    return Binding(
        Pattern(
            _member(ResourceType, "resource type", asked.resource_type),
            asked.resource_name,
            _member(PatternType, "pattern type", asked.resource_pattern_type),
        ),
        Entry(
            asked.principal,
            asked.host,
            _member(Operation, "operation", asked.operation),
            _member(Permission, "permission type", asked.permission_type),
        ),
    )


def filter_of(asked: Filter) -> BindingFilter:
    """Return the filter; raise INVALID_REQUEST if a code is unknown."""
    pattern_type, match = asked.pattern_type_filter, False
    if pattern_type == MATCH:
        pattern_type, match = ANY, True
    return BindingFilter(
        _member_or_any(ResourceType, "resource type", asked.resource_type_filter),
        asked.resource_name_filter,
        _member_or_any(PatternType, "pattern type", pattern_type),
        match,
        asked.principal_filter,
        asked.host_filter,
        _member_or_any(Operation, "operation", asked.operation),
        _member_or_any(Permission, "permission type", asked.permission_type),
    )


def read_each(
    asked: Iterable[Asked],
    read: Callable[[Asked], Valid],
    results: MutableSequence[Result],
    failed: Callable[[RequestError], Result],
) -> dict[int, Valid]:
    """Return what was asked for and is valid, by its number; the results get the other errors."""
    valid: dict[int, Valid] = {}
    for number, each in enumerate(asked):
        try:
            valid[number] = read(each)
        except RequestError as refusal:
            results[number] = failed(refusal)
    return valid


def _member_or_any(kind: type[Member], what: str, code: int) -> Member | None:
    return None if code == ANY else _member(kind, what, code)


def _member(kind: type[Member], what: str, code: int) -> Member:
    members: Mapping[int, Member] = {int(member): member for member in kind}
    if code not in members:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"{what} {code} is not valid here")
    return members[code]
