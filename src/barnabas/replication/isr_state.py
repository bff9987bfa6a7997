"""The ISR of a partition: what the controller confirmed, and what was proposed to it.

One proposal is pending at a time. A proposed replica counts from the moment of the proposal
(`maximal`), since the controller may already have added it; a replica to be removed counts until
the controller has confirmed its removal. So whatever the controller answers, or another leader
finds later, nothing was acknowledged on too few replicas.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, TopicPartition


class Proposal(NamedTuple):
    """A proposed ISR change, for the controller."""

    topic_partition: TopicPartition
    leader_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """The epoch of each broker, from its fetches; -1 if unknown."""
    partition_epoch: int


WAIT_FOR_THE_CONTROLLER = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
    }
)
"""The controller has newer state, and will send it. The proposal may have been accepted."""

PROPOSE_ANEW = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The controller certainly rejected it: the next check of the followers decides again."""


class IsrState:
    """Committed and proposed in-sync replicas of one partition."""

    __slots__ = ("_proposal", "committed", "maximal", "partition_epoch")

    def __init__(self) -> None:
        self.committed: tuple[int, ...] = ()
        self.maximal: frozenset[int] = frozenset()
        self.partition_epoch = NO_EPOCH
        self._proposal: Proposal | None = None

    @property
    def settled(self) -> bool:
        """Whether no proposal is pending."""
        return self._proposal is None

    def decided(
        self,
        isr: tuple[int, ...],
        partition_epoch: int,
        answer_to: Proposal | None = None,
    ) -> None:
        """Apply the controller's state: a role, or the response to a proposal.

        A response older than what this broker has learned meanwhile changes nothing.
        """
        if answer_to is not None and (
            answer_to != self._proposal or partition_epoch < self.partition_epoch
        ):
            return
        self.committed = isr
        self.maximal = frozenset(isr)
        self.partition_epoch = partition_epoch
        self._proposal = None

    def propose(
        self,
        topic_partition: TopicPartition,
        leader_epoch: int,
        isr: tuple[int, ...],
        broker_epochs: tuple[int, ...],
    ) -> Proposal:
        """Begin a proposal."""
        assert self._proposal is None
        self._proposal = Proposal(
            topic_partition, leader_epoch, isr, broker_epochs, self.partition_epoch
        )
        self.maximal = frozenset(self.committed) | frozenset(isr)
        return self._proposal

    def refused(self, proposal: Proposal, code: ErrorCode) -> Proposal | None:
        """Handle a rejection; return the proposal if it should be sent again."""
        if proposal != self._proposal or code in WAIT_FOR_THE_CONTROLLER:
            return None
        if code in PROPOSE_ANEW:
            self._proposal = None
            self.maximal = frozenset(self.committed)
            return None
        return proposal
