"""Which batches of a log belong to aborted transactions, and which markers are no longer needed.

It is given every transactional batch and every marker of a part of the log, in order. A marker
is needed while any batch of its transaction is left before it, even an empty one: without it the
transaction would look open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from barnabas.kernels.batch_header import BatchHeader
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.control import ControlType


class TransactionsSeen:
    """The transactions of one walk."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Begin before the first batch, knowing the aborted transactions ahead."""
        self._ahead = deque(sorted(aborted, key=lambda each: each.first_offset))
        self._aborted: dict[int, AbortedTransaction] = {}
        self._with_batches: set[int] = set()  # producers whose transaction has batches left

    def see_batch(self, header: BatchHeader) -> bool:
        """Record a transactional data batch; return whether its transaction was aborted."""
        self._move_to(header.last_offset)
        self._with_batches.add(header.producer_id)
        return header.producer_id in self._aborted

    def see_marker(
        self, header: BatchHeader, ending: ControlType
    ) -> tuple[bool, AbortedTransaction | None]:
        """Record a marker; return whether it is needed, and the transaction it aborted."""
        self._move_to(header.last_offset)
        producer_id = header.producer_id
        needed = producer_id in self._with_batches
        self._with_batches.discard(producer_id)
        aborted = self._aborted.pop(producer_id, None) if ending is ControlType.ABORT else None
        return needed, aborted

    def _move_to(self, offset: int) -> None:
        while self._ahead and self._ahead[0].first_offset <= offset:
            transaction = self._ahead.popleft()
            self._aborted.setdefault(transaction.producer_id, transaction)
