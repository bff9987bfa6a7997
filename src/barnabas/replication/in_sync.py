"""The in-sync replicas of a partition: what the controller confirmed, and what was proposed to it.

One proposal is under way at a time. A proposed member counts from the moment of the proposal
(`maximal`), since the controller may already have taken it in; a member that is to go counts until
the controller has said that it is gone. So whatever the controller answers, or another leader
finds later, nothing was promised on too few replicas.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, TopicPartition


class Proposal(NamedTuple):
    """A change of the in-sync replicas, as the controller is asked for it."""

    topic_partition: TopicPartition
    leader_epoch: int
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """Which life of each broker is meant, where its fetches told; -1 where not."""
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
"""The controller knows more than this leader, and will tell it. What was proposed may hold."""

PROPOSE_ANEW = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The controller surely did not take it: the next look at the followers decides again."""


class InSync:
    """Committed and proposed in-sync replicas of one partition."""

    __slots__ = ("_proposal", "committed", "maximal", "partition_epoch")

    def __init__(self) -> None:
        self.committed: tuple[int, ...] = ()
        self.maximal: frozenset[int] = frozenset()
        self.partition_epoch = NO_EPOCH
        self._proposal: Proposal | None = None

    @property
    def settled(self) -> bool:
        """True while no proposal is under way."""
        return self._proposal is None

    def decided(
        self,
        isr: tuple[int, ...],
        partition_epoch: int,
        answer_to: Proposal | None = None,
    ) -> None:
        """The controller's word: a role, or the answer to a proposal.

        An answer that is older than what this broker has been told meanwhile changes nothing.
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
        """Put a change under way."""
        assert self._proposal is None
        self._proposal = Proposal(
            topic_partition, leader_epoch, isr, broker_epochs, self.partition_epoch
        )
        self.maximal = frozenset(self.committed) | frozenset(isr)
        return self._proposal

    def refused(self, proposal: Proposal, code: ErrorCode) -> Proposal | None:
        """Take a refusal; return the proposal where it should be sent again."""
        if proposal != self._proposal or code in WAIT_FOR_THE_CONTROLLER:
            return None
        if code in PROPOSE_ANEW:
            self._proposal = None
            self.maximal = frozenset(self.committed)
            return None
        return proposal
