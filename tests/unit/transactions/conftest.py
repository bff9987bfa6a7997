"""A coordinator that serves, and a hand that plays its host: every append succeeds unless told."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.outcome import MarkerRequest, TransactionOutcome
from barnabas.transactions.transaction import Producer, Transaction
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

COORDINATOR_EPOCH = 7
NOBODY = Producer(-1, -1)


class Host:
    """Appends what a coordinator asks for to a list, and keeps what it wants to be done."""

    def __init__(self) -> None:
        self.now_ms = 1_000
        self.log: list[StateRecord] = []
        self.markers: list[MarkerRequest] = []
        self.timers: dict[Any, int] = {}
        self.next_producer_id = 4_000
        self.coordinator = self.started()

    def started(self, coordinator_epoch: int = COORDINATOR_EPOCH) -> TransactionCoordinator:
        """Load a coordinator from the log, as after a restart."""
        self.markers, self.timers = [], {}
        self.coordinator = TransactionCoordinator(BrokerOptions.parse({}), coordinator_epoch)
        for record in self.log:
            self.coordinator.replay(record)
        for outcome in self.coordinator.loaded(self.now_ms):
            self.carry_out(outcome)
        return self.coordinator

    def carry_out(self, outcome: TransactionOutcome, error: ErrorCode = ErrorCode.NONE) -> Any:
        """Do what an outcome asks; return the response of its one reply, if it has one."""
        assert not outcome.needs_producer_id
        for key, deadline_ms in outcome.timers:
            if deadline_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = deadline_ms
        replies = outcome.replies
        if outcome.records and error is not ErrorCode.NONE:
            assert outcome.undo is not None
            replies = outcome.undo(error)
        else:
            self.log += outcome.records
            if outcome.commit is not None:
                outcome.commit()
            self.markers += outcome.markers
        assert len(replies) <= 1
        return replies[0].response if replies else None

    def fresh_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def ask_init(
        self,
        transactional_id: str | None = "tx",
        *,
        expected: Producer = NOBODY,
        version: int = 4,
        timeout_ms: int = 60_000,
    ) -> TransactionOutcome:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
        )
        handle = self.coordinator.handle_init_producer_id
        outcome = handle(request, version, "token", self.now_ms)
        if outcome.needs_producer_id:
            outcome = handle(request, version, "token", self.now_ms, self.fresh_id())
        return outcome

    def init(self, transactional_id: str | None = "tx", **options: Any) -> Any:
        return self.carry_out(self.ask_init(transactional_id, **options))

    def producer(self, transactional_id: str = "tx", **options: Any) -> Producer:
        """Initialise and return the producer that was granted."""
        response = self.init(transactional_id, **options)
        assert response.error_code == ErrorCode.NONE
        return Producer(response.producer_id, response.producer_epoch)

    def ask_add(
        self,
        producer: Producer,
        *partitions: TopicPartition,
        transactional_id: str = "tx",
        version: int = 3,
        verify_only: bool = False,
    ) -> TransactionOutcome:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=t, partitions=[p]) for t, p in partitions],
        )
        return self.coordinator.handle_add_partitions(transaction, version, "token", self.now_ms)

    def add(self, producer: Producer, *partitions: TopicPartition, **options: Any) -> list[int]:
        """Add partitions; return the error of each."""
        result = self.carry_out(self.ask_add(producer, *partitions, **options))
        return [
            p.partition_error_code for t in result.topic_results for p in t.results_by_partition
        ]

    def add_offsets(self, producer: Producer, partition: TopicPartition, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id="group",
        )
        outcome = self.coordinator.handle_add_offsets(
            request, version, partition, "token", self.now_ms
        )
        code: int = self.carry_out(outcome).error_code
        return code

    def ask_end(
        self,
        producer: Producer,
        *,
        committed: bool,
        version: int = 3,
        transactional_id: str = "tx",
    ) -> TransactionOutcome:
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        handle = self.coordinator.handle_end_txn
        outcome = handle(request, version, "token", self.now_ms)
        if outcome.needs_producer_id:
            outcome = handle(request, version, "token", self.now_ms, self.fresh_id())
        return outcome

    def end(self, producer: Producer, **options: Any) -> Any:
        return self.carry_out(self.ask_end(producer, **options))

    def report(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Report every marker that was asked for, and carry out what follows."""
        markers, self.markers = self.markers, []
        for marker in markers:
            errors = dict.fromkeys(marker.partitions, code)
            self.carry_out(self.coordinator.markers_written(marker, errors, self.now_ms))

    def state(self, transactional_id: str = "tx") -> Transaction:
        transaction = self.coordinator.get(transactional_id)
        assert transaction is not None
        return transaction


@pytest.fixture
def host() -> Host:
    return Host()
