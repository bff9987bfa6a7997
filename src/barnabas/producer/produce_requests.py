"""Produce requests to leaders, and what the responses mean for their batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.client.errors import NetworkError
from barnabas.client.metadata import BrokerAddress
from barnabas.config.clients.producer import ProducerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnsupportedCompressionTypeError
from barnabas.producer.accumulator import PendingBatch
from barnabas.producer.batch import Packing, ProducerBatch
from barnabas.producer.sender import Sender
from barnabas.records.compression import Codec
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_ZSTD_FROM = 7
_NAMES_UP_TO = 12  # from 13 on topics go by their ids
_ENLISTED_UP_TO = 11  # from 12 on Produce enlists partitions itself (KIP-890)


class ProduceRequests:
    """Turns drained batches into Produce requests."""

    def __init__(
        self,
        options: ProducerOptions,
        cluster_client: ClusterClient,
        sender: Sender,
        now_ms: Callable[[], float],
        answered: Callable[[], object],
    ) -> None:
        """`answered` is called after each response: the next request may be due."""
        self._client = cluster_client
        self._sender = sender
        self._now_ms = now_ms
        self._settled = answered
        self._packing = Packing.of(options)
        self._transactional_id = options.transactional_id
        self._acks = int(options.acks)
        self._timeout_ms = options.request_timeout_ms

    def submit(
        self, node_id: int, connection: Connection, batches: list[ProducerBatch], now_ms: float
    ) -> None:
        """Send a request with these batches; nothing is awaited."""
        highest = _NAMES_UP_TO if self._transactional_id is None else _ENLISTED_UP_TO
        try:
            version = connection.version_of(ProduceRequest, at_least=3, at_most=highest)
            if version < _ZSTD_FROM and self._packing.codec is Codec.ZSTD:
                raise UnsupportedCompressionTypeError(
                    f"{connection.address} has Produce v{version}; zstd needs v{_ZSTD_FROM}"
                )
        except BarnabasError as failure:
            for batch in batches:
                self._sender.lost(batch, failure, now_ms)
            return
        topics: dict[str, list[PartitionProduceData]] = {}
        counts = self._sender.counts
        for batch in batches:
            payload = self._packing.pack(batch)
            if batch.attempts == 1:
                counts.packed(batch, len(payload), now_ms)
            partition = batch.partition
            topics.setdefault(partition.topic, []).append(
                PartitionProduceData(index=partition.partition, records=payload)
            )
        counts.requests += 1
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[
                TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
            ],
        )
        if self._acks == 0:
            self._post(connection, request, version, batches)
        else:
            connection.submit(
                request, partial(self._answered, node_id, connection, batches), version=version
            )

    def _post(
        self,
        connection: Connection,
        request: ProduceRequest,
        version: int,
        batches: list[ProducerBatch],
    ) -> None:
        """Send a request with acks=0: written to the socket counts as done."""
        try:
            connection.post_now(request, version=version)
        except NetworkError as failure:
            for batch in batches:
                self._sender.lost(batch, failure, self._now_ms())
            return
        for batch in batches:
            self._sender.written(batch)
            batch.records.complete(-1)

    def _answered(
        self,
        node_id: int,
        connection: Connection,
        batches: list[ProducerBatch],
        response: ProduceResponse | None,
        failure: BarnabasError | None,
    ) -> None:
        now_ms = self._now_ms()
        written: list[tuple[PendingBatch, PartitionProduceResponse]] = []
        try:
            if response is None:
                assert failure is not None
                for batch in batches:
                    self._sender.lost(batch, failure, now_ms)
                self._client.request_refresh()
            else:
                self._sender.counts.answered(response.throttle_time_ms)
                self._settle(node_id, connection, batches, response, now_ms, written)
            self._settled()
        finally:
            # Last of all, when the next request has left: a caller that waits in another thread
            # wakes up now and wants the interpreter, which this one gives up as soon as it is idle.
            for records, answer in written:
                records.complete(
                    answer.base_offset, answer.log_append_time_ms, answer.log_start_offset
                )

    def _settle(
        self,
        node_id: int,
        connection: Connection,
        batches: list[ProducerBatch],
        response: ProduceResponse,
        now_ms: float,
        written: list[tuple[PendingBatch, PartitionProduceResponse]],
    ) -> None:
        """Handle a response for each batch; those to complete are added to `written`."""
        sender = self._sender
        broker = f" on broker {node_id} ({connection.address})"
        waiting = {batch.partition: batch for batch in batches}
        for topic in response.responses:
            for answer in topic.partition_responses:
                asked = waiting.pop(TopicPartition(topic.name, answer.index), None)
                if asked is None:
                    continue
                if answer.error_code == ErrorCode.NONE:
                    sender.written(asked)
                    written.append((asked.records, answer))
                    continue
                code = sender.settle(asked, answer, now_ms, broker)
                if code.stale_metadata and not self._learned_leader(asked, answer, response):
                    self._client.request_refresh()
        missing = PartitionProduceResponse(
            error_code=ErrorCode.UNKNOWN_SERVER_ERROR,
            error_message="missing in the broker's response",
        )
        for batch in waiting.values():
            sender.settle(batch, missing, now_ms, broker)

    def _learned_leader(self, batch: ProducerBatch, answer: Any, response: ProduceResponse) -> bool:
        """Use the new leader in the response (KIP-951), which saves the back-off."""
        leader = answer.current_leader
        if leader is None:
            return False
        address = next(
            (
                BrokerAddress(node.node_id, node.host, node.port, node.rack)
                for node in response.node_endpoints
                if node.node_id == leader.leader_id
            ),
            None,
        )
        changed = self._client.cluster.update_leader(
            batch.partition, leader.leader_id, leader.leader_epoch, address
        )
        if changed:
            batch.not_before_ms = 0.0
        return changed
