"""The machine of one partition of `__transaction_state`: who owns a transactional id, and how its
transactions end.

It is given requests and the time and returns outcomes (see `outcome.py`); it owns no clock, socket
or log. One machine serves one term of leadership: it is created with the leader epoch as
`coordinator_epoch`, fed every record of the partition through `replay`, started by `loaded`, and
discarded after `unload`. Before and after that it answers with COORDINATOR_LOAD_IN_PROGRESS and
NOT_COORDINATOR.

Invariants:
- A state change takes effect with its `commit`. Until then every request to change the same id is
  rejected with CONCURRENT_TRANSACTIONS, so at most one write is pending per id.
- A decided transaction (PrepareX) is complete only when every one of its partitions has reported
  the marker; until then nothing else happens to its id.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import Enum, auto
from typing import Final

from barnabas.config.broker.transactions import TransactionsOptions
from barnabas.diary import subjects
from barnabas.metrics.instruments import Counter
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import NO_EPOCH, TopicPartition
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
from barnabas.transactions.outcome import MarkerRequest, TransactionOutcome
from barnabas.transactions.rules import Verdict
from barnabas.transactions.state import State
from barnabas.transactions.transaction import NO_PRODUCER_ID, Producer, Transaction
from barnabas.transactions.transactional_id import Progress
from barnabas.transactions.transactional_ids import (
    RETRY_BACKOFF_MS,
    MarkerBacklog,
    TransactionalIds,
    together,
)
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

EXPIRED_TOGETHER: Final = 1000
"""How many expired ids one append removes."""

END_RAISES_EPOCH: Final = 5
"""From this version of EndTxn on, clients take a new epoch from its response (KIP-890)."""


class _Phase(Enum):
    LOADING = auto()
    ACTIVE = auto()
    UNLOADED = auto()


class TransactionCoordinator:
    """The transactional ids of one partition, while this broker leads it."""

    def __init__(
        self,
        options: TransactionsOptions,
        coordinator_epoch: int,
        timed_out: Counter | None = None,
    ) -> None:
        """Begin to load; `timed_out` counts the transactions aborted by their time-out."""
        self._options = options
        self._ids = TransactionalIds(coordinator_epoch)
        self._phase = _Phase.LOADING
        self._timed_out = timed_out or Counter()

    @property
    def coordinator_epoch(self) -> int:
        """The leader epoch of the partition, under which markers are sent."""
        return self._ids.coordinator_epoch

    # Life

    def replay(self, record: StateRecord) -> None:
        """Replay one record of the partition, while loading."""
        assert self._phase is _Phase.LOADING
        self._ids.replay(record)

    def loaded(self, now_ms: int) -> list[TransactionOutcome]:
        """Begin to serve; transactions decided earlier are completed.

        Every replayed record must be committed by now (below the high watermark): retries are
        answered from memory, and what was answered must survive the next change of leader.
        """
        assert self._phase is _Phase.LOADING
        self._phase = _Phase.ACTIVE
        decided = [entry for entry in self._ids.entries.values() if entry.is_finishing]
        for entry in decided:
            entry.await_all()
        return [self._ids.finish(entry, now_ms) for entry in decided]

    def unload(self) -> TransactionOutcome:
        """Stop serving: another broker leads the partition now.

        Outcomes that wait for their append are undone (with NOT_LEADER_OR_FOLLOWER) as usual.
        """
        timers = [TimerChange(transactional_id, None) for transactional_id in self._ids.entries]
        self._phase = _Phase.UNLOADED
        self._ids.entries.clear()
        return TransactionOutcome(timers=timers)

    @property
    def unavailable(self) -> ErrorCode:
        """Why this machine serves no requests now; NONE if it does."""
        if self._phase is _Phase.LOADING:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if self._phase is _Phase.UNLOADED:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE

    def transactions(self) -> Iterator[tuple[str, Transaction]]:
        """Yield every transactional id and its committed state."""
        for transactional_id, entry in self._ids.entries.items():
            if entry.current is not None:
                yield transactional_id, entry.current

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the committed state of a transactional id."""
        entry = self._ids.entries.get(transactional_id)
        return entry.current if entry is not None else None

    @property
    def backlog(self) -> MarkerBacklog:
        """What ended transactions still wait for."""
        return self._ids.backlog()

    # Requests

    def handle_init_producer_id(
        self,
        request: InitProducerIdRequest,
        version: int,
        token: Hashable,
        now_ms: int,
        fresh_producer_id: int | None = None,
    ) -> TransactionOutcome:
        """Initialize a producer of a transactional id.

        If a producer id is needed and none was given, the outcome asks for one.
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
        """Add partitions to a transaction, or verify that they were added.

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
        """Add a group's offsets; `partition` is the one that stores them."""
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

        If a producer id is needed and none was given, the outcome asks for one.
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

        return self._answer(request.transactional_id, decide, respond, token, is_end=True)

    # Markers

    def markers_written(
        self, marker: MarkerRequest, errors: Mapping[TopicPartition, ErrorCode], now_ms: int
    ) -> TransactionOutcome:
        """Record the results of markers; the last one completes the transaction.

        `errors` may cover some of the request's partitions (those of one leader), NONE for written
        markers and for partitions that no longer exist.
        """
        entry = self._ids.entries.get(marker.transactional_id)
        progress = entry.reported(marker, errors) if entry is not None else Progress.NOTHING
        if entry is None or progress is Progress.NOTHING:
            return TransactionOutcome()
        if progress is Progress.DONE:
            return self._ids.finish(entry, now_ms)
        again_ms = None if progress is Progress.FENCED else now_ms + RETRY_BACKOFF_MS
        return TransactionOutcome(timers=[TimerChange(entry.transactional_id, again_ms)])

    def on_timer(self, key: Hashable, now_ms: int) -> TransactionOutcome:
        """Retry what failed when completing the transaction that the timer is named after."""
        assert isinstance(key, str)
        entry = self._ids.entries.get(key)
        return TransactionOutcome() if entry is None else self._ids.finish(entry, now_ms)

    # Time

    def abort_timed_out(self, now_ms: int) -> list[TransactionOutcome]:
        """Abort the transactions that have timed out."""
        outcomes = []
        for transactional_id, current in self._settled():
            target = rules.time_out(current, now_ms)
            if target is not None:
                outcome = self._counted(self._ids.write(transactional_id, target))
                _note_abort(outcome, transactional_id, current, "timeout", now_ms)
                outcomes.append(outcome)
        return outcomes

    def _counted(self, abort: TransactionOutcome) -> TransactionOutcome:
        """Count an abort when it is committed: one that fails is decided again."""
        commit = abort.commit
        assert commit is not None

        def commit_and_count() -> None:
            commit()
            self._timed_out.add()

        abort.commit = commit_and_count
        return abort

    def expire(self, now_ms: int) -> list[TransactionOutcome]:
        """Remove the transactional ids that have expired."""
        expiration_ms = self._options.transactional_id_expiration_ms
        deaths = [
            self._ids.write(transactional_id, target)
            for transactional_id, current in self._settled()
            if (target := rules.expire(current, expiration_ms, now_ms)) is not None
        ]
        return [
            together(deaths[start : start + EXPIRED_TOGETHER])
            for start in range(0, len(deaths), EXPIRED_TOGETHER)
        ]

    def _settled(self) -> list[tuple[str, Transaction]]:
        """Return the ids without a pending write, while this machine is active."""
        return self._ids.settled() if self.unavailable is ErrorCode.NONE else []

    # Answers

    def _answer(
        self,
        transactional_id: str | None,
        decide: Callable[[Transaction | None], Verdict],
        respond: Callable[[ErrorCode, Producer], object],
        token: Hashable,
        *,
        is_end: bool = False,
    ) -> TransactionOutcome:
        """Decide on a request, and answer it now or when its state change is committed."""
        nobody = Producer(NO_PRODUCER_ID, NO_EPOCH)
        entry = self._ids.entries.get(transactional_id or "")
        code = self.unavailable
        if code is ErrorCode.NONE and not transactional_id:
            code = ErrorCode.INVALID_REQUEST
        if code is ErrorCode.NONE and entry is not None and entry.pending is not None:
            # Before checking id and epoch: the request may carry those of the pending write.
            code = ErrorCode.CONCURRENT_TRANSACTIONS
        if code is not ErrorCode.NONE:
            return TransactionOutcome(replies=[Reply(token, respond(code, nobody))])
        assert transactional_id
        current = entry.current if entry is not None else None
        verdict = decide(current)
        if verdict.needs_producer_id:
            return TransactionOutcome(needs_producer_id=True)
        granting = verdict.target or current
        producer = granting.granted if granting and verdict.code is ErrorCode.NONE else nobody
        replies = [Reply(token, respond(verdict.code, producer))]
        if verdict.target is None:
            return TransactionOutcome(replies=replies)

        def refuse(error: ErrorCode) -> list[Reply]:
            return [Reply(token, respond(append_failed(error), nobody))]

        outcome = self._ids.write(transactional_id, verdict.target, replies, refuse)
        if current is not None and current.state is State.ONGOING and _aborts(verdict.target):
            # A producer ends its own transaction in its epoch; initializing one begins another.
            cause = "client" if is_end else "fenced"
            now_ms = verdict.target.last_update_ms
            _note_abort(outcome, transactional_id, current, cause, now_ms)
        return outcome

    def _verified(
        self, transaction: AddPartitionsToTxnTransaction, producer: Producer, version: int
    ) -> AddPartitionsToTxnResult:
        """Return for each partition whether it is part of the transaction.

        A pending write does not matter: if it ends the transaction, its marker comes after this
        response, and the partition's leader lets no append past the marker.
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


def _aborts(target: Transaction) -> bool:
    return target.state in (State.PREPARE_ABORT, State.COMPLETE_ABORT)


def _note_abort(
    outcome: TransactionOutcome,
    transactional_id: str,
    current: Transaction,
    cause: str,
    now_ms: int,
) -> None:
    outcome.note(
        "transaction.aborted",
        subjects.transaction(transactional_id),
        cause,
        {
            "open_ms": now_ms - current.start_ms,
            "timeout_ms": current.timeout_ms,
            "partitions": len(current.partitions),
            "producer_id": current.producer_id,
            "epoch": current.producer_epoch,
        },
    )
