"""The transactional ids of one coordinator, and their state changes that are being written.

`write` requests a state change: its record goes to the coordinator's partition, and it takes effect
when the host calls `commit`. A decided transaction is completed by `finish`: markers to every
partition, then the record that it is complete, each retried until it succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Reply, StateRecord, TimerChange
from barnabas.transactions.outcome import MarkerRequest, TransactionOutcome
from barnabas.transactions.records import decode_key, decode_value, encode_record
from barnabas.transactions.state import State
from barnabas.transactions.transaction import Transaction
from barnabas.transactions.transactional_id import TransactionalId

RETRY_BACKOFF_MS: Final = 100
"""Backoff before failed markers and completions are retried."""


class MarkerBacklog(NamedTuple):
    """How many steps are left until the ended transactions are complete."""

    awaited: int
    """Markers that are being written, or will be."""
    unsent: int
    """Those of them that failed, and are sent again."""
    uncompleted: int
    """Transactions that have all markers, and whose completion is written again."""


class TransactionalIds:
    """What a coordinator knows, is writing and is waiting for."""

    def __init__(self, coordinator_epoch: int) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.entries: dict[str, TransactionalId] = {}
        self._attempts = 0

    def replay(self, record: StateRecord) -> None:
        """Replay one record of the partition; the last one of an id wins."""
        transactional_id = decode_key(record.key)
        if transactional_id is None:
            return
        if record.value is None:
            self.entries.pop(transactional_id, None)
        else:
            entry = self.entries[transactional_id] = TransactionalId(transactional_id)
            entry.current = decode_value(record.value)

    def settled(self) -> list[tuple[str, Transaction]]:
        """Return the ids without a pending write."""
        return [
            (transactional_id, entry.current)
            for transactional_id, entry in self.entries.items()
            if entry.pending is None and entry.current is not None
        ]

    def backlog(self) -> MarkerBacklog:
        """Count what ended transactions still wait for."""
        awaited = unsent = uncompleted = 0
        for entry in self.entries.values():
            if not entry.is_finishing:
                continue
            if entry.awaits_markers:
                awaited += entry.awaited_count
                unsent += len(entry.unsent())
            elif entry.pending is None:
                uncompleted += 1
        return MarkerBacklog(awaited, unsent, uncompleted)

    def write(
        self,
        transactional_id: str,
        target: Transaction,
        replies: list[Reply] | None = None,
        refuse: Callable[[ErrorCode], list[Reply]] | None = None,
    ) -> TransactionOutcome:
        """Request the write of a state change, which takes effect when it is committed."""
        entry = self.entries.setdefault(transactional_id, TransactionalId(transactional_id))
        assert entry.pending is None, f"{transactional_id!r} already has a pending write"
        entry.pending = target
        markers = []
        if target.state.is_decided:
            markers = [self._marker(transactional_id, target, sorted(target.partitions))]

        def commit() -> None:
            assert entry.pending is target
            entry.current, entry.pending = target, None
            for marker in markers:
                entry.sent(marker)
            if target.state is State.DEAD:
                self.entries.pop(transactional_id, None)

        def undo(error: ErrorCode) -> list[Reply]:
            assert entry.pending is target
            entry.pending = None
            if entry.current is None:
                self.entries.pop(transactional_id, None)
            return refuse(error) if refuse is not None else []

        return TransactionOutcome(
            replies=replies or [],
            records=[encode_record(transactional_id, target)],
            undo=undo,
            commit=commit,
            markers=markers,
        )

    def finish(self, entry: TransactionalId, now_ms: int) -> TransactionOutcome:
        """Take the next step towards completing a decided transaction."""
        if entry.current is None or not entry.is_finishing:
            return TransactionOutcome()
        retry = TimerChange(entry.transactional_id, now_ms + RETRY_BACKOFF_MS)
        if entry.pending is not None:
            return TransactionOutcome(timers=[retry])
        if not entry.awaits_markers:
            outcome = self.write(entry.transactional_id, entry.current.completed(now_ms))
            # By then the transaction is complete, unless the append fails.
            outcome.timers.append(retry)
            return outcome
        unsent = entry.unsent()
        if not unsent:
            return TransactionOutcome()
        marker = self._marker(entry.transactional_id, entry.current, unsent)
        entry.sent(marker)
        return TransactionOutcome(markers=[marker])

    def _marker(
        self, transactional_id: str, decided: Transaction, partitions: list[TopicPartition]
    ) -> MarkerRequest:
        self._attempts += 1
        return MarkerRequest(
            transactional_id,
            decided.producer_id,
            decided.producer_epoch,
            decided.state is State.PREPARE_COMMIT,
            self.coordinator_epoch,
            decided.transaction_version,
            tuple(partitions),
            self._attempts,
        )


def together(outcomes: list[TransactionOutcome]) -> TransactionOutcome:
    """Combine several state changes that nobody waits for into one append."""

    def commit() -> None:
        for outcome in outcomes:
            assert outcome.commit is not None
            outcome.commit()

    def undo(error: ErrorCode) -> list[Reply]:
        replies = []
        for outcome in outcomes:
            assert outcome.undo is not None
            replies += outcome.undo(error)
        return replies

    return TransactionOutcome(
        records=[record for outcome in outcomes for record in outcome.records],
        commit=commit,
        undo=undo,
    )
