"""DeleteAcls: remove the ACLs that filters match, and return them. Any broker may do it.

An ACL that several filters match is returned once, with the first. v1 added pattern types, v3 ACLs
of users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.acl_requests import acls_of, filter_of, read_each
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.acl.binding import Binding
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(broker: Broker, request: Request[DeleteAclsRequest]) -> DeleteAclsResponse:
    """Remove what each valid filter matches."""
    broker.check_cluster(request.session, Operation.ALTER)
    acls, _ = acls_of(broker)
    filters = request.body.filters
    results = [DeleteAclsFilterResult(error_message=None) for _ in filters]
    valid = read_each(filters, filter_of, results, _failed)
    removed = await acls.delete(list(valid.values()))
    for number, matched in zip(valid, removed, strict=True):
        results[number].matching_acls = [_matching(*each) for each in matched]
        for binding, failure in matched:
            if failure is None:
                broker.audit_change(request.session, "acl removed", acl=str(binding))
    return DeleteAclsResponse(filter_results=results)


def refuse(request: DeleteAclsRequest, code: ErrorCode, message: str | None) -> DeleteAclsResponse:
    """Answer every filter with one error."""
    return DeleteAclsResponse(
        filter_results=[_failed(RequestError(code, message)) for _ in request.filters]
    )


def _failed(refusal: RequestError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=refusal.code, error_message=refusal.message)


def _matching(binding: Binding, refusal: RequestError | None) -> DeleteAclsMatchingAcl:
    pattern, entry = binding
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
