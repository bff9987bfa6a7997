"""ListConfigResources: which topics, brokers and client-metrics resources have configs; v0 asks
for the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.cluster.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.security.authorizer import Operation
from barnabas.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(
    broker: Broker, request: Request[ListConfigResourcesRequest]
) -> ListConfigResourcesResponse:
    """List the resources of the requested types; no types means all."""
    broker.check_cluster(request.session, Operation.DESCRIBE_CONFIGS)
    wanted = [CLIENT_METRICS] if request.version == 0 else request.body.resource_types or TYPES
    unknown = [each for each in wanted if each not in TYPES]
    if unknown:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION)
    resources: list[ConfigResource] = []
    if TOPIC in wanted:
        resources += [
            ConfigResource(resource_name=name, resource_type=TOPIC)
            for name in broker.cluster.topic_names
        ]
    for kind in (BROKER, BROKER_LOGGER):
        if kind in wanted:
            resources += [
                ConfigResource(resource_name=str(broker_id), resource_type=kind)
                for broker_id in broker.cluster.brokers
            ]
    if CLIENT_METRICS in wanted:
        resources += [
            ConfigResource(resource_name=name, resource_type=CLIENT_METRICS)
            for name in broker.configs.client_metrics
        ]
    return ListConfigResourcesResponse(config_resources=resources)


def refuse(
    request: ListConfigResourcesRequest, code: ErrorCode, message: str | None
) -> ListConfigResourcesResponse:
    """Answer with an error."""
    return ListConfigResourcesResponse(error_code=code)
