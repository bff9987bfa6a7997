"""Producer states of partitions, and fencing producers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.coordinators import Kind, ask_coordinators
from barnabas.admin.failures import coded, failure
from barnabas.admin.leaders import ask_leaders, by_topic, failure_of
from barnabas.admin.settling import settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCING_TIMEOUT_MS = 1
"""The timeout of a transaction that is begun only to end an older producer's."""


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer known to a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class FencedProducer:
    """The producer id and epoch that fence all earlier producers of a transactional id."""

    producer_id: int
    producer_epoch: int


async def describe_producers(
    client: ClusterClient,
    partitions: Iterable[TopicPartition],
    *,
    broker_id: int | None = None,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, list[ActiveProducer]]:
    """Return the producers known to the leader of each partition (or to a broker)."""

    async def ask(
        leader: int, group: list[TopicPartition]
    ) -> Mapping[TopicPartition, list[ActiveProducer] | RequestError]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(group).items()
            ]
        )
        response: DescribeProducersResponse = await client.send(request, leader)
        outcomes: dict[TopicPartition, list[ActiveProducer] | RequestError] = {}
        for topic in response.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                if result.error_code:
                    outcomes[partition] = failure_of(
                        partition, result.error_code, result.error_message
                    )
                    continue
                outcomes[partition] = [
                    ActiveProducer(
                        state.producer_id,
                        state.producer_epoch,
                        state.last_sequence,
                        state.last_timestamp,
                        state.coordinator_epoch,
                        state.current_txn_start_offset
                        if state.current_txn_start_offset >= 0
                        else None,
                    )
                    for state in result.active_producers
                ]
        return outcomes

    if broker_id is not None:
        # The caller chose the replica, so its response is final.
        return settled_or_raise(await ask(broker_id, list(partitions)))
    return settled_or_raise(await ask_leaders(client, partitions, ask, timeout_ms=timeout_ms))


async def fence_producers(
    client: ClusterClient, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
) -> dict[str, FencedProducer | RequestError]:
    """Abort the open transactions of transactional ids and fence their producers.

    await fence_producers(client, ["payments-1"])
    """

    async def fence(connection: Connection, transactional_id: str) -> FencedProducer | RequestError:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS
        )
        try:
            response: InitProducerIdResponse = await connection.send(request)
        except BarnabasError as broken:
            return coded(broken)
        if response.error_code:
            return failure(response.error_code, transactional_id)
        return FencedProducer(response.producer_id, response.producer_epoch)

    async def ask(
        node_id: int, connection: Connection, keys: list[str]
    ) -> dict[str, FencedProducer | RequestError]:
        return {key: await fence(connection, key) for key in keys}

    return await ask_coordinators(
        client, transactional_ids, Kind.TRANSACTION, ask, timeout_ms=timeout_ms
    )
