"""Requests of the controller to this broker: LeaderAndIsr, UpdateMetadata, StopReplica.

They arrive over the network from another broker, or directly from the controller on this one. Each
carries the controller epoch, which fences older controllers, and this broker's own epoch, so that
what was meant for it before a restart is rejected.

A controller uses one connection at a time, and repeats over the next one what was not answered.
What then still arrives over an older one was sent before, and is rejected: it could undo what was
sent since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from barnabas.broker.cluster.registration import Registration
from barnabas.broker.loop import Conditions
from barnabas.config.broker import BrokerOptions
from barnabas.controller.leadership import LEADER_OF_A_DELETED_TOPIC
from barnabas.controller.outbox import Request
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.diary import subjects
from barnabas.metadata.cluster_view import BrokerView, ClusterView, PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, NO_LEADER, TopicPartition, Uuid
from barnabas.model.note import Note, NoteSink, unnoted
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

logger = logging.getLogger("barnabas.broker")

Response = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse
RoleErrors = dict[TopicPartition, ErrorCode]


class ControllerConnection(NamedTuple):
    """A connection from a controller; its listener numbers connections as they are accepted."""

    listener: str
    number: int


class ControllerCommands:
    """Applies requests of the controller, one at a time."""

    def __init__(
        self,
        registration: Registration,
        cluster: ClusterView,
        options: Callable[[], BrokerOptions],
        *,
        learn_topic_configs: Callable[[Collection[str]], Awaitable[None]],
        take_roles: Callable[[LeaderAndIsrRequest], Awaitable[RoleErrors]],
        stop_replicas: Callable[[StopReplicaRequest], Awaitable[RoleErrors]],
        on_controller: Callable[[int, int], None],
        on_topic: Callable[[Uuid], None],
        on_topic_removed: Callable[[str], None],
        on_cluster_changed: Callable[[], None],
        note: NoteSink = unnoted,
    ) -> None:
        """Keep `cluster` up to date with the controller's metadata.

        `on_controller` is called with id and epoch of the controller on each request, `on_topic`
        with each topic in an update, `on_cluster_changed` after each update.
        """
        self._registration = registration
        self._cluster = cluster
        self._options = options
        self._learn_topic_configs = learn_topic_configs
        self._take_roles = take_roles
        self._stop_replicas = stop_replicas
        self._on_controller = on_controller
        self._on_topic = on_topic
        self._on_topic_removed = on_topic_removed
        self._on_cluster_changed = on_cluster_changed
        self._note = note
        self._controller_epoch = 0
        self._connection: ControllerConnection | None = None
        """The connection of the last request; None if it was from the controller on this broker."""
        self._lock = asyncio.Lock()
        self.learned = Conditions()
        """Callers that wait for something in the cluster's metadata."""
        self._informed = asyncio.Event()
        """Set once a controller has sent the live brokers."""

    async def take(
        self, request: Request, connection: ControllerConnection | None = None
    ) -> Response:
        """Apply a request; without a connection it is from the controller on this broker."""
        async with self._lock:
            refusal = self._refusal(request, connection)
            if refusal is not ErrorCode.NONE:
                self._note_refusal(request, refusal)
                return _refused(request, refusal)
            self._controller_epoch = request.controller_epoch
            self._connection = connection
            self._on_controller(request.controller_id, request.controller_epoch)
            if isinstance(request, LeaderAndIsrRequest):
                return await self._apply_roles(request)
            if isinstance(request, UpdateMetadataRequest):
                return await self._learn(request)
            return await self._stop(request)

    @property
    def controller_epoch(self) -> int:
        """Return the epoch of the last controller that sent a request."""
        return self._controller_epoch

    @property
    def informed(self) -> bool:
        """Whether a controller has sent metadata since this broker was started."""
        return self._informed.is_set()

    async def until_informed(self, patience_ms: int) -> None:
        """Wait for a controller's metadata; another controller may have to be elected first."""
        try:
            async with asyncio.timeout(patience_ms / 1000):
                await self._informed.wait()
        except TimeoutError:
            controller = self._cluster.controller_id
            who = f"broker {controller}" if controller >= 0 else "nobody"
            own = self._options().endpoints
            hint = f"can it reach the advertised listener {own.control_plane or own.inter_broker}?"
            if own.control_plane is not None:
                hint += " (a controller of Apache Kafka needs control.plane.listener.name, too)"
            raise ServiceUnavailable(
                f"the cluster's controller ({who}) did not send the cluster's metadata within "
                f"{patience_ms} ms; {hint}"
            ) from None

    def _refusal(self, request: Request, connection: ControllerConnection | None) -> ErrorCode:
        if request.controller_epoch < self._controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if request.controller_epoch == self._controller_epoch and self._is_superseded(connection):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if request.broker_epoch != NO_EPOCH and request.broker_epoch < self._registration.epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE

    def _note_refusal(self, request: Request, code: ErrorCode) -> None:
        of_broker = code is ErrorCode.STALE_BROKER_EPOCH
        data = {
            "request": type(request).__name__.removesuffix("Request"),
            "controller": request.controller_id,
            "epoch": request.broker_epoch if of_broker else request.controller_epoch,
            "known": self._registration.epoch if of_broker else self._controller_epoch,
        }
        cause = "stale-broker-epoch" if of_broker else "stale-controller-epoch"
        subject = subjects.broker(self._registration.view.broker_id)
        self._note(Note("role.refused", subject, cause, data))

    def _is_superseded(self, connection: ControllerConnection | None) -> bool:
        """Return whether the controller has used a newer connection since."""
        last = self._connection
        return (
            connection is not None
            and last is not None
            and connection.listener == last.listener
            and connection.number < last.number
        )

    async def _apply_roles(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        errors = await self._take_roles(request)
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
        cluster = self._cluster
        new = [t.topic_name for t in request.topic_states if cluster.topic(t.topic_name) is None]
        await self._learn_topic_configs(new)
        known = cluster.brokers
        cluster.brokers = {
            each.id: self._view(each, known.get(each.id)) for each in request.live_brokers
        }
        for topic in request.topic_states:
            self._on_topic(topic.topic_id)
            present = cluster.topic(topic.topic_name)
            going = all(s.leader == LEADER_OF_A_DELETED_TOPIC for s in topic.partition_states)
            if going:
                if present is not None and present.topic_id == topic.topic_id:
                    cluster.remove_topic(topic.topic_name)
                    self._on_topic_removed(topic.topic_name)
                continue
            if present is not None and present.topic_id != topic.topic_id:
                self._on_topic_removed(topic.topic_name)
                present = None
            partitions = dict(enumerate(present.partitions)) if present is not None else {}
            for state in topic.partition_states:
                partitions[state.partition_index] = _partition(state)
            # A partition that is not known yet has no leader; there are no gaps for long.
            count = max(partitions) + 1
            cluster.put_topic(
                TopicView(
                    topic.topic_name,
                    topic.topic_id,
                    [partitions.get(number, _UNTOLD) for number in range(count)],
                )
            )
        self._on_cluster_changed()
        self._informed.set()
        self.learned.look()
        return UpdateMetadataResponse()

    def _view(self, sent: UpdateMetadataBroker, known: BrokerView | None) -> BrokerView:
        own = self._registration.view
        if sent.id == own.broker_id:
            return own  # in which an empty host stands for the address that the client dialled
        return BrokerView(
            sent.id,
            {each.listener: (each.host, each.port) for each in sent.endpoints},
            sent.rack,
            known.epoch if known is not None else NO_EPOCH,
            {each.listener: each.security_protocol for each in sent.endpoints},
        )

    async def _stop(self, request: StopReplicaRequest) -> StopReplicaResponse:
        errors = await self._stop_replicas(request)
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaPartitionError(
                    topic_name=key.topic, partition_index=key.partition, error_code=code
                )
                for key, code in errors.items()
            ]
        )


_UNTOLD = PartitionView(NO_LEADER, NO_EPOCH, (), ())


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
