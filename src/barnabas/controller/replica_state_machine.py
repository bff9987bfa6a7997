"""Replicas: which brokers must create, serve, stop and delete theirs."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from barnabas.controller.causes import Cause
from barnabas.controller.knowledge import Knowledge, Replica
from barnabas.controller.outbox import Outbox
from barnabas.controller.partitions import Partitions
from barnabas.controller.phases import ReplicaPhase
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.controller")


class ReplicaStateMachine:
    """The replicas of one controller's term."""

    def __init__(self, knowledge: Knowledge, outbox: Outbox, partitions: Partitions) -> None:
        self._knowledge = knowledge
        self._outbox = outbox
        self._partitions = partitions

    def load(self, keys: Iterable[TopicPartition]) -> None:
        """Set the phase of each replica, by whether its broker serves it."""
        for key in keys:
            for broker in self._knowledge.replicas(key):
                online = self._knowledge.serves(broker, key)
                self._knowledge.set_replica_phase(
                    (key, broker), ReplicaPhase.ONLINE if online else ReplicaPhase.OFFLINE
                )

    def make(self, replicas: Iterable[Replica]) -> None:
        """Have brokers create replicas; followers of an online partition are notified at once."""
        for key, broker in self._legal(replicas, ReplicaPhase.NEW):
            if key in self._knowledge.leaderships:
                self._outbox.lead([broker], key, new=True)

    def bring_online(self, replicas: Iterable[Replica]) -> None:
        """Have brokers serve replicas that they hold."""
        for key, broker in self._legal(replicas, ReplicaPhase.ONLINE):
            if key in self._knowledge.leaderships:
                self._outbox.lead([broker], key)

    async def take_offline(self, replicas: Iterable[Replica], cause: Cause) -> None:
        """Stop replicas, or mark those of a failed broker: they leave the ISR."""
        by_broker: dict[int, list[TopicPartition]] = {}
        for key, broker in self._legal(replicas, ReplicaPhase.OFFLINE):
            self._outbox.stop(broker, key, delete=False)
            if not self._knowledge.goes(key.topic):
                by_broker.setdefault(broker, []).append(key)
        for broker, keys in by_broker.items():
            await self._partitions.drop_from_isr(broker, keys, cause)

    def delete(self, replicas: Iterable[Replica]) -> None:
        """Have brokers delete replicas that are offline."""
        for key, broker in self._legal(replicas, ReplicaPhase.DELETING):
            self._outbox.stop(broker, key, delete=True)

    def deleted(self, replicas: Iterable[Replica]) -> None:
        """Mark replicas as deleted by their brokers."""
        self._legal(replicas, ReplicaPhase.DELETED)

    def undeletable(self, replicas: Iterable[Replica]) -> None:
        """Mark replicas as undeletable for now."""
        self._legal(replicas, ReplicaPhase.UNDELETABLE)

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Mark deleted replicas as non-existent."""
        self._legal(replicas, ReplicaPhase.NON_EXISTENT)

    def _legal(self, replicas: Iterable[Replica], phase: ReplicaPhase) -> list[Replica]:
        """Move the replicas to a phase where the transition is legal, and return those."""
        taken = []
        for replica in replicas:
            if self._knowledge.replica_may_become(replica, phase):
                self._knowledge.set_replica_phase(replica, phase)
                taken.append(replica)
            else:
                now = self._knowledge.replica_phase(replica)
                logger.error(
                    "replica %s on broker %d: illegal transition %s → %s",
                    *replica,
                    now.name,
                    phase.name,
                )
        return taken
