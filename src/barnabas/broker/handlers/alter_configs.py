"""AlterConfigs: replace all dynamic configs of topics and brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.config_changes import change_each, respond_each
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(broker: Broker, request: Request[AlterConfigsRequest]) -> AlterConfigsResponse:
    """Change each resource on its own."""

    async def change(resource: AlterConfigsResource, dry_run: bool) -> None:
        await broker.configs.replace(
            resource.resource_type,
            resource.resource_name,
            {config.name: config.value for config in resource.configs},
            broker.store_configs,
            dry_run=dry_run,
        )

    resources = request.body.resources
    return AlterConfigsResponse(
        responses=await change_each(
            broker,
            request.session,
            resources,
            change,
            AlterConfigsResourceResponse,
            dry_run=request.body.validate_only,
        )
    )


def refuse(
    request: AlterConfigsRequest, code: ErrorCode, message: str | None
) -> AlterConfigsResponse:
    """Answer every resource with one error."""
    return AlterConfigsResponse(
        responses=respond_each(request.resources, code, message, AlterConfigsResourceResponse)
    )
