"""The producers of one partition: their duplicate windows and open transactions.

For every producer id the entry keeps its epoch and its last five batches, so that a batch that is
sent again is answered with the offsets of its first copy and a gap in the sequence is rejected.
Transactional batches open a transaction at their base offset, a marker closes it; the first
unstable offset follows.

`check` decides and changes nothing; `append_data` and `append_marker` change the state once the
batch is in the log (or is replayed from it). So a write that failed leaves no trace here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.kernels.batch_header import TRANSACTIONAL_BIT, BatchHeader
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import NO_EPOCH, NO_OFFSET

BATCHES_REMEMBERED = 5
SEQUENCE_COUNT = 2**31
NO_SEQUENCE = -1


class SentBatch(NamedTuple):
    """A batch of the duplicate window."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, epoch: int = NO_EPOCH) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: deque[SentBatch] = deque(maxlen=BATCHES_REMEMBERED)
        self.coordinator_epoch = NO_EPOCH
        self.last_timestamp = -1
        self.transaction_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 when no batch is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def find_duplicate(self, epoch: int, first: int, last: int) -> SentBatch | None:
        """Return the remembered batch with exactly these sequences, if it has this epoch."""
        if epoch == self.epoch:
            for sent in self.batches:
                if sent[0] == first and sent[1] == last:
                    return sent
        return None


class ProducerStates:
    """The producers of one partition log."""

    __slots__ = ("_ended", "_entries", "_open", "first_unstable_offset", "markers_seen")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        # Open transactions by producer id, and ended ones whose marker is not yet below the high
        # watermark as (first offset, marker offset); both in the order of their first offsets.
        self._open: dict[int, int] = {}
        self._ended: list[tuple[int, int]] = []
        self.first_unstable_offset: int | None = None
        self.markers_seen = 0
        """How many markers were appended since the start; a waiter compares it with before."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._entries.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        """Return what is known of a producer."""
        return self._entries.get(producer_id)

    def has_open_transaction(self, producer_id: int) -> bool:
        """Return whether the producer has a transaction open on this partition."""
        return producer_id in self._open

    @property
    def oldest_open_ms(self) -> int | None:
        """The newest timestamp of the transaction that is open for the longest; None without."""
        oldest = next(iter(self._open), None)
        entry = None if oldest is None else self._entries.get(oldest)
        return None if entry is None else entry.last_timestamp

    def find_duplicate(self, header: BatchHeader) -> SentBatch | None:
        """Return the remembered batch that this header repeats, if any."""
        entry = self._entries.get(header.producer_id)
        if entry is None or header.base_sequence < 0:
            return None
        last = (header.base_sequence + header.last_offset_delta) % SEQUENCE_COUNT
        return entry.find_duplicate(header.producer_epoch, header.base_sequence, last)

    def check(self, header: BatchHeader, *, sequenced: bool = True) -> None:
        """Reject a data batch that its producer must not write now; duplicates are found before.

        Batches of a coordinator (`sequenced` False) are checked by epoch only.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return
        epoch, sequence = header.producer_epoch, header.base_sequence
        if epoch < entry.epoch:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {header.producer_id}: epoch {epoch} is fenced by epoch {entry.epoch}",
            )
        if sequenced:
            expected = _expected_sequence(entry, epoch)
            if expected is not None and sequence != expected:
                raise RequestError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} epoch {epoch}: sequence {sequence}, "
                    f"must be {expected}",
                )
        if entry.transaction_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
            raise RequestError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id}: batch is not transactional, "
                "but a transaction is open",
            )

    def check_marker(self, header: BatchHeader, coordinator_epoch: int) -> None:
        """Reject an end marker of an outdated producer epoch or coordinator."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.epoch:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"marker of producer {header.producer_id}: epoch {header.producer_epoch} "
                f"is fenced by epoch {entry.epoch}",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise RequestError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker of producer {header.producer_id}: coordinator epoch {coordinator_epoch} "
                f"is fenced by epoch {entry.coordinator_epoch}",
            )

    def append_data(self, header: BatchHeader, base_offset: int) -> None:
        """Record a data batch that is in the log from `base_offset` on."""
        producer_id, epoch, sequence, delta = (
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
        )
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.epoch = epoch
            entry.batches.clear()
        last_sequence = (sequence + delta) % SEQUENCE_COUNT if sequence >= 0 else NO_SEQUENCE
        entry.batches.append(
            SentBatch(sequence, last_sequence, base_offset + delta, delta, header.max_timestamp)
        )
        entry.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL_BIT and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = base_offset
            self._open[producer_id] = base_offset
            self._refresh()

    def append_marker(
        self, header: BatchHeader, offset: int, *, committed: bool, coordinator_epoch: int
    ) -> AbortedTransaction | None:
        """Record an end marker in the log; return what the transaction index must remember."""
        self.markers_seen += 1
        producer_id, epoch = header.producer_id, header.producer_epoch
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.epoch = epoch
            entry.batches.clear()
        entry.coordinator_epoch = max(entry.coordinator_epoch, coordinator_epoch)
        entry.last_timestamp = header.max_timestamp
        first_offset = self._open.pop(producer_id, NO_OFFSET)
        entry.transaction_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        self._ended.append((first_offset, offset))
        self._ended.sort()
        self._refresh()
        if committed:
            return None
        stable = min(self._open.values(), default=offset + 1)
        return AbortedTransaction(producer_id, first_offset, offset, stable)

    def advance_high_watermark(self, high_watermark: int) -> None:
        """Forget ended transactions whose marker every replica has."""
        if self._ended:
            kept = [ended for ended in self._ended if ended[1] >= high_watermark]
            if len(kept) != len(self._ended):
                self._ended = kept
                self._refresh()

    def _refresh(self) -> None:
        # Batches arrive in offset order, so the first open transaction is the oldest one.
        oldest = next(iter(self._open.values()), None)
        if self._ended and (oldest is None or self._ended[0][0] < oldest):
            oldest = self._ended[0][0]
        self.first_unstable_offset = oldest

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for longer than that, open transactions aside; return how many."""
        idle = [
            entry.producer_id
            for entry in self._entries.values()
            if entry.transaction_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self._entries[producer_id]
        return len(idle)

    def restore(self, entries: list[ProducerEntry]) -> None:
        """Replace everything by the entries of a snapshot."""
        self._entries = {entry.producer_id: entry for entry in entries}
        opened = [e for e in entries if e.transaction_first_offset >= 0]
        opened.sort(key=lambda e: e.transaction_first_offset)
        self._open = {e.producer_id: e.transaction_first_offset for e in opened}
        self._ended = []
        self._refresh()


def _expected_sequence(entry: ProducerEntry, epoch: int) -> int | None:
    """Return the sequence that must come next, None when any will do."""
    if entry.epoch == NO_EPOCH:
        return None
    if epoch != entry.epoch:
        return 0
    # After markers alone there is no last sequence (-1), and the first batch must have sequence 0.
    return (entry.last_sequence + 1) % SEQUENCE_COUNT
