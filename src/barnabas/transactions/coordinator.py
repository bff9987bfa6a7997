"""The machine of one partition of `__transaction_state`: who owns a transactional id, and how its
transactions end.

It is told of requests and of the time and answers with outcomes (see `outcome.py`); it owns no
clock, socket or log. One machine serves one term of leadership: made with the leader epoch as
`coordinator_epoch`, fed by `replay` with every record of the partition, told `loaded`, and left
behind after `unload`. Before and after that it answers with the protocol's "loading" and "not
coordinator".

Invariants:
- What a step writes holds from its `commit` on. Until then every request about the same id is told
  to come back (CONCURRENT_TRANSACTIONS), so one step at most is under way per id.
- A decided transaction (PrepareX) is complete only when every one of its partitions has reported
  the marker; until then nothing else happens to its id.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import Enum, auto
from typing import Final

from barnabas.config.broker.transactions import TransactionsOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Reply, StateRecord, TimerChange
from barnabas.transactions import rules
from barnabas.transactions.answers import (
    INIT_KNOWS_FENCED,
    OTHERS_KNOW_FENCED,
    append_failed,
    fenced_in_words_of,
    not_in_transaction,
)
from barnabas.transactions.enlisting import partitions_of, result_of
from barnabas.transactions.entry import Entry, Progress
from barnabas.transactions.outcome import MarkerRequest, TransactionOutcome
from barnabas.transactions.records import decode_key, decode_value, encode_record
from barnabas.transactions.rules import Verdict
from barnabas.transactions.state import State
from barnabas.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Producer,
    Transaction,
)
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

RETRY_BACKOFF_MS: Final = 100
"""How long markers and completions that failed wait for their next attempt."""

EXPIRED_TOGETHER: Final = 1000
"""How many ids one append forgets."""

END_RAISES_EPOCH: Final = 5
"""From this version of EndTxn on clients take a new epoch from its answer (KIP-890)."""


class _Phase(Enum):
    LOADING = auto()
    ACTIVE = auto()
    UNLOADED = auto()


class TransactionCoordinator:
    """The transactional ids of one partition, while this broker leads it."""

    def __init__(self, options: TransactionsOptions, coordinator_epoch: int) -> None:
        self.coordinator_epoch = coordinator_epoch
        self._options = options
        self._entries: dict[str, Entry] = {}
        self._attempts = 0
        self._phase = _Phase.LOADING

    # Life

    def replay(self, record: StateRecord) -> None:
        """Take in one record of the partition, while loading."""
        assert self._phase is _Phase.LOADING
        transactional_id = decode_key(record.key)
        if transactional_id is None:
            return
        if record.value is None:
            self._entries.pop(transactional_id, None)
        else:
            entry = Entry(transactional_id, decode_value(record.value))
            self._entries[transactional_id] = entry

    def loaded(self, now_ms: int) -> list[TransactionOutcome]:
        """Begin to serve; what was decided before is brought to its end."""
        assert self._phase is _Phase.LOADING
        self._phase = _Phase.ACTIVE
        return [
            self._send(entry, entry.current, sorted(entry.current.partitions))
            if entry.current.partitions
            else self._complete(entry, now_ms)
            for entry in self._entries.values()
            if entry.current is not None and entry.is_finishing
        ]

    def unload(self) -> TransactionOutcome:
        """Stop serving: another broker leads the partition now.

        Outcomes that wait for their append end in `undo` (with NOT_LEADER_OR_FOLLOWER) as usual.
        """
        timers = [TimerChange(transactional_id, None) for transactional_id in self._entries]
        self._phase = _Phase.UNLOADED
        self._entries = {}
        return TransactionOutcome(timers=timers)

    @property
    def unavailable(self) -> ErrorCode:
        """Why this machine answers no request now; NONE when it does."""
        if self._phase is _Phase.LOADING:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if self._phase is _Phase.UNLOADED:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE

    def transactions(self) -> Iterator[tuple[str, Transaction]]:
        """Yield every transactional id and what is committed of it."""
        for transactional_id, entry in self._entries.items():
            if entry.current is not None:
                yield transactional_id, entry.current

    def get(self, transactional_id: str) -> Transaction | None:
        """Return what is committed of a transactional id."""
        entry = self._entries.get(transactional_id)
        return entry.current if entry is not None else None

    # Requests

    def handle_init_producer_id(
        self,
        request: InitProducerIdRequest,
        version: int,
        token: Hashable,
        now_ms: int,
        fresh_producer_id: int | None = None,
    ) -> TransactionOutcome:
        """Give a transactional id to a producer.

        Where a producer id is needed and none was given, the outcome asks for one.
        """

        def respond(code: ErrorCode, producer: Producer) -> InitProducerIdResponse:
            return InitProducerIdResponse(
                error_code=fenced_in_words_of(version, INIT_KNOWS_FENCED, code),
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
            )

        expected = Producer(request.producer_id, request.producer_epoch)
        names_id, names_epoch = expected.producer_id != NO_PRODUCER_ID, expected.epoch != NO_EPOCH
        timeout_ms = request.transaction_timeout_ms

        def decide(current: Transaction | None) -> Verdict:
            if names_id != names_epoch:
                return Verdict(ErrorCode.INVALID_REQUEST)
            if not 0 < timeout_ms <= self._options.transaction_max_timeout_ms:
                return Verdict(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
            return rules.initialise(
                current, expected if names_id else None, timeout_ms, fresh_producer_id, now_ms
            )

        return self._answer(request.transactional_id, decide, respond, token)

    def handle_add_partitions(
        self,
        transaction: AddPartitionsToTxnTransaction,
        version: int,
        token: Hashable,
        now_ms: int,
    ) -> TransactionOutcome:
        """Let partitions take part in a transaction, or tell whether they do.

        The reply is the result of this one transaction (see `enlisting.py`).
        """
        producer = Producer(transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            result = self._verified(transaction, producer, version)
            return TransactionOutcome(replies=[Reply(token, result)])
        partitions = partitions_of(transaction)
        return self._answer(
            transaction.transactional_id,
            lambda current: rules.add_partitions(current, producer, partitions, now_ms),
            lambda code, _: result_of(
                transaction, fenced_in_words_of(version, OTHERS_KNOW_FENCED, code)
            ),
            token,
        )

    def handle_add_offsets(
        self,
        request: AddOffsetsToTxnRequest,
        version: int,
        partition: TopicPartition,
        token: Hashable,
        now_ms: int,
    ) -> TransactionOutcome:
        """Let a group's offsets take part; `partition` is the one that keeps them."""
        producer = Producer(request.producer_id, request.producer_epoch)
        return self._answer(
            request.transactional_id,
            lambda current: rules.add_partitions(current, producer, frozenset({partition}), now_ms),
            lambda code, _: AddOffsetsToTxnResponse(
                error_code=fenced_in_words_of(version, OTHERS_KNOW_FENCED, code)
            ),
            token,
        )

    def handle_end_txn(
        self,
        request: EndTxnRequest,
        version: int,
        token: Hashable,
        now_ms: int,
        fresh_producer_id: int | None = None,
    ) -> TransactionOutcome:
        """Commit or abort a transaction.

        Where a producer id is needed and none was given, the outcome asks for one.
        """
        raises_epoch = version >= END_RAISES_EPOCH
        producer = Producer(request.producer_id, request.producer_epoch)

        def decide(current: Transaction | None) -> Verdict:
            if not raises_epoch:
                return rules.end(current, producer, committed=request.committed, now_ms=now_ms)
            return rules.end_with_new_epoch(
                current,
                producer,
                committed=request.committed,
                fresh_producer_id=fresh_producer_id,
                now_ms=now_ms,
            )

        def respond(code: ErrorCode, granted: Producer) -> EndTxnResponse:
            code = fenced_in_words_of(version, OTHERS_KNOW_FENCED, code)
            if not raises_epoch:
                return EndTxnResponse(error_code=code)
            return EndTxnResponse(
                error_code=code, producer_id=granted.producer_id, producer_epoch=granted.epoch
            )

        return self._answer(request.transactional_id, decide, respond, token)

    # Markers

    def markers_written(
        self, marker: MarkerRequest, errors: Mapping[TopicPartition, ErrorCode], now_ms: int
    ) -> TransactionOutcome:
        """Note what became of markers; the last one completes the transaction.

        `errors` may name some of the request's partitions (those of one leader), NONE for written
        ones and for partitions that do not exist any more.
        """
        entry = self._entries.get(marker.transactional_id)
        progress = entry.reported(marker, errors) if entry is not None else Progress.NOTHING
        if entry is None or progress is Progress.NOTHING:
            return TransactionOutcome()
        if progress is Progress.DONE:
            return self._complete(entry, now_ms)
        if progress is Progress.FENCED:
            return TransactionOutcome(timers=[TimerChange(entry.transactional_id, None)])
        return TransactionOutcome(timers=[_retry(entry, now_ms)])

    def on_timer(self, key: Hashable, now_ms: int) -> TransactionOutcome:
        """Try again what failed at the end of the transaction that the timer is named after."""
        assert isinstance(key, str)
        entry = self._entries.get(key)
        if entry is None or entry.current is None or not entry.is_finishing:
            return TransactionOutcome()
        if entry.pending is not None:
            return TransactionOutcome(timers=[_retry(entry, now_ms)])
        if not entry.awaits_markers:
            return self._complete(entry, now_ms)
        unsent = entry.unsent()
        return self._send(entry, entry.current, unsent) if unsent else TransactionOutcome()

    # Time

    def abort_timed_out(self, now_ms: int) -> list[TransactionOutcome]:
        """Abort the transactions that were open for longer than their producers allowed."""
        outcomes = []
        for entry in self._settled():
            target = rules.time_out(entry.current, now_ms) if entry.current else None
            if target is not None:
                outcomes.append(self._write(entry, target))
        return outcomes

    def expire(self, now_ms: int) -> list[TransactionOutcome]:
        """Forget the transactional ids that nobody used for long."""
        expiration_ms = self._options.transactional_id_expiration_ms
        deaths = []
        for entry in self._settled():
            target = rules.expire(entry.current, expiration_ms, now_ms) if entry.current else None
            if target is not None:
                deaths.append(self._write(entry, target))
        return [
            _together(deaths[start : start + EXPIRED_TOGETHER])
            for start in range(0, len(deaths), EXPIRED_TOGETHER)
        ]

    def _settled(self) -> list[Entry]:
        """Return the ids about which nothing is being written."""
        return [entry for entry in self._entries.values() if entry.pending is None]

    # Steps

    def _answer(
        self,
        transactional_id: str | None,
        decide: Callable[[Transaction | None], Verdict],
        respond: Callable[[ErrorCode, Producer], object],
        token: Hashable,
    ) -> TransactionOutcome:
        """Decide on a request, and answer it at once or when what it changes is committed."""
        nobody = Producer(NO_PRODUCER_ID, NO_EPOCH)
        entry = self._entries.get(transactional_id or "")
        code = self.unavailable
        if code is ErrorCode.NONE and not transactional_id:
            code = ErrorCode.INVALID_REQUEST
        if code is ErrorCode.NONE and entry is not None and entry.pending is not None:
            # Before looking at id and epoch: the request may carry those that are being written.
            code = ErrorCode.CONCURRENT_TRANSACTIONS
        if code is not ErrorCode.NONE:
            return TransactionOutcome(replies=[Reply(token, respond(code, nobody))])
        assert transactional_id
        current = entry.current if entry is not None else None
        verdict = decide(current)
        if verdict.needs_producer_id:
            return TransactionOutcome(needs_producer_id=True)
        told = verdict.target or current
        producer = told.granted if told and verdict.code is ErrorCode.NONE else nobody
        replies = [Reply(token, respond(verdict.code, producer))]
        if verdict.target is None:
            return TransactionOutcome(replies=replies)
        if entry is None:
            entry = self._entries[transactional_id] = Entry(transactional_id, None)

        def refuse(error: ErrorCode) -> list[Reply]:
            return [Reply(token, respond(append_failed(error), nobody))]

        return self._write(entry, verdict.target, replies, refuse)

    def _write(
        self,
        entry: Entry,
        target: Transaction,
        replies: list[Reply] | None = None,
        refuse: Callable[[ErrorCode], list[Reply]] | None = None,
    ) -> TransactionOutcome:
        """Ask for a step's record; the step is done when it is committed."""
        assert entry.pending is None
        entry.pending = target
        markers = []
        if target.state.is_decided:
            markers = [self._marker(entry.transactional_id, target, sorted(target.partitions))]

        def commit() -> None:
            assert entry.pending is target
            entry.current, entry.pending = target, None
            for marker in markers:
                entry.sent(marker)
            if target.state is State.DEAD:
                self._entries.pop(entry.transactional_id, None)

        def undo(error: ErrorCode) -> list[Reply]:
            assert entry.pending is target
            entry.pending = None
            if entry.current is None:
                self._entries.pop(entry.transactional_id, None)
            return refuse(error) if refuse is not None else []

        return TransactionOutcome(
            replies=replies or [],
            records=[encode_record(entry.transactional_id, target)],
            undo=undo,
            commit=commit,
            markers=markers,
        )

    def _send(
        self, entry: Entry, decided: Transaction, partitions: list[TopicPartition]
    ) -> TransactionOutcome:
        """Have markers of a decided transaction written."""
        marker = self._marker(entry.transactional_id, decided, partitions)
        entry.sent(marker)
        return TransactionOutcome(markers=[marker])

    def _complete(self, entry: Entry, now_ms: int) -> TransactionOutcome:
        """Write that a transaction is complete, and again later should that fail."""
        assert entry.current is not None
        outcome = self._write(entry, entry.current.completed(now_ms))
        outcome.timers.append(_retry(entry, now_ms))
        return outcome

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

    def _verified(
        self, transaction: AddPartitionsToTxnTransaction, producer: Producer, version: int
    ) -> object:
        """Tell of each partition whether it is part of the transaction.

        A step that is being written does not matter: the partition's leader checks again when it
        appends.
        """
        code = self.unavailable
        if code is ErrorCode.NONE and not transaction.transactional_id:
            code = ErrorCode.INVALID_REQUEST
        current = self.get(transaction.transactional_id)
        if code is ErrorCode.NONE:
            code = rules.verify(current, producer)
        if current is None or code is not ErrorCode.NONE:
            return result_of(transaction, code)
        missing = partitions_of(transaction) - current.partitions
        return result_of(
            transaction, ErrorCode.NONE, dict.fromkeys(missing, not_in_transaction(version))
        )


def _retry(entry: Entry, now_ms: int) -> TimerChange:
    return TimerChange(entry.transactional_id, now_ms + RETRY_BACKOFF_MS)


def _together(outcomes: list[TransactionOutcome]) -> TransactionOutcome:
    """Make one append of several steps that nobody waits for."""

    def commit() -> None:
        for outcome in outcomes:
            assert outcome.commit is not None
            outcome.commit()

    def undo(error: ErrorCode) -> list[Reply]:
        return [
            reply
            for outcome in outcomes
            if outcome.undo is not None
            for reply in outcome.undo(error)
        ]

    return TransactionOutcome(
        records=[record for outcome in outcomes for record in outcome.records],
        commit=commit,
        undo=undo,
    )
