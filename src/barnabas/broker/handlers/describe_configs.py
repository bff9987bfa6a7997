"""DescribeConfigs: the options of topics and brokers, with the source of each value.

v1 added sources and synonyms, v3 types and documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from barnabas.broker.handlers.config_changes import authorize_configs
from barnabas.config.sources import Described, Source
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


KNOWN_TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(broker: Broker, request: Request[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Describe each resource."""
    for resource in request.body.resources:
        if resource.resource_type not in KNOWN_TYPES:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"unknown resource type {resource.resource_type}"
            )
    response = DescribeConfigsResponse()
    for resource in request.body.resources:
        try:
            authorize_configs(
                broker,
                request.session,
                Operation.DESCRIBE_CONFIGS,
                resource.resource_type,
                resource.resource_name,
            )
            described = broker.configs.describe(
                resource.resource_type, resource.resource_name, resource.configuration_keys
            )
        except RequestError as refusal:
            response.results.append(_failed(resource, refusal.code, refusal.message))
            continue
        response.results.append(
            DescribeConfigsResult(
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[_config(request, entry) for entry in described],
            )
        )
    return response


def refuse(
    request: DescribeConfigsRequest, code: ErrorCode, message: str | None
) -> DescribeConfigsResponse:
    """Answer every resource with one error."""
    return DescribeConfigsResponse(
        results=[_failed(resource, code, message) for resource in request.resources]
    )


def _config(
    request: Request[DescribeConfigsRequest], entry: Described
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.name,
        value=None if entry.sensitive else entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_default=request.version == 0 and entry.source == Source.DEFAULT,
        is_sensitive=entry.sensitive,
        config_type=entry.kind,
        documentation=entry.doc if request.body.include_documentation else None,
    )
    if request.body.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in entry.synonyms
        ]
    return result


def _failed(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
