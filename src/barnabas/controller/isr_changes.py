"""AlterPartition: leaders ask for a new ISR, and the controller alone decides.

The checks are in Kafka's order: a leader must first learn that it is fenced, and only then that its
request is invalid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.controller.knowledge import Knowledge
from barnabas.controller.leadership import Leadership
from barnabas.controller.partitions import Partitions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, TopicPartition


class Wish(NamedTuple):
    """A leader's request for one partition."""

    key: TopicPartition
    leader_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """The broker epoch of each replica, -1 for any."""
    partition_epoch: int
    recovering: bool


class Granted(NamedTuple):
    """The answer for one partition: an error, or the leadership as it is now."""

    error: ErrorCode
    leadership: Leadership | None = None


class IsrChanges:
    """ISR changes in one controller's term."""

    def __init__(self, knowledge: Knowledge, partitions: Partitions) -> None:
        self._knowledge = knowledge
        self._partitions = partitions

    async def alter(
        self, broker_id: int, wishes: Sequence[Wish], *, names_old_error: bool
    ) -> dict[TopicPartition, Granted]:
        """Accept or reject each request; accepted ones have been written to the tree.

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
            return ErrorCode.NOT_CONTROLLER  # it knows a newer controller than we do
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
            if view is None or leaving or epoch not in (NO_EPOCH, view.epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE


def _is_granted_already(wish: Wish, present: Leadership) -> bool:
    """Return whether this is a retry of a request whose response was lost."""
    return (
        wish.leader_epoch == present.leader_epoch
        and set(wish.isr) == set(present.isr)
        and wish.recovering == present.recovering
    )
