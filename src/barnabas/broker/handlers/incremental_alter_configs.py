"""IncrementalAlterConfigs: change single dynamic configs: set, delete, append, subtract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.configs import TOPIC
from barnabas.config.alteration import Change
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


async def handle(
    broker: Broker, request: Request[IncrementalAlterConfigsRequest]
) -> IncrementalAlterConfigsResponse:
    """Change each resource on its own."""
    response = IncrementalAlterConfigsResponse()
    seen: set[tuple[int, str]] = set()
    for resource in request.body.resources:
        try:
            key = (resource.resource_type, resource.resource_name)
            if key in seen:
                raise RequestError(ErrorCode.INVALID_REQUEST, f"{key[1]!r} is named twice")
            seen.add(key)
            await _change(broker, request, resource)
            response.responses.append(_result(resource, ErrorCode.NONE, None))
        except RequestError as refusal:
            response.responses.append(_result(resource, refusal.code, refusal.message))
    return response


def refuse(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    """Answer every resource with one error."""
    return IncrementalAlterConfigsResponse(
        responses=[_result(resource, code, message) for resource in request.resources]
    )


async def _change(
    broker: Broker, request: Request[IncrementalAlterConfigsRequest], resource: AlterConfigsResource
) -> None:
    session = request.session
    if resource.resource_type == TOPIC:
        if not broker.allows(
            session, Operation.ALTER_CONFIGS, ResourceType.TOPIC, resource.resource_name
        ):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not broker.allows(session, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    await broker.configs.alter(
        resource.resource_type,
        resource.resource_name,
        [Change(each.name, each.config_operation, each.value) for each in resource.configs],
        broker.store_configs,
        dry_run=request.body.validate_only,
    )


def _result(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
