"""A producer's transactions: their state, the partitions in them, what an error means.

    UNINITIALIZED ──▶ INITIALIZING ──▶ READY ◀──────────────┐
                                        │ begin             │ ended
                                        ▼                   │
                                  IN_TRANSACTION ──▶ COMMITTING, ABORTING
                                        │ failed            ▲
                                        ▼                   │ abort alone
                                  ABORTABLE_ERROR ──────────┘
    COMMITTING ──▶ HANDED_OVER  (another process ends the transaction: this producer is done)
    any ──▶ FATAL_ERROR  (another producer took over, or access is denied)

A plain object; `coordinator.py` does the talking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from barnabas.client.errors import IllegalStateError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.producer.batch import ProducerBatch


class State(Enum):
    """The state of a transactional producer."""

    UNINITIALIZED = "not initialized: call init_transactions() first"
    INITIALIZING = "being initialized"
    READY = "not in a transaction: call begin_transaction() first"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    HANDED_OVER = "finished, because its transaction was handed over: close it"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "in a transaction that failed: call abort_transaction()"
    FATAL_ERROR = "no longer usable: close it"


_NEXT = {
    State.UNINITIALIZED: (State.INITIALIZING,),
    State.INITIALIZING: (State.READY, State.UNINITIALIZED),
    State.READY: (State.IN_TRANSACTION,),
    State.IN_TRANSACTION: (State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR),
    State.COMMITTING: (State.READY, State.ABORTABLE_ERROR, State.HANDED_OVER),
    State.HANDED_OVER: (),
    State.ABORTING: (State.READY,),
    State.ABORTABLE_ERROR: (State.ABORTING, State.ABORTABLE_ERROR),
    State.FATAL_ERROR: (State.FATAL_ERROR,),
}

FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.INVALID_TXN_STATE,
    }
)
"""Errors after which the producer can only be closed."""


class Transaction:
    """The transactions of one producer, one after the other."""

    def __init__(self, transactional_id: str, changed: Callable[[], object]) -> None:
        """`changed` is called when records may be sent from now on, or no longer."""
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.error: BarnabasError | None = None
        self.enlisted: set[TopicPartition] = set()
        self.wanted: dict[TopicPartition, None] = {}
        """Partitions that the coordinator must know before they are written to."""
        self.asked = False
        """Whether the coordinator may know the current transaction: a response was lost."""
        self.begun = False
        """Whether the coordinator knows of the current transaction."""
        self.epoch_spent = False
        """Whether the next transaction needs a new epoch: sequence numbers were lost."""
        self._changed = changed

    @property
    def accepts(self) -> bool:
        """Return whether records may be sent."""
        return self.state is State.IN_TRANSACTION

    @property
    def writes(self) -> bool:
        """Return whether accepted records are written."""
        return self.state in (State.IN_TRANSACTION, State.COMMITTING)

    def become(self, state: State) -> None:
        """Change the state, or raise IllegalStateError with the reason."""
        if self.state is State.FATAL_ERROR and state is not State.FATAL_ERROR:
            assert self.error is not None
            raise self.error
        if state is not State.FATAL_ERROR and state not in _NEXT[self.state]:
            raise self.illegal(state.name.lower().replace("_", " "))
        self.state = state
        self._changed()

    def illegal(self, wish: str) -> BarnabasError:
        """Return the error for a call that the state does not allow."""
        failure = IllegalStateError(
            f"{wish}: the producer {self.transactional_id!r} is {self.state.value}"
        )
        failure.__cause__ = self.error
        return failure

    def check_usable(self, wish: str) -> None:
        """Raise unless the transaction can continue."""
        if self.state is State.FATAL_ERROR or self.state is State.ABORTABLE_ERROR:
            assert self.error is not None
            raise self.error
        if self.state is not State.IN_TRANSACTION:
            raise self.illegal(wish)

    def begin(self) -> None:
        """Begin a transaction; its coordinator learns of it with the first record."""
        self.become(State.IN_TRANSACTION)
        self.asked = self.begun = False
        self.enlisted.clear()
        self.wanted.clear()

    def ended(self) -> None:
        """Record that the transaction was committed or aborted."""
        self.error = None
        self.enlisted.clear()
        self.wanted.clear()
        self.asked = self.begun = False
        self.become(State.READY)

    def may_send(self, partition: TopicPartition) -> bool:
        """Return whether a partition is part of the transaction; if not, mark it to be added."""
        if partition in self.enlisted:
            return self.writes
        if self.writes:
            self.wanted[partition] = None
        return False

    def enlist(self, partitions: Iterable[TopicPartition]) -> None:
        """Record that the coordinator knows these partitions."""
        self.begun = True
        for partition in partitions:
            self.wanted.pop(partition, None)
            self.enlisted.add(partition)

    def failed(self, batch: ProducerBatch, failure: BarnabasError, gap: bool) -> None:
        """Record that a batch failed: the transaction can no longer be committed."""
        self.epoch_spent = self.epoch_spent or gap
        self.fail(failure)

    def fail(self, failure: BarnabasError) -> None:
        """Record an error: fatal, or one that a new transaction may not have."""
        if isinstance(failure, RequestError) and failure.code in FATAL:
            self.error = failure
            self.become(State.FATAL_ERROR)
        elif self.writes:
            self.error = failure
            self.become(State.ABORTABLE_ERROR)
