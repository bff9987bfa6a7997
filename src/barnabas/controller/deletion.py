"""Topic deletion: first every replica, then the nodes; paused and resumed as needed.

A deletion waits while one of the topic's brokers is down, one of its disks has failed, or one of
its partitions is being reassigned: a replica that was not deleted would come back with old
records. The topic disappears from the brokers' metadata as soon as its deletion begins.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from barnabas.controller.causes import Cause
from barnabas.controller.guarded_tree import GuardedTree
from barnabas.controller.knowledge import Knowledge, Replica
from barnabas.controller.outbox import Outbox
from barnabas.controller.partitions import Partitions
from barnabas.controller.phases import PartitionPhase, ReplicaPhase
from barnabas.controller.replica_state_machine import ReplicaStateMachine
from barnabas.coordination.contract import Delete, NoNode
from barnabas.metadata import tree_schema as nodes
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.controller")

_BLOCKING = {ReplicaPhase.DELETING, ReplicaPhase.UNDELETABLE}
"""The deletion is in progress, or has failed and waits for the replica's broker to return."""


class Deletion:
    """The topic deletions of one controller's term."""

    def __init__(
        self,
        knowledge: Knowledge,
        tree: GuardedTree,
        outbox: Outbox,
        partitions: Partitions,
        replicas: ReplicaStateMachine,
        *,
        enabled: bool,
    ) -> None:
        self.enabled = enabled
        self._knowledge = knowledge
        self._tree = tree
        self._outbox = outbox
        self._partitions = partitions
        self._replicas = replicas

    async def enqueue(self, topics: Iterable[str]) -> None:
        """Enqueue topics for deletion; for unknown topics, only the request is removed.

        The same goes for all topics if delete.topic.enable=false: other tools wrote the nodes.
        """
        for topic in topics:
            path = f"{nodes.DELETE_TOPICS}/{topic}"
            if not self.enabled:
                logger.warning(
                    "topic %s not deleted, removing %s: delete.topic.enable=false", topic, path
                )
                await self._remove(path)
            elif topic in self._knowledge.topics:
                self._knowledge.deleting.add(topic)
            else:
                await self._remove(path)
        await self.resume()

    async def resume(self) -> None:
        """Start or complete every deletion that can be."""
        for topic in list(self._knowledge.deleting):
            replicas = self._knowledge.replicas_of(topic)
            phases = {self._knowledge.replica_phase(replica) for replica in replicas}
            if phases <= {ReplicaPhase.DELETED}:
                await self._finish(topic, replicas)
            elif not phases & _BLOCKING and self._may_begin(topic, replicas):
                await self._begin(topic, replicas)

    def _may_begin(self, topic: str, replicas: Iterable[Replica]) -> bool:
        for _, broker in replicas:
            if broker not in self._knowledge.brokers:
                logger.info("topic %s: deletion waits for broker %d to return", topic, broker)
                return False
        if not self._knowledge.goes(topic):
            logger.info("topic %s: deletion waits for its reassignment to complete", topic)
            return False
        return True

    async def _begin(self, topic: str, replicas: list[Replica]) -> None:
        self._outbox.update_metadata(self._knowledge.brokers, self._knowledge.partitions_of(topic))
        left = [each for each in replicas if self._phase(each) is not ReplicaPhase.DELETED]
        await self._replicas.take_offline(left, Cause.DELETION)
        self._replicas.delete(left)

    async def answered(self, deleted: list[Replica], failed: list[Replica]) -> None:
        """Record a broker's results; a failed replica is retried when its broker returns."""
        going = self._knowledge.deleting
        self._replicas.deleted([r for r in deleted if r[0].topic in going and self._waits(r)])
        self._replicas.undeletable([r for r in failed if r[0].topic in going and self._waits(r)])
        await self.resume()

    def broker_gone(self, replicas: Iterable[Replica]) -> None:
        """Mark a topic's replicas as undeletable for now, except those already deleted."""
        self._replicas.undeletable(
            [r for r in replicas if r[0].topic in self._knowledge.deleting and self._waits(r)]
        )

    def _waits(self, replica: Replica) -> bool:
        return self._phase(replica) is ReplicaPhase.DELETING

    def _phase(self, replica: Replica) -> ReplicaPhase:
        return self._knowledge.replica_phase(replica)

    async def _finish(self, topic: str, replicas: list[Replica]) -> None:
        self._replicas.forget(replicas)
        keys = self._knowledge.partitions_of(topic)
        self._partitions.close(keys)
        for key in keys:
            self._knowledge.set_phase(key, PartitionPhase.NON_EXISTENT)
        await self._remove_partitions(keys)
        await self._remove(nodes.topic_path(topic))
        await self._remove(nodes.config_path("topics", topic))
        await self._remove(f"{nodes.DELETE_TOPICS}/{topic}")
        self._knowledge.forget_topic(topic)
        logger.info("topic %s deleted", topic)

    async def _remove_partitions(self, keys: Iterable[TopicPartition]) -> None:
        """Delete the known nodes of partitions together; leftovers are looked for afterwards."""
        await self._tree.write_each(
            [(Delete(nodes.state_path(*key)), Delete(nodes.partition_path(*key))) for key in keys]
        )

    async def _remove(self, path: str) -> None:
        below = await self._below(path)
        outcomes = await self._tree.write_each([(Delete(each),) for each in below])
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, NoNode):
                logger.error("could not delete %s: %s", path, outcome)

    async def _below(self, path: str) -> list[str]:
        """Return a node and its descendants, children first; nothing if it does not exist."""
        try:
            names = await self._tree.tree.children(path)
        except NoNode:
            return []
        paths: list[str] = []
        for name in names:
            paths += await self._below(f"{path}/{name}")
        return [*paths, path]
