"""The state of one transactional id, as an immutable value.

A transition creates a new `Transaction` from the old one. The coordinator writes it to its
partition and replaces the old one once it is committed there; until then the old one is visible.

Epochs: a producer gets epochs up to 32766. 32767 is reserved for the coordinator, so that the last
epoch can be fenced as well; after it the transactional id gets a new producer id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from barnabas.model.ids import NO_EPOCH, TopicPartition
from barnabas.transactions.state import STEPS, State

NO_PRODUCER_ID: Final = -1
NO_TIME: Final = -1
LAST_EPOCH: Final = 32_766
"""The highest epoch of a producer; one more is reserved for fencing it."""

EPOCH_PER_TRANSACTION: Final = 2
"""The transaction version (KIP-890) in which every EndTxn raises the epoch."""


class Producer(NamedTuple):
    """The id and epoch of a producer."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of one transactional id."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    last_update_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    """The previous producer id, if its epochs were exhausted."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after this transaction, if it changes."""
    transaction_version: int = 0
    """2 in PrepareX and CompleteX when the producer's own EndTxn raised the epoch, else 0."""
    last_epoch: int = NO_EPOCH
    """The previous epoch, to recognise a retried InitProducerId. It is not stored: after a change
    of coordinator such a retry is rejected.
    """

    @property
    def producer(self) -> Producer:
        """The current id and epoch."""
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def granted(self) -> Producer:
        """The id and epoch of the producer's next transaction."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return Producer(self.next_producer_id, 0)
        return self.producer

    @property
    def is_exhausted(self) -> bool:
        """Return whether the epochs of the producer id are exhausted."""
        return self.producer_epoch >= LAST_EPOCH

    def to(self, state: State, now_ms: int, **changes: Any) -> Transaction:
        """Return this transaction in another state."""
        assert state in STEPS[self.state], f"{self.state.title} cannot become {state.title}"
        return replace(self, state=state, last_update_ms=now_ms, **changes)

    def initialised(
        self, producer: Producer, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transaction:
        """Return it ready for the first transaction of a producer."""
        previous = self.previous_producer_id
        if producer.producer_id != self.producer_id:
            previous = self.producer_id
        return self.to(
            State.EMPTY,
            now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            previous_producer_id=previous,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIME,
            transaction_version=0,
        )

    def with_partitions(self, added: frozenset[TopicPartition], now_ms: int) -> Transaction:
        """Return it open, with these partitions added."""
        start_ms = now_ms if self.state.is_idle else self.start_ms
        return self.to(
            State.ONGOING,
            now_ms,
            partitions=self.partitions | added,
            start_ms=start_ms,
            transaction_version=0,
        )

    def ended(self, *, committed: bool, now_ms: int) -> Transaction:
        """Return it with its end decided, in the current epoch."""
        decided = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        return self.to(decided, now_ms)._completed_without_partitions(now_ms)

    def ended_with_new_epoch(
        self, *, committed: bool, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """Return it with its end decided, and the epoch raised for the producer that ended it.

        `next_producer_id` is given if the producer's epochs are exhausted.
        """
        assert self.is_exhausted == (next_producer_id != NO_PRODUCER_ID)
        decided = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
        return self.to(
            decided,
            now_ms,
            producer_epoch=self.producer_epoch + 1,
            last_epoch=self.producer_epoch,
            next_producer_id=next_producer_id,
            transaction_version=EPOCH_PER_TRANSACTION,
            start_ms=now_ms if self.state.is_idle else self.start_ms,
        )._completed_without_partitions(now_ms)

    def fenced(self, *, last_epoch: int, now_ms: int) -> Transaction:
        """Return it with its abort decided in a new epoch, which fences its producer.

        `last_epoch` is the current epoch if the producer itself asked for it, so that its retries
        are recognised, and none if they are to be rejected.
        """
        fence = self.to(
            State.PREPARE_EPOCH_FENCE,
            now_ms,
            producer_epoch=min(self.producer_epoch + 1, LAST_EPOCH + 1),
            last_epoch=last_epoch,
            transaction_version=0,
        )
        return fence.to(State.PREPARE_ABORT, now_ms)._completed_without_partitions(now_ms)

    def completed(self, now_ms: int) -> Transaction:
        """Return it complete, after the last of its markers."""
        is_commit = self.state is State.PREPARE_COMMIT
        producer = self.granted
        rotated = producer.producer_id != self.producer_id
        return self.to(
            State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT,
            now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            previous_producer_id=self.producer_id if rotated else self.previous_producer_id,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def _completed_without_partitions(self, now_ms: int) -> Transaction:
        # Without partitions there are no markers to wait for: it is complete at once, in one
        # record.
        return self if self.partitions else self.completed(now_ms)
