"""Preferred leader elections: on request, and automatically when a broker leads too few."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from barnabas.controller.causes import Cause
from barnabas.controller.election import Election, elect_any, elect_preferred
from barnabas.controller.guarded_tree import GuardedTree
from barnabas.controller.knowledge import Knowledge
from barnabas.controller.partitions import Partitions
from barnabas.coordination.contract import Delete, NoNode
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import TopicPartition

logger = logging.getLogger("barnabas.controller")


class Balance:
    """Elections on request or for balance, not after a failure."""

    def __init__(self, knowledge: Knowledge, tree: GuardedTree, partitions: Partitions) -> None:
        self._knowledge = knowledge
        self._tree = tree
        self._partitions = partitions

    async def elect_preferred(
        self, keys: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Elect the preferred replicas; return the result for each partition."""
        knowledge = self._knowledge
        return await self._elect(
            keys,
            elect_preferred,
            lambda key: knowledge.leaderships[key].leader == knowledge.replicas(key)[0],
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            Cause.PREFERRED,
        )

    async def elect_unclean(
        self, keys: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Elect leaders for offline partitions, uncleanly if need be; return the results."""
        knowledge = self._knowledge
        return await self._elect(
            keys,
            elect_any,
            lambda key: knowledge.serves(knowledge.leaderships[key].leader, key),
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            Cause.BROKER_GONE,  # if a replica is in sync after all
        )

    async def _elect(
        self,
        keys: Iterable[TopicPartition],
        election: Election,
        is_elected: Callable[[TopicPartition], bool],
        unavailable: ErrorCode,
        cause: Cause,
    ) -> dict[TopicPartition, ErrorCode]:
        answers: dict[TopicPartition, ErrorCode] = {}
        wanted = []
        for key in keys:
            error = self._refusal(key)
            if error is ErrorCode.NONE and is_elected(key):
                error = ErrorCode.ELECTION_NOT_NEEDED
            if error is ErrorCode.NONE:
                wanted.append(key)
            else:
                answers[key] = error
        failed = set(await self._partitions.elect(wanted, election, cause))
        return answers | {key: unavailable if key in failed else ErrorCode.NONE for key in wanted}

    async def take_legacy(self) -> None:
        """Hold the elections that the legacy node asks for, and remove it."""
        path = nodes.LEGACY_PREFERRED_ELECTION
        try:
            data, _ = await self._tree.tree.get(path)
        except NoNode:
            return
        try:
            listed = nodes.decode_partitions(path, data)
            await self.elect_preferred(TopicPartition(t, n) for t, n, _ in listed)
        except CorruptFileError as failure:
            logger.error("preferred leader election skipped, request unreadable: %s", failure)
        await self._tree.write_each([(Delete(path),)])  # unless it is already gone

    def _refusal(self, key: TopicPartition) -> ErrorCode:
        if self._knowledge.assignment(key) is None or key not in self._knowledge.leaderships:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if key.topic in self._knowledge.deleting:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return ErrorCode.NONE

    def to_rebalance(self, percentage_max: int) -> list[TopicPartition]:
        """Return the partitions to move back to brokers that lead too few of theirs."""
        knowledge = self._knowledge
        own: dict[int, list[TopicPartition]] = {}
        for key in knowledge.all_partitions:
            replicas = knowledge.replicas(key)
            if replicas and key.topic not in knowledge.deleting:
                own.setdefault(replicas[0], []).append(key)
        chosen: list[TopicPartition] = []
        for broker, keys in own.items():
            if broker not in knowledge.live:
                continue
            not_preferred = [
                key
                for key in keys
                if (held := knowledge.leaderships.get(key)) is not None and held.leader != broker
            ]
            if len(not_preferred) * 100 > percentage_max * len(keys):
                chosen += [
                    key
                    for key in not_preferred
                    if broker in knowledge.leaderships[key].isr and not self._is_moving(key)
                ]
        return chosen

    def _is_moving(self, key: TopicPartition) -> bool:
        assignment = self._knowledge.assignment(key)
        return assignment is not None and assignment.is_moving
