"""What the controller does to this broker: roles, metadata, replicas that stop.

The same three requests come over the network from another broker, or directly from the controller
in this one. Each names the controller's epoch, so that one who was succeeded is not heard, and
this broker's own epoch, so that what was meant for its last life is not taken for this one.

A controller speaks over one connection at a time, and says again over the next what was not
answered. What then still comes over an older one was said before, and is not heard: it could undo
what was said since.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.loop import Conditions
from barnabas.controller.leadership import LEADER_OF_A_DELETED_TOPIC
from barnabas.controller.outbox import Request
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.metadata.cluster_view import BrokerView, PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from barnabas.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.session import Session

logger = logging.getLogger("barnabas.broker")

Response = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse


def authorize(broker: Broker, session: Session) -> None:
    """Raise unless whoever asks may act as a broker of this cluster."""
    if not broker.allows(session, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class Control:
    """Listens to the controller, one request at a time."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._controller_epoch = 0
        self._line: Session | None = None
        """The connection over which the controller spoke last, if it is elsewhere."""
        self._lock = asyncio.Lock()
        self.learned = Conditions()
        """Who waits for something in the cluster's metadata."""
        self._informed = asyncio.Event()
        """Set once a controller has told who is alive."""

    async def take(self, request: Request, session: Session | None = None) -> Response:
        """Do what a request of the controller says; without a session, of the one in here."""
        async with self._lock:
            refusal = self._refusal(request, session)
            if refusal is not ErrorCode.NONE:
                return _refused(request, refusal)
            self._controller_epoch = request.controller_epoch
            self._line = session
            self._broker.controller_spoke(request.controller_id, request.controller_epoch)
            if isinstance(request, LeaderAndIsrRequest):
                return await self._take_roles(request)
            if isinstance(request, UpdateMetadataRequest):
                return await self._learn(request)
            return await self._stop(request)

    @property
    def controller_epoch(self) -> int:
        """Return the epoch of the last controller that was heard."""
        return self._controller_epoch

    @property
    def informed(self) -> bool:
        """Whether a controller has told of the cluster since this broker was started."""
        return self._informed.is_set()

    async def until_informed(self, patience_ms: int) -> None:
        """Wait until a controller has told who is alive; another may have to be elected first."""
        try:
            async with asyncio.timeout(patience_ms / 1000):
                await self._informed.wait()
        except TimeoutError:
            controller = self._broker.cluster.controller_id
            who = f"broker {controller}" if controller >= 0 else "nobody"
            own = self._broker.options.endpoints
            hint = f"can it reach the advertised listener {own.control_plane or own.inter_broker}?"
            if own.control_plane is not None:
                hint += " (a controller of Apache Kafka needs control.plane.listener.name, too)"
            raise ServiceUnavailable(
                f"the cluster's controller ({who}) did not tell this broker of the cluster within "
                f"{patience_ms} ms; {hint}"
            ) from None

    def _refusal(self, request: Request, session: Session | None) -> ErrorCode:
        if request.controller_epoch < self._controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if request.controller_epoch == self._controller_epoch and self._was_left(session):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        own = self._broker.broker_epoch
        if request.broker_epoch != -1 and request.broker_epoch < own:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE

    def _was_left(self, session: Session | None) -> bool:
        """Tell whether the controller has turned to a newer connection since."""
        line = self._line
        return (
            session is not None
            and line is not None
            and session.listener == line.listener
            and session.number < line.number
        )

    async def _take_roles(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        errors = await self._broker.replicas.take_roles(request)
        response = LeaderAndIsrResponse()
        for topic in request.topic_states:
            results = [
                LeaderAndIsrPartitionError(
                    partition_index=state.partition_index,
                    error_code=errors[TopicPartition(topic.topic_name, state.partition_index)],
                )
                for state in topic.partition_states
            ]
            response.topics.append(
                LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=results)
            )
        return response

    async def _learn(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        broker = self._broker
        cluster = broker.cluster
        new = [t.topic_name for t in request.topic_states if cluster.topic(t.topic_name) is None]
        await broker.learn_topic_configs(new)
        known = cluster.brokers
        cluster.brokers = {
            each.id: self._view(each, known.get(each.id)) for each in request.live_brokers
        }
        for topic in request.topic_states:
            broker.replicas.metadata_came(topic.topic_id)
            present = cluster.topic(topic.topic_name)
            going = all(s.leader == LEADER_OF_A_DELETED_TOPIC for s in topic.partition_states)
            if going:
                if present is not None and present.topic_id == topic.topic_id:
                    cluster.remove_topic(topic.topic_name)
                    broker.topic_removed(topic.topic_name)
                continue
            if present is not None and present.topic_id != topic.topic_id:
                broker.topic_removed(topic.topic_name)
                present = None
            partitions = dict(enumerate(present.partitions)) if present is not None else {}
            for state in topic.partition_states:
                partitions[state.partition_index] = _partition(state)
            # A number that is not told yet has no leader; numbers have no gaps for long.
            count = max(partitions) + 1
            cluster.put_topic(
                TopicView(
                    topic.topic_name,
                    topic.topic_id,
                    [partitions.get(number, _UNTOLD) for number in range(count)],
                )
            )
        broker.cluster_changed()
        self._informed.set()
        self.learned.look()
        return UpdateMetadataResponse()

    def _view(self, told: UpdateMetadataBroker, known: BrokerView | None) -> BrokerView:
        own = self._broker.own_view
        if told.id == own.broker_id:
            return own  # it knows which of its addresses stand for the one that is dialled
        return BrokerView(
            told.id,
            {each.listener: (each.host, each.port) for each in told.endpoints},
            told.rack,
            known.epoch if known is not None else -1,
            {each.listener: each.security_protocol for each in told.endpoints},
        )

    async def _stop(self, request: StopReplicaRequest) -> StopReplicaResponse:
        errors = await self._broker.replicas.stop(request)
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(
                    topic_name=key.topic, partition_index=key.partition, error_code=code
                )
                for key, code in errors.items()
            ]
        )


_UNTOLD = PartitionView(-1, -1, (), ())


def _partition(state: UpdateMetadataPartitionState) -> PartitionView:
    return PartitionView(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        tuple(state.offline_replicas),
    )


def _refused(request: Request, code: ErrorCode) -> Response:
    if isinstance(request, LeaderAndIsrRequest):
        return LeaderAndIsrResponse(error_code=code)
    if isinstance(request, UpdateMetadataRequest):
        return UpdateMetadataResponse(error_code=code)
    return StopReplicaResponse(error_code=code)
