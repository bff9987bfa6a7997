"""BrokerStanding: what this broker knows about one that may have lost its session.

The controller epoch, whether this broker is connected to the coordination service, whether the
caller is a member of the cluster, and which of its partitions have a newer leader epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_EPOCH
from barnabas.wire.messages.broker_standing import (
    BrokerStandingRequest,
    BrokerStandingResponse,
    LedPartition,
    LedTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request


def handle(broker: Broker, request: Request[BrokerStandingRequest]) -> BrokerStandingResponse:
    """Answer from this broker's own state."""
    broker.check_cluster_action(request.session)
    if not broker.control.informed:
        raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, "no cluster metadata received yet")
    response = BrokerStandingResponse(
        controller_epoch=broker.control.controller_epoch,
        in_contact=broker.silence.in_contact,
        is_member=request.body.broker_id in broker.cluster.brokers,
    )
    for topic in request.body.topics:
        newer = []
        for each in topic.partitions:
            epoch = _known_epoch(broker, topic.name, each.partition_index)
            if epoch > each.leader_epoch:
                newer.append(LedPartition(partition_index=each.partition_index, leader_epoch=epoch))
        if newer:
            response.topics.append(LedTopic(name=topic.name, partitions=newer))
    return response


def refuse(
    request: BrokerStandingRequest, code: ErrorCode, message: str | None
) -> BrokerStandingResponse:
    """Answer with an error."""
    return BrokerStandingResponse(error_code=code)


def _known_epoch(broker: Broker, topic: str, number: int) -> int:
    partition = broker.partitions.get((topic, number))
    known = NO_EPOCH if partition is None else partition.leader_epoch
    view = broker.cluster.topic(topic)
    if view is not None and 0 <= number < len(view.partitions):
        known = max(known, view.partitions[number].leader_epoch)
    return known
