"""AlterPartition: leaders ask for other in-sync replicas, and the controller alone decides.

The order of the checks is Kafka's: a leader must learn first that it is fenced, and only then that
what it asked for is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.leadership import Leadership
from barnabas.controller.partitions import Partitions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition


class Wish(NamedTuple):
    """What a leader asks for one partition."""

    key: TopicPartition
    leader_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Which life of each replica is meant, -1: whichever."""
    partition_epoch: int
    recovering: bool


class Granted(NamedTuple):
    """The answer for one partition: an error, or the leadership as it is now."""

    error: ErrorCode
    leadership: Leadership | None = None


class IsrChanges:
    """Changes of in-sync replicas, in one controller's term."""

    def __init__(self, knowledge: Knowledge, partitions: Partitions) -> None:
        self._knowledge = knowledge
        self._partitions = partitions

    async def alter(
        self, broker_id: int, wishes: Sequence[Wish], *, names_old_error: bool
    ) -> dict[TopicPartition, Granted]:
        """Grant or refuse each wish; what is granted is in the tree.

        `names_old_error`: the request's version cannot carry INELIGIBLE_REPLICA.
        """
        answers: dict[TopicPartition, Granted] = {}
        changed: dict[TopicPartition, Leadership] = {}
        for wish in wishes:
            present = self._knowledge.leaderships.get(wish.key)
            error = self._refusal(broker_id, wish, present)
            if error is ErrorCode.INELIGIBLE_REPLICA and names_old_error:
                error = ErrorCode.OPERATION_NOT_ATTEMPTED
            if error is not ErrorCode.NONE or present is None:
                answers[wish.key] = Granted(error)
            elif _is_granted_already(wish, present):
                answers[wish.key] = Granted(ErrorCode.NONE, present)
            else:
                changed[wish.key] = present.with_isr(wish.isr, recovering=wish.recovering)
        stale = await self._partitions.change(changed)
        for key, leadership in changed.items():
            if key in stale:
                answers[key] = Granted(ErrorCode.INVALID_UPDATE_VERSION)
            else:
                answers[key] = Granted(ErrorCode.NONE, leadership)
        return answers

    def _refusal(self, broker_id: int, wish: Wish, present: Leadership | None) -> ErrorCode:
        knowledge = self._knowledge
        if present is None or knowledge.goes(wish.key.topic):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (
            wish.leader_epoch > present.leader_epoch
            or wish.partition_epoch > present.partition_epoch
        ):
            return ErrorCode.NOT_CONTROLLER  # it has heard of a controller that we have not
        if wish.leader_epoch < present.leader_epoch or present.leader != broker_id:
            return ErrorCode.FENCED_LEADER_EPOCH
        if _is_granted_already(wish, present):
            return ErrorCode.NONE
        if wish.partition_epoch < present.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if wish.recovering and (len(wish.isr) > 1 or not present.recovering):
            return ErrorCode.INVALID_REQUEST
        if broker_id not in wish.isr or not set(wish.isr) <= set(knowledge.replicas(wish.key)):
            return ErrorCode.INVALID_REQUEST
        for replica, epoch in zip(wish.isr, wish.broker_epochs, strict=True):
            view = knowledge.brokers.get(replica)
            leaving = replica in knowledge.shutting_down and replica not in present.isr
            if view is None or leaving or epoch not in (-1, view.epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE


def _is_granted_already(wish: Wish, present: Leadership) -> bool:
    """True for a request that is sent again because its answer was lost."""
    return (
        wish.leader_epoch == present.leader_epoch
        and set(wish.isr) == set(present.isr)
        and wish.recovering == present.recovering
    )
