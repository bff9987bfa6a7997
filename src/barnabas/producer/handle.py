"""A transaction that its producer has left open, for another process to end.

The owner of the handle may commit or abort it, from another process, after the producer is gone:
so several producers' work can wait for one decision. Until then the transaction holds back what
comes after it from readers of committed records, and the broker aborts it when the producer's
transaction.timeout.ms has passed. A new producer of the same transactional.id aborts it at once.

Handles are plain values: they can be pickled, compared and stored.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionHandle:
    """Whose transaction it is."""

    transactional_id: str
    producer_id: int
    epoch: int
