"""ACLs: create them, and describe or delete those that a filter matches.

    rule = ACL("User:ada", "*", ACLOperation.READ, ACLPermissionType.ALLOW,
               ResourcePattern(ResourceType.TOPIC, "orders"))
    await create_acls(client, [rule])

A filter has the same fields as a rule; None instead of a string and ANY instead of a member match
everything. A rule is also a filter, which matches itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from barnabas.admin.controller import at_controller
from barnabas.admin.failures import check, failure_or_none
from barnabas.admin.numbered import member_of
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from barnabas.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NOT_REQUESTED = -(1 << 31)
"""In place of a set of operations: it was not requested."""

FIRST_VERSION_WITH_USERS = 3
FIRST_VERSION_WITH_PATTERNS = 1


class ResourceType(IntEnum):
    """The type of a rule's resource; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class ACLOperation(IntEnum):
    """The operation that a rule allows or denies; ANY is for filters."""

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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ACLPermissionType(IntEnum):
    """Whether a rule allows or denies; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ACLResourcePatternType(IntEnum):
    """How a rule's name is read; ANY and MATCH are for filters.

    MATCH finds all rules that concern a name: literal ones, prefixes of it, and the wildcard.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


@dataclass(frozen=True)
class ResourcePatternFilter:
    """The resources that a filter matches."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: ACLResourcePatternType

    def __post_init__(self) -> None:
        _must_be(ResourceType, "resource_type", self.resource_type)
        _must_be(ACLResourcePatternType, "pattern_type", self.pattern_type)


@dataclass(frozen=True)
class ResourcePattern(ResourcePatternFilter):
    """The resources of a rule: one by its name, or all whose names share a prefix."""

    resource_name: str
    pattern_type: ACLResourcePatternType = ACLResourcePatternType.LITERAL

    def __post_init__(self) -> None:
        super().__post_init__()
        _must_not_be("resource_type", self.resource_type, ResourceType.ANY)
        _must_not_be("pattern_type", self.pattern_type, ACLResourcePatternType.ANY)
        _must_not_be("pattern_type", self.pattern_type, ACLResourcePatternType.MATCH)


@dataclass(frozen=True)
class ACLFilter:
    """The rules to look for."""

    principal: str | None
    host: str | None
    operation: ACLOperation
    permission_type: ACLPermissionType
    resource_pattern: ResourcePatternFilter

    def __post_init__(self) -> None:
        _must_be(ACLOperation, "operation", self.operation)
        _must_be(ACLPermissionType, "permission_type", self.permission_type)
        _must_be(ResourcePatternFilter, "resource_pattern", self.resource_pattern)


@dataclass(frozen=True)
class ACL(ACLFilter):
    """One rule: a principal, from a host, may or may not do an operation on some resources."""

    principal: str
    host: str
    resource_pattern: ResourcePattern

    def __post_init__(self) -> None:
        super().__post_init__()
        _must_not_be("operation", self.operation, ACLOperation.ANY)
        _must_not_be("permission_type", self.permission_type, ACLPermissionType.ANY)
        _must_be(ResourcePattern, "resource_pattern", self.resource_pattern)


@dataclass(frozen=True, slots=True)
class AclOutcome:
    """The result for one rule."""

    acl: ACL
    error: RequestError | None


@dataclass(frozen=True, slots=True)
class AclDeletion:
    """The result for one filter: the rules that it matched, each deleted or not."""

    filter: ACLFilter
    matched: tuple[AclOutcome, ...]
    error: RequestError | None


async def create_acls(
    client: ClusterClient, acls: Iterable[ACL], *, timeout_ms: float | None = None
) -> list[AclOutcome]:
    """Add rules; each succeeds or fails on its own."""
    wanted = list(acls)
    for acl in wanted:
        _must_be(ACL, "acls", acl)

    async def ask(connection: Connection) -> CreateAclsResponse:
        version = connection.version_of(CreateAclsRequest, at_least=_least(wanted))
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=acl.resource_pattern.resource_type,
                    resource_name=acl.resource_pattern.resource_name,
                    resource_pattern_type=acl.resource_pattern.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in wanted
            ]
        )
        response: CreateAclsResponse = await connection.send(request, version=version)
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    return [
        AclOutcome(acl, failure_or_none(result.error_code, acl.principal, result.error_message))
        for acl, result in zip(wanted, response.results, strict=True)
    ]


async def describe_acls(
    client: ClusterClient, acl_filter: ACLFilter, *, timeout_ms: float | None = None
) -> list[ACL]:
    """Return the rules that a filter matches.

    everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY))
    for acl in await describe_acls(client, everything): ...
    """
    _must_be(ACLFilter, "acl_filter", acl_filter)

    async def attempt() -> DescribeAclsResponse:
        connection = await client.connection()
        version = connection.version_of(DescribeAclsRequest, at_least=_least([acl_filter]))
        request = DescribeAclsRequest(
            resource_type_filter=acl_filter.resource_pattern.resource_type,
            resource_name_filter=acl_filter.resource_pattern.resource_name,
            pattern_type_filter=acl_filter.resource_pattern.pattern_type,
            principal_filter=acl_filter.principal,
            host_filter=acl_filter.host,
            operation=acl_filter.operation,
            permission_type=acl_filter.permission_type,
        )
        response: DescribeAclsResponse = await connection.send(request, version=version)
        check(response.error_code, "ACLs", response.error_message)
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    return [
        ACL(
            acl.principal,
            acl.host,
            member_of(ACLOperation, acl.operation),
            member_of(ACLPermissionType, acl.permission_type),
            ResourcePattern(
                member_of(ResourceType, resource.resource_type),
                resource.resource_name,
                member_of(ACLResourcePatternType, resource.pattern_type),
            ),
        )
        for resource in response.resources
        for acl in resource.acls
    ]


async def delete_acls(
    client: ClusterClient, acl_filters: Iterable[ACLFilter], *, timeout_ms: float | None = None
) -> list[AclDeletion]:
    """Delete all rules that the filters match, and return them for each filter."""
    wanted = list(acl_filters)
    for each in wanted:
        _must_be(ACLFilter, "acl_filters", each)

    async def ask(connection: Connection) -> DeleteAclsResponse:
        version = connection.version_of(DeleteAclsRequest, at_least=_least(wanted))
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=each.resource_pattern.resource_type,
                    resource_name_filter=each.resource_pattern.resource_name,
                    pattern_type_filter=each.resource_pattern.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission_type,
                )
                for each in wanted
            ]
        )
        response: DeleteAclsResponse = await connection.send(request, version=version)
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    return [
        AclDeletion(
            each,
            tuple(_matched(acl) for acl in result.matching_acls),
            failure_or_none(result.error_code, "ACLs", result.error_message),
        )
        for each, result in zip(wanted, response.filter_results, strict=True)
    ]


def _matched(acl: DeleteAclsMatchingAcl) -> AclOutcome:
    rule = ACL(
        acl.principal,
        acl.host,
        member_of(ACLOperation, acl.operation),
        member_of(ACLPermissionType, acl.permission_type),
        ResourcePattern(
            member_of(ResourceType, acl.resource_type),
            acl.resource_name,
            member_of(ACLResourcePatternType, acl.pattern_type),
        ),
    )
    return AclOutcome(rule, failure_or_none(acl.error_code, acl.principal, acl.error_message))


def operations_of(bits: int) -> frozenset[ACLOperation] | None:
    """Return the operations of a bit set in a response; None if it was not requested."""
    if bits == NOT_REQUESTED:
        return None
    return frozenset(
        operation
        for operation in ACLOperation
        if operation > ACLOperation.ALL and bits >> operation & 1
    )


def _least(filters: Sequence[ACLFilter]) -> int:
    """Return the first version that can carry some filters."""
    patterns = [each.resource_pattern for each in filters]
    if any(pattern.resource_type is ResourceType.USER for pattern in patterns):
        return FIRST_VERSION_WITH_USERS
    literal = ACLResourcePatternType.LITERAL
    if any(pattern.pattern_type is not literal for pattern in patterns):
        return FIRST_VERSION_WITH_PATTERNS
    return 0


def _must_be(kind: type, name: str, value: object) -> None:
    if not isinstance(value, kind):
        raise InvalidValueError(f"{name} {value!r}: must be a member of {kind.__name__}")


def _must_not_be(name: str, value: object, forbidden: IntEnum) -> None:
    if value is forbidden:
        raise InvalidValueError(
            f"{name} {forbidden.name} is for filters only: an ACL must have a specific one"
        )
