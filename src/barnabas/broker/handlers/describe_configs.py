"""DescribeConfigs: the options of topics and brokers, with the source of each value.

v1 added sources and synonyms, v3 types and documentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.configs import TOPIC
from barnabas.config.sources import Described, Source
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
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


def handle(broker: Broker, request: Request[DescribeConfigsRequest]) -> DescribeConfigsResponse:
    """Describe each resource."""
    response = DescribeConfigsResponse()
    for resource in request.body.resources:
        try:
            _authorize(broker, request, resource)
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


def _authorize(
    broker: Broker, request: Request[DescribeConfigsRequest], resource: DescribeConfigsResource
) -> None:
    session = request.session
    if resource.resource_type == TOPIC:
        if not broker.allows(
            session, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, resource.resource_name
        ):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    elif not broker.allows(session, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


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
