"""DescribeAcls: the ACLs that a filter matches, as this broker knows them.

v1 added pattern types (v0 finds literal names only), v3 ACLs of users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.acl_requests import acls_of, filter_of
from barnabas.model.error_codes import ErrorCode
from barnabas.security.acl.binding import Pattern
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[DescribeAclsRequest]) -> DescribeAclsResponse:
    """Return the ACLs by resource."""
    broker.check_cluster(request.session, Operation.DESCRIBE)
    _, authorizer = acls_of(broker)
    resources: dict[Pattern, DescribeAclsResource] = {}
    for pattern, entry in authorizer.find(filter_of(request.body)):
        resource = resources.setdefault(
            pattern,
            DescribeAclsResource(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
            ),
        )
        resource.acls.append(
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def refuse(
    request: DescribeAclsRequest, code: ErrorCode, message: str | None
) -> DescribeAclsResponse:
    """Answer with an error."""
    return DescribeAclsResponse(error_code=code, error_message=message)
