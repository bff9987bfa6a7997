"""The requests that one decision of the controller sends to brokers, batched into one each.

They are sent in this order: LeaderAndIsr to the replicas of a partition, UpdateMetadata to all
brokers, StopReplica to the replicas that are removed. A broker that is not alive is sent nothing;
it gets everything when it returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.leadership import LEADER_OF_A_DELETED_TOPIC, Leadership
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.ids import EPOCH_DURING_DELETION, NO_EPOCH, TopicPartition, Uuid
from barnabas.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from barnabas.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

ROLES_PER_REQUEST = 1000
"""A broker may have to create a log for each, and must respond in time."""

Request = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


class Letter(NamedTuple):
    """A request for one broker, in its current epoch."""

    broker_id: int
    request: Request


class Outbox:
    """The requests that one event causes."""

    def __init__(self, knowledge: Knowledge, broker_id: int, epoch: int, listener: str) -> None:
        self._knowledge = knowledge
        self._broker_id = broker_id
        self._epoch = epoch
        self._listener = listener
        self._led: dict[int, dict[TopicPartition, bool]] = {}
        self._updates: dict[int, set[TopicPartition]] = {}
        self._stopped: dict[int, dict[TopicPartition, bool]] = {}
        self._sealed: list[Letter] = []

    def lead(self, brokers: Iterable[int], key: TopicPartition, *, new: bool = False) -> None:
        """Send LeaderAndIsr to a partition's replicas, and UpdateMetadata to all brokers."""
        assert not self._knowledge.goes(key.topic), f"{key} would be recreated"
        for broker in brokers:
            partitions = self._led.setdefault(broker, {})
            partitions[key] = partitions.get(key, False) or new
        self.update_metadata(self._knowledge.brokers, [key])

    def update_metadata(self, brokers: Iterable[int], keys: Iterable[TopicPartition] = ()) -> None:
        """Send brokers the live brokers and the leaders of some partitions."""
        keys = set(keys)
        for broker in brokers:
            self._updates.setdefault(broker, set()).update(keys)

    def stop(self, broker: int, key: TopicPartition, *, delete: bool) -> None:
        """Tell a broker to stop a replica, and perhaps to delete it."""
        partitions = self._stopped.setdefault(broker, {})
        partitions[key] = partitions.get(key, False) or delete

    def seal(self) -> None:
        """Close the requests gathered so far: later ones are sent after them."""
        letters = self._sealed
        for broker, partitions in self._led.items():
            roles = list(partitions.items())
            for start in range(0, len(roles), ROLES_PER_REQUEST):
                piece = dict(roles[start : start + ROLES_PER_REQUEST])
                self._post(letters, broker, self._leader_and_isr(piece))
        # Usually all brokers get the same, of all partitions when a controller starts.
        described: list[tuple[set[TopicPartition], list[UpdateMetadataTopicState]]] = []
        for broker, keys in self._updates.items():
            topics = next((topics for known, topics in described if known == keys), None)
            if topics is None:
                topics = self._metadata(keys)
                described.append((keys, topics))
            self._post(letters, broker, self._update_metadata(topics))
        for broker, stops in self._stopped.items():
            self._post(letters, broker, self._stop_replica(stops))
        self._led, self._updates, self._stopped = {}, {}, {}

    def take(self) -> list[Letter]:
        """Return all requests in order, and clear the outbox."""
        self.seal()
        letters, self._sealed = self._sealed, []
        return letters

    def _post(self, letters: list[Letter], broker: int, request: Request) -> None:
        view = self._knowledge.brokers.get(broker)
        if view is not None:
            request.controller_id = self._broker_id
            request.controller_epoch = self._epoch
            request.broker_epoch = view.epoch
            letters.append(Letter(broker, request))

    def _leader_and_isr(self, partitions: dict[TopicPartition, bool]) -> LeaderAndIsrRequest:
        knowledge = self._knowledge
        topics: dict[str, LeaderAndIsrTopicState] = {}
        leaders: set[int] = set()
        for key, new in partitions.items():
            leadership = knowledge.leaderships.get(key)
            assignment = knowledge.assignment(key)
            if leadership is None or assignment is None:
                continue  # deleted meanwhile
            assert leadership.isr, f"{key}: the in-sync replicas are never empty"
            leaders.add(leadership.leader)
            topic = topics.get(key.topic)
            if topic is None:
                topic = topics[key.topic] = LeaderAndIsrTopicState(
                    topic_name=key.topic, topic_id=self._topic_id(key)
                )
            topic.partition_states.append(
                LeaderAndIsrPartitionState(
                    partition_index=key.partition,
                    controller_epoch=self._epoch,
                    leader=leadership.leader,
                    leader_epoch=leadership.leader_epoch,
                    isr=list(leadership.isr),
                    partition_epoch=leadership.partition_epoch,
                    replicas=list(assignment.replicas),
                    adding_replicas=list(assignment.adding),
                    removing_replicas=list(assignment.removing),
                    is_new=new,
                    leader_recovery_state=int(leadership.recovering),
                )
            )
        return LeaderAndIsrRequest(
            topic_states=list(topics.values()),
            live_leaders=[
                self._live_leader(view)
                for leader, view in knowledge.brokers.items()
                if leader in leaders
            ],
        )

    def _live_leader(self, view: BrokerView) -> LeaderAndIsrLiveLeader:
        host, port = view.endpoints.get(self._listener, ("", -1))
        return LeaderAndIsrLiveLeader(broker_id=view.broker_id, host_name=host or "", port=port)

    def _update_metadata(self, topics: list[UpdateMetadataTopicState]) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            topic_states=topics,
            live_brokers=[_described(view) for view in self._knowledge.brokers.values()],
        )

    def _metadata(self, keys: set[TopicPartition]) -> list[UpdateMetadataTopicState]:
        knowledge = self._knowledge
        topics: dict[str, UpdateMetadataTopicState] = {}
        for key in sorted(keys):
            leadership = knowledge.leaderships.get(key)
            if leadership is None:
                continue
            topic = topics.get(key.topic)
            if topic is None:
                topic = topics[key.topic] = UpdateMetadataTopicState(
                    topic_name=key.topic, topic_id=self._topic_id(key)
                )
            topic.partition_states.append(self._metadata_of(key, leadership))
        return list(topics.values())

    def _metadata_of(
        self, key: TopicPartition, leadership: Leadership
    ) -> UpdateMetadataPartitionState:
        knowledge = self._knowledge
        replicas = knowledge.replicas(key)
        going = knowledge.goes(key.topic)
        return UpdateMetadataPartitionState(
            partition_index=key.partition,
            controller_epoch=self._epoch,
            leader=LEADER_OF_A_DELETED_TOPIC if going else leadership.leader,
            leader_epoch=leadership.leader_epoch,
            isr=list(leadership.isr),
            zk_version=leadership.partition_epoch,
            replicas=list(replicas),
            offline_replicas=[r for r in replicas if not knowledge.serves(r, key)],
        )

    def _stop_replica(self, stops: dict[TopicPartition, bool]) -> StopReplicaRequest:
        topics: dict[str, StopReplicaTopicState] = {}
        for key, delete in stops.items():
            topic = topics.setdefault(key.topic, StopReplicaTopicState(topic_name=key.topic))
            leadership = self._knowledge.leaderships.get(key)
            if self._knowledge.goes(key.topic):
                epoch = EPOCH_DURING_DELETION
            else:
                epoch = leadership.leader_epoch if leadership is not None else NO_EPOCH
            topic.partition_states.append(
                StopReplicaPartitionState(
                    partition_index=key.partition, leader_epoch=epoch, delete_partition=delete
                )
            )
        return StopReplicaRequest(topic_states=list(topics.values()))

    def _topic_id(self, key: TopicPartition) -> Uuid:
        return self._knowledge.topics[key.topic].topic_id


def _described(view: BrokerView) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=view.broker_id,
        rack=view.rack,
        endpoints=[
            UpdateMetadataEndpoint(
                port=port,
                host=host or "",
                listener=listener,
                security_protocol=view.protocols.get(listener, 0),
            )
            for listener, (host, port) in view.endpoints.items()
        ],
    )
