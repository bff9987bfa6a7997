"""Decides which batches go to which brokers and when, and what the responses mean.

A plain object; time is passed in. The core calls, whenever something has happened:

    collect   take over what was appended since
    ready     which leaders there is something for, and when to look again
    drain     the batches of the next request to one leader
    settle    what the broker responded for one batch
    lost      a request was not answered: its batches may or may not have been written
    expire    give up what is older than delivery.timeout.ms

One request carries one batch of a partition at most. Order is kept by the queue: a batch that
failed is put back before all that came after it. Without idempotence and with more than one request
in flight a later batch may still overtake one that is sent again, as in every Kafka client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.client.errors import KafkaTimeoutError
from barnabas.client.retry import Backoff
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RemoteProtocolError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.producer.accumulator import Accumulator
from barnabas.producer.batch import ProducerBatch, describe_progress, split
from barnabas.producer.counts import Counts
from barnabas.producer.identity import NOBODY, Identity
from barnabas.producer.queue import PartitionQueue
from barnabas.wire.messages.produce import PartitionProduceResponse

NEVER_MS = float("inf")


class TransactionView(Protocol):
    """What the sender must know of a transaction."""

    def may_send(self, partition: TopicPartition) -> bool:
        """Return whether a partition is part of the transaction; if not, it is added."""

    def failed(self, batch: ProducerBatch, failure: BarnabasError, gap: bool) -> None:
        """Handle a failed batch of the transaction; a gap needs a new epoch."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The options that the sender acts on."""

    linger_ms: float = 0.0
    delivery_timeout_ms: float = 120_000
    request_size_max: int = 1_048_576
    retries_max: int = 2_147_483_647
    idempotent: bool = True
    in_order: bool = False
    """One batch of a partition at a time (max.in.flight.requests.per.connection=1)."""


@dataclass(slots=True)
class Ready:
    """What `ready` found: queues by leader, when to look again, and whether leaders are missing."""

    nodes: dict[int, list[PartitionQueue]] = field(default_factory=dict)
    next_ms: float = NEVER_MS
    leaderless: bool = False


