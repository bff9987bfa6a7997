"""Transactions on the loop: `Transaction` decides, `Coordinator` sends the requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.client.errors import IllegalStateError, KafkaTimeoutError, TransactionAbortedError
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.model.ids import TopicPartition
from barnabas.producer.handle import TransactionHandle
from barnabas.producer.transaction import State, Transaction
from barnabas.structs import OffsetAndMetadata

if TYPE_CHECKING:
    import asyncio

    from barnabas.producer.core import ProducerCore

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class TransactionManager:
    """The transactions of one producer."""

    def __init__(self, core: ProducerCore, transactional_id: str) -> None:
        self.transaction = Transaction(transactional_id, self._changed)
        self._core = core
        self._enlisting: asyncio.Task[None] | None = None

    async def initialize(self, timeout_ms: float) -> None:
        """Get the producer id; ends what an earlier producer of this id left open."""
        transaction = self.transaction
        if transaction.state is State.READY:
            return
        transaction.become(State.INITIALIZING)
        try:
            identity = await self._core.coordinator.init_producer_id(timeout_ms=timeout_ms)
        except BaseException as failure:
            transaction.become(State.UNINITIALIZED)
            if isinstance(failure, BarnabasError):
                transaction.fail(failure)
            raise
        self._core.sender.become(identity)
        transaction.become(State.READY)

    def begin(self) -> None:
        """Begin a transaction."""
        self.transaction.begin()

    async def commit_offsets(
        self, offsets: Offsets, group: ConsumerGroupMetadata | str, timeout_ms: float
    ) -> None:
        """Make a group's offsets part of the transaction."""
        transaction = self.transaction
        transaction.check_usable("send offsets to the transaction")
        if isinstance(group, str):
            group = ConsumerGroupMetadata(group)
        if not group.group_id:
            raise InvalidValueError(f"group {group!r}: the group id must not be empty")
        if not offsets:
            return
        coordinator, identity = self._core.coordinator, self._core.sender.identity
        left = self._core.patience(timeout_ms)
        transaction.asked = True
        try:
            await coordinator.add_offsets(identity, group.group_id, timeout_ms=left())
            transaction.begun = True
            await coordinator.commit_offsets(identity, offsets, group, timeout_ms=left())
        except KafkaTimeoutError:
            raise  # the same call may be repeated
        except BarnabasError as failure:
            transaction.fail(failure)
            raise

    async def commit(self, timeout_ms: float) -> None:
        """Deliver everything, then commit; may be repeated after a timeout."""
        transaction = self.transaction
        left = self._core.patience(timeout_ms)
        await self._deliver("commit the transaction", left())
        try:
            if transaction.begun:
                await self._core.coordinator.end(
                    self._core.sender.identity, True, timeout_ms=left()
                )
            elif transaction.asked:  # nothing was written, but something may have begun
                await self._renew(left())
        except KafkaTimeoutError:
            raise
        except BarnabasError as failure:
            transaction.fail(failure)
            raise
        transaction.ended()

    async def hand_over(self, timeout_ms: float) -> TransactionHandle | None:
        """Deliver everything, then leave the transaction to the owner of the handle.

        None if nothing was sent: then there is nothing to end. May be repeated, too.
        """
        transaction = self.transaction
        await self._deliver("hand the transaction over", timeout_ms)
        begun = transaction.begun
        transaction.become(State.HANDED_OVER)
        identity = self._core.sender.identity
        return TransactionHandle(transaction.transactional_id, *identity) if begun else None

    async def _deliver(self, wish: str, timeout_ms: float) -> None:
        transaction = self.transaction
        if transaction.state is not State.COMMITTING:
            transaction.check_usable(wish)
            transaction.become(State.COMMITTING)
        await self._core.flush(timeout_ms)
        if transaction.error is not None:
            raise transaction.error

    async def abort(self, timeout_ms: float) -> None:
        """Drop what was not delivered, then abort; may be repeated, too."""
        transaction, core = self.transaction, self._core
        left = core.patience(timeout_ms)
        if transaction.state is not State.ABORTING:
            if transaction.state not in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
                raise (
                    transaction.error
                    if transaction.state is State.FATAL_ERROR and transaction.error is not None
                    else transaction.illegal("abort the transaction")
                )
            transaction.become(State.ABORTING)
        core.sender.collect(core.now_ms())
        if core.sender.abandon(
            TransactionAbortedError(
                f"the transaction of {transaction.transactional_id!r} was aborted"
            ),
            in_flight=False,
        ):
            transaction.epoch_spent = True
        if self._enlisting is not None:
            await core.settled(self._enlisting, left())
        if self._enlisting is not None:
            self._enlisting.cancel()
        await core.landed(left())
        try:
            if transaction.begun:
                await core.coordinator.end(core.sender.identity, False, timeout_ms=left())
                transaction.asked = transaction.begun = False
            if transaction.asked or transaction.epoch_spent:
                await self._renew(left())
        except KafkaTimeoutError:
            raise
        except BarnabasError as failure:
            transaction.error = failure
            transaction.become(State.FATAL_ERROR)
            raise
        transaction.ended()

    async def _renew(self, timeout_ms: float) -> None:
        """Get the next epoch, which also ends what the coordinator may have begun."""
        core = self._core
        identity = await core.coordinator.init_producer_id(
            core.sender.identity, timeout_ms=timeout_ms
        )
        self.transaction.asked = self.transaction.epoch_spent = False
        core.sender.become(identity)

    def enlist(self) -> None:
        """Add partitions that are about to be written to, at the coordinator."""
        if self.transaction.wanted and self.transaction.writes and self._enlisting is None:
            self._enlisting = self._core.background(self._enlist())

    async def close(self, timeout_ms: float | None) -> None:
        """Abort a transaction that was left open."""
        if self.transaction.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR):
            limit_ms = self._core.options.max_block_ms
            await self.abort(limit_ms if timeout_ms is None else min(timeout_ms, limit_ms))

    async def _enlist(self) -> None:
        transaction, core = self.transaction, self._core
        wanted = list(transaction.wanted)
        transaction.asked = True
        try:
            await core.coordinator.add_partitions(
                core.sender.identity, wanted, timeout_ms=core.options.delivery_timeout_ms
            )
        except BarnabasError as failure:
            transaction.fail(failure)
        else:
            transaction.enlist(wanted)
        finally:
            self._enlisting = None
            core.look_again()

    def _changed(self) -> None:
        core = self._core
        transaction = self.transaction
        core.accumulator.closed = core.closing or not transaction.accepts
        if transaction.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR):
            core.look_again(self._give_up)

    def _give_up(self) -> None:
        """Fail queued batches: the transaction can only be aborted."""
        transaction, core = self.transaction, self._core
        if transaction.error is None:
            return
        core.sender.collect(core.now_ms())
        if core.sender.abandon(transaction.error, in_flight=False):
            transaction.epoch_spent = True


def needs_transactions(manager: TransactionManager | None, wish: str) -> TransactionManager:
    """Return the transactions of a producer that has them, else raise."""
    if manager is None:
        raise IllegalStateError(f"{wish}: the producer has no transactional.id")
    return manager
