"""DescribeCluster: the cluster's id, its controller and its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.cluster_operations import cluster_operations
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

BROKERS, CONTROLLERS = 1, 2


def handle(broker: Broker, request: Request[DescribeClusterRequest]) -> DescribeClusterResponse:
    """Describe the brokers as this listener's clients reach them."""
    if request.body.endpoint_type != BROKERS:
        raise RequestError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.body.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"endpoint type {request.body.endpoint_type}: must be {BROKERS}, as this is a broker",
        )
    response = DescribeClusterResponse(
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.shown_controller,
        brokers=[
            DescribeClusterBroker(broker_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in broker.endpoints_for(request.session)
        ],
    )
    if request.body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(broker, request.session)
    return response


def refuse(
    request: DescribeClusterRequest, code: ErrorCode, message: str | None
) -> DescribeClusterResponse:
    """Answer with an error."""
    return DescribeClusterResponse(error_code=code, error_message=message)