class Sender:
    """The batches of all partitions, from the accumulator to their outcome."""

    def __init__(
        self,
        accumulator: Accumulator,
        rules: Rules,
        leader: Callable[[TopicPartition], int | None],
        backoff: Backoff,
        transaction: TransactionView | None = None,
        blocked_by: Callable[[TopicPartition], BarnabasError | None] = lambda _: None,
    ) -> None:
        """`blocked_by` says why nothing can be sent to a partition, if it knows."""
        self.accumulator = accumulator
        self.rules = rules
        self.identity = NOBODY
        """The producer id and epoch; an idempotent producer sends nothing without them."""
        self.identity_wanted = False
        """Whether a (new) producer id must be requested."""
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.flushing = 0
        """Number of flushes in progress: batches do not linger meanwhile."""
        self.counts = Counts()
        self._active: dict[TopicPartition, PartitionQueue] = {}
        self._leader = leader
        self.backoff = backoff
        self._transaction = transaction
        self._blocked_by = blocked_by
        self._turns: dict[int, int] = {}

    @property
    def active(self) -> bool:
        """Return whether something is queued or in flight."""
        return bool(self._active)

    @property
    def waits(self) -> bool:
        """Return whether something is queued."""
        return self.identity_wanted or any(queue.waits for queue in self._active.values())

    # Before a request.

    def collect(self, now_ms: float) -> None:
        """Queue the batches that were opened or closed since the last call."""
        accumulator = self.accumulator
        for slot in accumulator.collect():
            queue = self.queues.get(slot.partition)
            if queue is None or queue.slot is not slot:
                queue = self.queues[slot.partition] = PartitionQueue(slot)
            queue.notice(accumulator.take(slot), now_ms)
            self._active[slot.partition] = queue

    def ready(self, now_ms: float) -> Ready:
        """Return the leaders with something to send now, and when that changes by itself."""
        found = Ready()
        done = []
        for partition, queue in self._active.items():
            if queue.idle and not queue.sequences.stuck:
                done.append(partition)
                continue
            due_ms = self._due_ms(queue, now_ms)
            if due_ms > now_ms:
                found.next_ms = min(found.next_ms, due_ms)
                continue
            leader = self._leader(partition)
            if leader is None:
                found.leaderless = True
            elif self._transaction is None or self._transaction.may_send(partition):
                found.nodes.setdefault(leader, []).append(queue)
        for partition in done:
            del self._active[partition]
        return found

    def drain(
        self, node_id: int, queues: list[PartitionQueue], now_ms: float
    ) -> list[ProducerBatch]:
        """Return the batches of one request to a leader; they count as in flight from now on.

        The queues are those that `ready` found, or the ones of them that are still `due`.
        """
        rules = self.rules
        taken: list[ProducerBatch] = []
        size = 0
        # Begin with another partition each time, so that a full request starves none of them.
        turn = self._turns.get(node_id, 0) % len(queues)
        self._turns[node_id] = turn + 1
        for index in range(len(queues)):
            queue = queues[(turn + index) % len(queues)]
            if not queue.batches:
                queue.notice(self.accumulator.take(queue.slot, True), now_ms)
            batch = queue.batches[0]
            if taken and size + batch.size > rules.request_size_max:
                break
            if rules.idempotent and batch.sequence < 0:
                if not queue.sequences.may_start(self.identity):
                    continue
                queue.sequences.assign(batch, self.identity)
                batch.stamped = False
            queue.batches.popleft()
            queue.in_flight.append(batch)
            batch.attempts += 1
            size += batch.size
            taken.append(batch)
        return taken

    def due(self, queues: list[PartitionQueue], now_ms: float) -> list[PartitionQueue]:
        """Return the queues that have something for another request to the same leader."""
        return [queue for queue in queues if queue.waits and self._due_ms(queue, now_ms) <= now_ms]

    def _due_ms(self, queue: PartitionQueue, now_ms: float) -> float:
        """Return when the first batch of a queue can be sent."""
        rules = self.rules
        # Where the first batch is refused for a while, a later one must not be taken before it.
        if queue.in_flight and (rules.in_order or (rules.idempotent and not queue.sequences.known)):
            return NEVER_MS
        if rules.idempotent and (self.identity is NOBODY or queue.sequences.stuck):
            return NEVER_MS
        if queue.batches:
            return queue.batches[0].not_before_ms
        if queue.slot.open is None:
            return NEVER_MS
        accumulator = self.accumulator
        if self.flushing or accumulator.closed or accumulator.pool.waiting or queue.slot.open.full:
            return now_ms
        if queue.open_batch is not queue.slot.open:
            return now_ms + rules.linger_ms  # it is noticed with the next look
        return queue.open_since_ms + rules.linger_ms

    # After a request.

    def settle(
        self,
        batch: ProducerBatch,
        answer: PartitionProduceResponse,
        now_ms: float,
        broker: str = "",
    ) -> ErrorCode:
        """Handle a broker's response for a batch; return its code."""
        code = answer.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.written(batch)
            batch.records.complete(
                answer.base_offset, answer.log_append_time_ms, answer.log_start_offset
            )
            return ErrorCode.NONE
        queue = self._landed(batch)
        known = ErrorCode.of(code)
        text = f"{batch.partition}{broker}: {answer.error_message or known.meaning}"
        failure = request_error(code, f"{text} ({now_ms - batch.created_ms:.0f} ms after send)")
        batch.failure = failure
        if batch.records.done:  # it expired while it was on its way
            self._maybe_restart(queue)
        elif known is ErrorCode.MESSAGE_TOO_LARGE and batch.records.count > 1:
            self._split(queue, batch)
        elif self._worth_retrying(queue, batch, known):
            self._retry(queue, batch, now_ms)
        else:
            errors: dict[int, BaseException] = {
                error.batch_index: request_error(
                    code,
                    f"{text}: record {error.batch_index}: "
                    f"{error.batch_index_error_message or known.meaning}",
                )
                for error in answer.record_errors
            }
            self._give_up(queue, batch, failure, errors or None, refused=True)
        return known

    def written(self, batch: ProducerBatch) -> None:
        """Record that a batch was written; the caller completes its records."""
        queue = self._landed(batch)
        if self.rules.idempotent:
            queue.sequences.settle(batch)
        self.counts.acknowledged(batch)
        self._maybe_restart(queue)

    def lost(self, batch: ProducerBatch, failure: BarnabasError, now_ms: float) -> None:
        """Handle a request without a response."""
        queue = self._landed(batch)
        batch.failure = failure
        if batch.records.done:
            self._maybe_restart(queue)
        elif batch.attempts <= self.rules.retries_max and (
            # An answer that cannot be read ends the connection: no worse than losing it.
            failure.retriable or isinstance(failure, RemoteProtocolError)
        ):
            self._retry(queue, batch, now_ms)
        else:
            self._give_up(queue, batch, failure, refused=False)

    def expire(self, now_ms: float) -> float:
        """Fail batches that are too old, in flight or not; return when the next one is."""
        limit_ms = self.rules.delivery_timeout_ms
        next_ms = NEVER_MS
        for queue in list(self._active.values()):
            for batch in [*queue.in_flight, *queue.batches]:
                if batch.records.done:
                    continue
                expires_ms = batch.created_ms + limit_ms
                if expires_ms > now_ms:
                    next_ms = min(next_ms, expires_ms)
                    continue
                self._expire(queue, batch, now_ms)
            if queue.open_batch is not None and queue.slot.open is queue.open_batch:
                expires_ms = queue.open_since_ms + limit_ms
                if expires_ms > now_ms:
                    next_ms = min(next_ms, expires_ms)
                    continue
                queue.notice(self.accumulator.take(queue.slot, True), now_ms)
                self._expire(queue, queue.batches[-1], now_ms)
        return next_ms

    def unfinished(self) -> list[ProducerBatch]:
        """Return all batches without an outcome; open ones are closed for that."""
        found: list[ProducerBatch] = []
        for queue in self._active.values():
            queue.notice(self.accumulator.take(queue.slot, True), queue.open_since_ms)
            found += queue.in_flight
            found += queue.batches
        return [batch for batch in found if not batch.records.done]

    def abandon(self, failure: BarnabasError, *, in_flight: bool, queued: bool = True) -> bool:
        """Fail the batches that are queued, and with `in_flight` those that were sent.

        Return whether one of them may have been written nevertheless.
        """
        doubt = False
        for queue in list(self._active.values()):
            queue.notice(self.accumulator.take(queue.slot, True), queue.open_since_ms)
            batches = list(queue.in_flight) if in_flight else []
            if queued:
                batches = [*queue.batches, *batches]
                queue.batches.clear()
            for batch in batches:
                if batch.sequence >= 0:
                    queue.sequences.doubt(batch)
                    doubt = True
                self.counts.failed(batch)
                batch.records.fail(failure)
        return doubt

    def become(self, identity: Identity) -> None:
        """Set the producer id and epoch from a broker; all sequences restart at 0."""
        self.identity = identity
        self.identity_wanted = False
        for queue in self.queues.values():
            if not queue.in_flight and (queue.sequences.stuck or not queue.sequences.unresolved):
                queue.sequences.restart(identity)

    # Inside.

    def _landed(self, batch: ProducerBatch) -> PartitionQueue:
        queue = self.queues[batch.partition]
        queue.in_flight.remove(batch)
        return queue

    def _retry(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: float) -> None:
        self.counts.retried(batch)
        batch.not_before_ms = now_ms + self.backoff.delay_ms(batch.attempts)
        queue.put_back(batch)
        self._active[batch.partition] = queue
        self._maybe_restart(queue)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self.counts.splits += 1
        parts = split(batch)
        if self.rules.idempotent:
            queue.sequences.replace(batch, parts)
        for part in parts:
            queue.put_back(part)
        self._active[batch.partition] = queue

    def _worth_retrying(self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode) -> bool:
        if self.rules.idempotent and self._repaired(queue, batch, code):
            return True
        return code.retriable and batch.attempts <= self.rules.retries_max

    def _repaired(self, queue: PartitionQueue, batch: ProducerBatch, code: ErrorCode) -> bool:
        """Return whether a new epoch solves a sequence number that the broker rejected."""
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if not queue.sequences.is_first(batch):
                return True  # an earlier batch is sent again first
            if self._transaction is None and (queue.sequences.doubtful or queue.sequences.stuck):
                queue.sequences.stuck = True
                return True
            return False
        if self._transaction is None and code in (
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ):
            queue.sequences.stuck = True
            return True
        return False

    def _give_up(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        failure: BarnabasError,
        by_record: dict[int, BaseException] | None = None,
        *,
        refused: bool,
    ) -> None:
        sequences = queue.sequences
        if batch.sequence >= 0:
            if refused:
                sequences.refuse(batch)
            else:
                sequences.doubt(batch)
        self.counts.failed(batch)
        if self._transaction is not None:
            gap = sequences.stuck or sequences.doubtful
            self._transaction.failed(batch, failure, gap)
        batch.records.fail(failure, by_record)
        self._maybe_restart(queue)

    def _expire(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: float) -> None:
        if batch in queue.batches:
            queue.batches.remove(batch)
        why = batch.failure or self._blocked_by(batch.partition)
        failure = KafkaTimeoutError(
            f"{batch.records.count} records for {batch.partition} were not delivered within "
            f"delivery.timeout.ms={self.rules.delivery_timeout_ms:g}"
            f"{describe_progress(batch.attempts, why, now_ms - batch.created_ms)}"
        )
        failure.__cause__ = why
        self._give_up(queue, batch, failure, refused=False)

    def _maybe_restart(self, queue: PartitionQueue) -> None:
        """Begin a new epoch for a partition that needs one, once none of it is in flight."""
        if not queue.sequences.stuck or queue.in_flight or self._transaction is not None:
            return
        identity = self.identity
        if queue.sequences.identity == identity:
            following = identity.next_epoch()
            if following is None:
                self.identity, self.identity_wanted = NOBODY, True
                return
            identity = self.identity = following
        queue.sequences.restart(identity)
