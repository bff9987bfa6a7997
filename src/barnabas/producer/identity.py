"""The identity of an idempotent producer, and the numbers that its batches carry.

Brokers accept a producer's batches on a partition only in the order of their sequence numbers, and
recognize the last five of them when they come again: so sending again is safe. A number that was
handed out and never arrives blocks all later ones. Then the producer counts from 0 again under the
next epoch, but only once nothing of that partition is in flight: a batch that may have been
written must keep its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.producer.batch import ProducerBatch

EPOCH_MAX = 32_766
SEQUENCES = 1 << 31


class Identity(NamedTuple):
    """A producer id and its epoch, as InitProducerId gave them or as they were counted up."""

    producer_id: int
    epoch: int

    def next_epoch(self) -> Identity | None:
        """Return the identity to go on with after a gap; None when a new id is needed."""
        return Identity(self.producer_id, self.epoch + 1) if self.epoch < EPOCH_MAX else None


NOBODY = Identity(-1, -1)


class Sequences:
    """The sequence numbers of one partition."""

    __slots__ = ("doubtful", "identity", "known", "next", "stuck", "unresolved")

    def __init__(self) -> None:
        self.identity = NOBODY
        self.next = 0
        self.unresolved: list[ProducerBatch] = []
        """Batches that have a number and no outcome, in order."""
        self.doubtful = False
        """Whether a batch before these was given up without knowing if it was written."""
        self.stuck = False
        """Whether brokers wait for a number that will not come: a new epoch is needed."""
        self.known = False
        """Whether a broker has taken a batch of this identity: before that it takes any number."""

    def may_start(self, identity: Identity) -> bool:
        """Return whether a batch without a number can be given one under this identity."""
        return not self.stuck and (self.identity == identity or not self.unresolved)

    def assign(self, batch: ProducerBatch, identity: Identity) -> None:
        """Give a batch the next numbers."""
        if self.identity != identity:
            self.restart(identity)
        batch.identity = identity
        batch.sequence = self.next
        self.next = (self.next + batch.records.count) % SEQUENCES
        self.unresolved.append(batch)

    def restart(self, identity: Identity) -> None:
        """Count from 0 under a new identity; batches without an outcome get new numbers."""
        batches, self.unresolved = self.unresolved, []
        self.identity = identity
        self.next = 0
        self.doubtful = self.stuck = self.known = False
        for batch in batches:
            self.assign(batch, identity)
            batch.stamped = False

    def is_first(self, batch: ProducerBatch) -> bool:
        """Return whether no earlier batch waits for its outcome."""
        return bool(self.unresolved) and self.unresolved[0] is batch

    def settle(self, batch: ProducerBatch) -> None:
        """Note that a batch was written."""
        self.remove(batch)
        self.doubtful = False
        self.known = True

    def refuse(self, batch: ProducerBatch) -> None:
        """Note that a batch was not written and will not be."""
        last = bool(self.unresolved) and self.unresolved[-1] is batch
        self.remove(batch)
        if last:
            self.next = batch.sequence  # nobody has used a later number: use these again
        else:
            self.stuck = True

    def doubt(self, batch: ProducerBatch) -> None:
        """Note that a batch was given up, and may or may not have been written.

        What follows tells: a later batch is accepted if it was, and out of order if it was not.
        """
        self.remove(batch)
        self.doubtful = True

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Let the parts of a batch share its numbers."""
        index = self.unresolved.index(batch)
        sequence = batch.sequence
        for part in parts:
            part.identity = batch.identity
            part.sequence = sequence
            sequence = (sequence + part.records.count) % SEQUENCES
        self.unresolved[index : index + 1] = parts

    def remove(self, batch: ProducerBatch) -> None:
        """Forget a batch."""
        if batch in self.unresolved:
            self.unresolved.remove(batch)
