"""Reassignment: new replicas are added, catch up and take over; the old ones are removed.

    RS  all replicas meanwhile      AR  adding replicas      RR  removing replicas
    1.  RS, AR, RR are written to the topic's node
    2.  AR are created and follow; every replica learns the new assignment in a new leader epoch
    3.  once all of RS − RR are in sync, one of them leads; RR are stopped and deleted
    4.  RS − RR is written to the topic's node

A new target replaces the one in progress; no target restores the original replicas. After a
failover the new controller finds all of this in the topic's node and continues.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from barnabas.controller.causes import Cause
from barnabas.controller.deletion import Deletion
from barnabas.controller.election import elect_target
from barnabas.controller.guarded_tree import GuardedTree
from barnabas.controller.knowledge import Knowledge, Replica
from barnabas.controller.leadership import Assignment
from barnabas.controller.outbox import Outbox
from barnabas.controller.partitions import Partitions
from barnabas.controller.phases import ReplicaPhase
from barnabas.controller.replica_state_machine import ReplicaStateMachine
from barnabas.coordination.contract import BadVersion, Delete, NoNode, Set
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptFileError, RequestError
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.controller")


class Reassignment:
    """The reassignments of one controller's term."""

    def __init__(
        self,
        knowledge: Knowledge,
        tree: GuardedTree,
        outbox: Outbox,
        partitions: Partitions,
        replicas: ReplicaStateMachine,
        deletion: Deletion,
    ) -> None:
        self._knowledge = knowledge
        self._tree = tree
        self._outbox = outbox
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    async def begin(
        self, key: TopicPartition, target: Sequence[int] | None, *, same_factor: bool = False
    ) -> None:
        """Reassign a partition to a target, or cancel (None); raises the protocol's error.

        With `same_factor`, a target with another replication factor is an error, too. A request for
        this partition in the legacy node is dropped.
        """
        present = self._checked(key, target)
        if same_factor and target is not None and len(target) != len(present.origin):
            raise RequestError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{key}: {len(target)} replicas would change its replication factor of "
                f"{len(present.origin)}, which this request does not allow",
            )
        await self._forget_legacy([key])
        await self._move(key, present, tuple(target) if target is not None else present.origin)

    async def _move(
        self, key: TopicPartition, present: Assignment, target: tuple[int, ...]
    ) -> None:
        planned = present.towards(target)
        if planned == present:
            return  # already there, or in progress
        dropped = [broker for broker in present.replicas if broker not in planned.replicas]
        leadership = self._knowledge.leaderships.get(key)
        if dropped and leadership is not None and set(leadership.isr) <= set(dropped):
            raise RequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{key}: only {list(leadership.isr)} are in sync, and all of them would be removed",
            )
        await self._store(key, planned)
        if dropped:
            await self._discard((key, broker) for broker in dropped)
            # One of them may have led.
            await self._partitions.elect_missing(Cause.REASSIGNMENT)
        await self._go_on(key)
        await self._deletion.resume()  # where a cancellation was all that it waited for

    def _checked(self, key: TopicPartition, target: Sequence[int] | None) -> Assignment:
        present = self._knowledge.assignment(key)
        if present is None or self._knowledge.goes(key.topic):
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{key} does not exist")
        if target is None:
            if not present.is_moving:
                raise RequestError(
                    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{key} is not being reassigned"
                )
            return present
        named = list(target)
        if not named or len(set(named)) != len(named) or min(named) < 0:
            raise RequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{key}: replicas {named} must be distinct broker ids, at least one",
            )
        unknown = [
            broker
            for broker in named
            if broker not in present.origin and broker not in self._knowledge.live
        ]
        if unknown:
            raise RequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{key}: brokers {unknown} are not alive"
            )
        return present

    async def resume(self, keys: Iterable[TopicPartition] | None = None) -> None:
        """Resume the reassignments in progress, after a failover or a broker's return."""
        for key in list(self._knowledge.moving if keys is None else keys):
            assignment = self._knowledge.assignment(key)
            if assignment is not None and assignment.is_moving:
                await self._go_on(key)

    async def isr_changed(self, key: TopicPartition) -> None:
        """Finish a reassignment whose last new replica has caught up."""
        assignment = self._knowledge.assignment(key)
        if assignment is not None and assignment.is_moving and self._has_caught_up(key):
            await self._finish(key)

    def _has_caught_up(self, key: TopicPartition) -> bool:
        assignment = self._knowledge.assignment(key)
        leadership = self._knowledge.leaderships.get(key)
        return (
            assignment is not None
            and leadership is not None
            and set(assignment.target) <= set(leadership.isr)
        )

    async def _go_on(self, key: TopicPartition) -> None:
        if self._has_caught_up(key):
            await self._finish(key)
            return
        assignment = self._knowledge.assignment(key)
        assert assignment is not None
        # The new replicas must exist on their brokers before the leader counts them as followers.
        fresh = [(key, broker) for broker in assignment.adding]
        known = [r for r in fresh if not self._is_new(r)]
        self._replicas.make(r for r in fresh if self._is_new(r))
        self._replicas.bring_online(known)
        if key in self._knowledge.leaderships:
            await self._partitions.renew([key])
            for _, broker in fresh:
                self._outbox.lead([broker], key, new=True)

    def _is_new(self, replica: Replica) -> bool:
        return self._knowledge.replica_phase(replica) is ReplicaPhase.NON_EXISTENT

    async def _finish(self, key: TopicPartition) -> None:
        knowledge = self._knowledge
        assignment = knowledge.assignment(key)
        assert assignment is not None
        leadership = knowledge.leaderships[key]
        target = assignment.target
        self._replicas.bring_online((key, broker) for broker in assignment.adding)
        knowledge.assign(key, Assignment(target))
        if leadership.leader in target and knowledge.serves(leadership.leader, key):
            await self._partitions.renew([key])
        elif await self._partitions.elect([key], elect_target(target), Cause.REASSIGNMENT):
            logger.error(
                "%s: none of the target replicas %s can lead, reassignment continues", key, target
            )
            knowledge.assign(key, assignment)
            return
        await self._discard((key, broker) for broker in assignment.removing)
        await self._store(key, Assignment(target))
        await self._forget_legacy([key])
        self._outbox.update_metadata(knowledge.brokers, [key])
        logger.info("%s: reassignment to %s completed", key, list(target))
        await self._deletion.resume()

    async def _discard(self, replicas: Iterable[Replica]) -> None:
        """Stop and delete replicas that are no longer wanted, without waiting for the responses."""
        gone = list(replicas)
        await self._replicas.take_offline(gone, Cause.REASSIGNMENT)
        self._replicas.delete(gone)
        self._replicas.deleted(gone)
        self._replicas.forget(gone)

    async def _store(self, key: TopicPartition, assignment: Assignment) -> None:
        """Write a partition's new assignment to the topic's node, then to `knowledge`.

        Partitions added to the node since it was last read are kept.
        """
        path = nodes.topic_path(key.topic)
        while True:
            data, stat = await self._tree.tree.get(path)
            node = _assigned(nodes.TopicAssignment.decode(path, data), key.partition, assignment)
            try:
                await self._tree.write([Set(path, node.encode(), stat.version)])
                break
            except BadVersion:
                continue
        self._knowledge.assign(key, assignment)

    # -- the legacy node ----------------------------------------------------------------------

    async def take_legacy(self) -> None:
        """Start the reassignments in the legacy node; remove those that are done or impossible."""
        done = []
        for topic, number, replicas in await self._legacy():
            key = TopicPartition(topic, number)
            present = self._knowledge.assignment(key)
            if present is not None and present.is_moving and present.target == replicas:
                continue  # in progress, even while one of its brokers is away
            try:
                await self._move(key, self._checked(key, replicas), replicas)
            except RequestError as refusal:
                logger.error("reassignment rejected: %s", refusal)
                done.append(key)
                continue
            moved = self._knowledge.assignment(key)
            if moved is not None and not moved.is_moving:
                done.append(key)
        await self._forget_legacy(done)

    async def _legacy(self) -> list[tuple[str, int, tuple[int, ...]]]:
        path = nodes.LEGACY_REASSIGNMENT
        try:
            return nodes.decode_partitions(path, (await self._tree.tree.get(path))[0])
        except NoNode:
            return []
        except CorruptFileError as failure:
            logger.error("reassignments skipped, request unreadable: %s", failure)
            return []

    async def _forget_legacy(self, done: Sequence[TopicPartition]) -> None:
        wanted = await self._legacy()
        left = [each for each in wanted if TopicPartition(*each[:2]) not in done]
        if len(left) == len(wanted):
            return
        path = nodes.LEGACY_REASSIGNMENT
        change = Set(path, nodes.encode_partitions(left)) if left else Delete(path)
        await self._tree.write_each([(change,)])  # unless it is already gone


def _assigned(
    node: nodes.TopicAssignment, number: int, assignment: Assignment
) -> nodes.TopicAssignment:
    """Return a topic's node with another assignment of one partition."""
    return nodes.TopicAssignment(
        node.topic_id,
        {**node.replicas, number: assignment.replicas},
        _with(node.adding, number, assignment.adding),
        _with(node.removing, number, assignment.removing),
    )


def _with(
    moving: Mapping[int, Sequence[int]], number: int, brokers: Sequence[int]
) -> dict[int, Sequence[int]]:
    """Return the adding or removing replicas, without partitions that have none."""
    return {n: each for n, each in {**moving, number: brokers}.items() if each}
