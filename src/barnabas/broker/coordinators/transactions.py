"""The transaction coordinators of this broker, one per partition of `__transaction_state`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.host import CoordinatorHost, Shard
from barnabas.broker.coordinators.marker_sender import MarkerSender
from barnabas.broker.coordinators.marker_writer import Ending
from barnabas.metadata.partition_for import partition_for
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.catalogue import transactions as catalogue
from barnabas.metrics.instruments import Counter
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Outcome, Reply, StateRecord
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.outcome import MarkerRequest, TransactionOutcome
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.broker.network.request import Request

TRANSACTIONS_TOPIC = "__transaction_state"
FIRST_ABORTABLE_VERSION = 5
"""From this version of AddPartitionsToTxn on, TRANSACTION_ABORTABLE is understood."""


class TransactionHost(CoordinatorHost[TransactionCoordinator]):
    """Hosts the transactions, has their markers written, and ends those that take too long."""

    def __init__(self, collaborators: Collaborators, markers: MarkerSender) -> None:
        options = collaborators.options
        timed_out = collaborators.metrics.counter(catalogue.TIMED_OUT)
        self._verification_times = collaborators.metrics.histogram(catalogue.VERIFICATION_TIME)
        self.verification_failures = Counter()
        """Partitions that no coordinator could verify."""
        super().__init__(
            collaborators,
            TRANSACTIONS_TOPIC,
            lambda partition: TransactionCoordinator(options(), partition.leader_epoch, timed_out),
            options().transaction_state_log_load_buffer_size,
            logger=logging.getLogger("barnabas.transactions"),
        )
        self._allows = collaborators.allows
        self._ask = collaborators.ask
        self.markers = markers

    def authorize(self, request: Request[Any], transactional_id: str, operation: Operation) -> None:
        """Raise unless the caller may do this to a transactional id."""
        if not self._allows(
            request.session, operation, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            raise RequestError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def finish(self, shard: Shard[TransactionCoordinator], outcome: Outcome) -> None:
        """Apply a committed step, send its replies, and have markers written."""
        assert isinstance(outcome, TransactionOutcome)
        if outcome.commit is not None:
            outcome.commit()
        super().finish(shard, outcome)
        for marker in outcome.markers:
            ending = Ending(
                marker.producer_id,
                marker.producer_epoch,
                marker.committed,
                marker.coordinator_epoch,
            )
            done = partial(self._markers_written, shard, marker)
            self.markers.write(ending, marker.partitions, done)

    def coordinator_of(self, transactional_id: str) -> int:
        """Return the broker that coordinates a transactional id, -1 if there is none now."""
        topic = self._cluster.topic(self.topic)
        if topic is None:
            return -1
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        """Return whether a partition takes part in a producer's open transaction."""
        code = self._verify(transactional_id, producer_id, epoch, partition)
        if code is not ErrorCode.NONE:
            self.verification_failures.add()
        return code

    def _verify(
        self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        try:
            shard = self.shard(transactional_id)
        except RequestError as refusal:
            return _verdict(refusal.code)
        topic = AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.partition])
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=True,
            topics=[topic],
        )
        outcome = shard.machine.handle_add_partitions(
            asked, FIRST_ABORTABLE_VERSION, None, self._now_ms()
        )
        result: AddPartitionsToTxnResult = outcome.replies[0].response
        return _verdict(result.topic_results[0].results_by_partition[0].partition_error_code)

    async def verify_remotely(
        self,
        transactional_id: str,
        producers: Mapping[TopicPartition, tuple[int, int]],
    ) -> dict[TopicPartition, ErrorCode]:
        """Ask another broker whether partitions take part in a producer's open transaction."""
        if not producers:
            return {}
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for key in producers:
            topic = topics.setdefault(key.topic, AddPartitionsToTxnTopic(name=key.topic))
            topic.partitions.append(key.partition)
        producer_id, epoch = next(iter(producers.values()))
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    verify_only=True,
                    topics=list(topics.values()),
                )
            ]
        )
        verdicts = dict.fromkeys(producers, ErrorCode.NOT_ENOUGH_REPLICAS)  # retriable
        began_ms = self._timer.now_ms()
        try:
            response: AddPartitionsToTxnResponse = await self._ask(
                self.coordinator_of(transactional_id),
                request,
                self._options().request_timeout_ms,
            )
        except BarnabasError:
            self.verification_failures.add(len(verdicts))
            return verdicts
        self._verification_times.record((self._timer.now_ms() - began_ms) * 1000)
        for transaction in response.results_by_transaction:
            for answered in transaction.topic_results:
                for each in answered.results_by_partition:
                    key = TopicPartition(answered.name, each.partition_index)
                    verdicts[key] = _verdict(each.partition_error_code)
        failed = sum(code is not ErrorCode.NONE for code in verdicts.values())
        self.verification_failures.add(failed)
        return verdicts

    def abort_timed_out(self) -> None:
        """Abort transactions that were open for longer than their producers allowed."""
        for shard in list(self.loaded_shards()):
            for outcome in shard.machine.abort_timed_out(self._now_ms()):
                self.apply(shard, outcome)

    def expire(self) -> None:
        """Delete transactional ids that have expired."""
        for shard in list(self.loaded_shards()):
            for outcome in shard.machine.expire(self._now_ms()):
                self.apply(shard, outcome)

    def _markers_written(
        self,
        shard: Shard[TransactionCoordinator],
        marker: MarkerRequest,
        errors: dict[TopicPartition, ErrorCode],
    ) -> None:
        for key, code in errors.items():
            if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                errors[key] = ErrorCode.NONE  # the topic was deleted, and its records with it
        outcome = shard.machine.markers_written(marker, errors, self._now_ms())
        self.apply(shard, outcome)

    def _internal_topic(self) -> NewTopic:
        options = self._options()
        live = len(self._cluster.brokers)
        return NewTopic(
            TRANSACTIONS_TOPIC,
            options.transaction_state_log_num_partitions,
            options.transaction_state_log_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(options.transaction_state_log_segment_bytes),
                "min.insync.replicas": str(min(options.transaction_state_log_min_isr, live)),
                "unclean.leader.election.enable": "false",
            },
        )

    def _replay_marker(
        self, machine: TransactionCoordinator, producer_id: int, committed: bool
    ) -> None:
        """Nothing in this topic is written in a transaction."""

    def _replay(
        self, machine: TransactionCoordinator, record: StateRecord, producer_id: int | None
    ) -> None:
        machine.replay(record)

    def _loaded(self, machine: TransactionCoordinator, now_ms: int) -> list[Outcome]:
        return list(machine.loaded(now_ms))

    def _unloaded(self, machine: TransactionCoordinator) -> list[Reply]:
        return machine.unload().replies


def _verdict(code: int) -> ErrorCode:
    """Translate a coordinator's error code to that of a partition's leader."""
    if code == ErrorCode.PRODUCER_FENCED:
        # The only code for an old epoch that producers expect from a partition's leader.
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        return ErrorCode.NOT_ENOUGH_REPLICAS  # every producer retries on this code
    return ErrorCode.of(code)
