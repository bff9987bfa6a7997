"""The group coordinators of this broker: one machine per partition of `__consumer_offsets`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.host import CoordinatorHost
from barnabas.groups.call import Call
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.counts import GroupCounts
from barnabas.groups.options import GroupOptions
from barnabas.metadata.cluster_view import ClusterView
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import Uuid
from barnabas.model.outcome import Outcome, Reply, StateRecord
from barnabas.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.network.request import Request

OFFSETS_TOPIC = "__consumer_offsets"


class GroupHost(CoordinatorHost[GroupCoordinator]):
    """Hosts the groups, and creates their topic on first use."""

    def __init__(self, collaborators: Collaborators, random_bytes: Callable[[int], bytes]) -> None:
        options = collaborators.options()
        self.counts = GroupCounts(collaborators.metrics)
        self._allows = collaborators.allows
        self._random_bytes = random_bytes
        self._group_options = GroupOptions.from_broker(options)
        topics = ClusterTopics(collaborators.cluster)
        super().__init__(
            collaborators,
            OFFSETS_TOPIC,
            lambda _: GroupCoordinator(
                self._group_options, self._new_id, lambda: topics, counts=self.counts
            ),
            options.offsets_load_buffer_size,
            options.offsets_topic_compression_codec,
            logger=logging.getLogger("barnabas.groups"),
        )

    def call(self, request: Request[Any], token: Hashable = None) -> Call:
        """Return a request's context for a coordinator; `token` gets the reply instead of it."""
        return Call(
            request if token is None else token,
            request.version,
            self._now_ms(),
            request.client_id,
            f"/{request.session.client_host}",
        )

    def authorize(self, request: Request[Any], group_id: str, operation: Operation) -> None:
        """Raise unless the caller may do this to a group."""
        if not self._allows(request.session, operation, ResourceType.GROUP, group_id):
            raise RequestError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def transaction_ended(self, number: int, producer_id: int, committed: bool) -> None:
        """Apply the offsets of a transaction, or drop them: its marker is committed."""
        shard = self.shards.get(number)
        if shard is not None and not shard.loading:
            shard.machine.on_marker(producer_id, committed)

    def topics_deleted(self, name: str) -> None:
        """Delete the offsets of a deleted topic."""
        for shard in list(self.loaded_shards()):
            self.apply(shard, shard.machine.topics_deleted([name]))

    def expire_offsets(self) -> None:
        """Delete offsets that have expired."""
        for shard in list(self.loaded_shards()):
            self.apply(shard, shard.machine.expire_offsets(self._now_ms()))

    def _internal_topic(self) -> NewTopic:
        options = self._options()
        return NewTopic(
            OFFSETS_TOPIC,
            options.offsets_topic_num_partitions,
            options.offsets_topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(options.offsets_topic_segment_bytes),
            },
        )

    def _loaded(self, machine: GroupCoordinator, now_ms: int) -> list[Outcome]:
        return [machine.loaded(now_ms)]

    def _unloaded(self, machine: GroupCoordinator) -> list[Reply]:
        return machine.unload()

    def _replay_marker(self, machine: GroupCoordinator, producer_id: int, committed: bool) -> None:
        machine.on_marker(producer_id, committed)

    def _replay(
        self, machine: GroupCoordinator, record: StateRecord, producer_id: int | None
    ) -> None:
        machine.replaying.replay(record, producer_id)

    def _new_id(self) -> str:
        return str(UUID(bytes=self._random_bytes(16), version=4))


class ClusterTopics:
    """The cluster's topics, as groups use them; always current."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._cluster.topic(name) is not None

    def __getitem__(self, name: str) -> tuple[Uuid, int]:
        topic = self._cluster.topic(name)
        if topic is None:
            raise KeyError(name)
        return topic.topic_id, len(topic.partitions)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cluster.topic_names)

    def name_of(self, topic_id: Uuid) -> str | None:
        topic = self._cluster.topic_by_id(topic_id)
        return None if topic is None else topic.name
