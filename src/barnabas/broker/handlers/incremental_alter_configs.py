"""IncrementalAlterConfigs: change single dynamic configs: set, delete, append, subtract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.config_changes import change_each, respond_each
from barnabas.config.alteration import Change
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


async def handle(
    broker: Broker, request: Request[IncrementalAlterConfigsRequest]
) -> IncrementalAlterConfigsResponse:
    """Change each resource on its own."""

    async def change(resource: AlterConfigsResource, dry_run: bool) -> None:
        await broker.configs.alter(
            resource.resource_type,
            resource.resource_name,
            [Change(each.name, each.config_operation, each.value) for each in resource.configs],
            broker.store_configs,
            dry_run=dry_run,
        )

    resources = request.body.resources
    return IncrementalAlterConfigsResponse(
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
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    """Answer every resource with one error."""
    return IncrementalAlterConfigsResponse(
        responses=respond_each(request.resources, code, message, AlterConfigsResourceResponse)
    )
