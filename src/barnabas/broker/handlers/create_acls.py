"""CreateAcls: add ACLs; each is added or rejected on its own. Any broker may do it.

v1 added pattern types, v3 ACLs of users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.acl_requests import acls_of, binding_of, read_each
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(broker: Broker, request: Request[CreateAclsRequest]) -> CreateAclsResponse:
    """Store the valid ones; this broker decides by them when it answers, others soon after."""
    broker.check_cluster(request.session, Operation.ALTER)
    acls, _ = acls_of(broker)
    creations = request.body.creations
    results = [AclCreationResult(error_message=None) for _ in creations]
    valid = read_each(creations, binding_of, results, _failed)
    errors = await acls.create(list(valid.values()))
    for (number, binding), error in zip(valid.items(), errors, strict=True):
        if error is not None:
            results[number] = _failed(error)
        else:
            broker.audit_change(request.session, "acl added", acl=str(binding))
    return CreateAclsResponse(results=results)


def refuse(request: CreateAclsRequest, code: ErrorCode, message: str | None) -> CreateAclsResponse:
    """Answer every ACL with one error."""
    return CreateAclsResponse(
        results=[_failed(RequestError(code, message)) for _ in request.creations]
    )


def _failed(refusal: RequestError) -> AclCreationResult:
    return AclCreationResult(error_code=refusal.code, error_message=refusal.message)
