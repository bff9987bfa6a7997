"""AlterConfigs: replace all dynamic configs of topics and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.configs import TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.request import Request


async def handle(broker: Broker, request: Request[AlterConfigsRequest]) -> AlterConfigsResponse:
    """Change each resource on its own."""
    response = AlterConfigsResponse()
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
    request: AlterConfigsRequest, code: ErrorCode, message: str | None
) -> AlterConfigsResponse:
    """Answer every resource with one error."""
    return AlterConfigsResponse(
        responses=[_result(resource, code, message) for resource in request.resources]
    )


async def _change(
    broker: Broker, request: Request[AlterConfigsRequest], resource: AlterConfigsResource
) -> None:
    session = request.session
    if resource.resource_type == TOPIC:
        if not broker.allows(
            session, Operation.ALTER_CONFIGS, ResourceType.TOPIC, resource.resource_name
        ):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not broker.allows(session, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    names = [config.name for config in resource.configs]
    if len(set(names)) != len(names):
        raise RequestError(ErrorCode.INVALID_REQUEST, "a config is named twice")
    await broker.configs.replace(
        resource.resource_type,
        resource.resource_name,
        {config.name: config.value for config in resource.configs},
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
