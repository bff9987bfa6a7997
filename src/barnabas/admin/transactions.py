"""Transactions: list and describe them, and abort hanging ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.admin.brokers import ask_brokers
from barnabas.admin.coordinators import Kind, ask_coordinators
from barnabas.admin.failures import check, failure
from barnabas.admin.producers import describe_producers
from barnabas.admin.settling import settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import InvalidRequestError
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

FIRST_VERSION_WITH_DURATION = 1
FIRST_VERSION_WITH_PATTERN = 2
"""Of ListTransactions."""


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """Summary of a transactional id."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transactional id, and the partitions of its transaction."""

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction as the leader of one partition sees it, which is all that a marker needs."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """-1 if no transaction of the producer has ended on the partition."""
    start_offset: int
    last_timestamp_ms: int


async def list_transactions(
    client: ClusterClient,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    *,
    timeout_ms: float | None = None,
) -> list[ListedTransaction]:
    """Return the transactional ids of all brokers, sorted by name."""
    listed = await list_transactions_of(
        client, None, states=states, producer_ids=producer_ids, timeout_ms=timeout_ms
    )
    return sorted(
        (each for found in settled_or_raise(listed).values() for each in found),
        key=lambda each: each.transactional_id,
    )


async def list_transactions_of(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    running_ms_min: int | None = None,
    pattern: str | None = None,
    timeout_ms: float | None = None,
) -> dict[int, list[ListedTransaction] | RequestError]:
    """Return the transactional ids that each broker coordinates, or its failure.

    `running_ms_min` leaves out those that have run for less (3.8 and later), `pattern` those
    whose names do not match a regular expression (4.1 and later).
    """
    wanted_states, wanted_ids = list(states), list(producer_ids)
    least = 0 if running_ms_min is None else FIRST_VERSION_WITH_DURATION
    least = least if pattern is None else FIRST_VERSION_WITH_PATTERN

    async def ask(broker_id: int, connection: Connection) -> list[ListedTransaction]:
        version = connection.version_of(ListTransactionsRequest, at_least=least)
        request = ListTransactionsRequest(
            state_filters=wanted_states,
            producer_id_filters=wanted_ids,
            duration_filter=-1 if running_ms_min is None else running_ms_min,
            transactional_id_pattern=pattern,
        )
        response: ListTransactionsResponse = await connection.send(request, version=version)
        check(response.error_code, f"transactions of broker {broker_id}")
        if response.unknown_state_filters:
            unknown = ", ".join(response.unknown_state_filters)
            raise InvalidRequestError(
                f"broker {broker_id} does not know the transaction state {unknown}"
            )
        return [
            ListedTransaction(
                each.transactional_id, each.producer_id, each.transaction_state, broker_id
            )
            for each in response.transaction_states
        ]

    return await ask_brokers(client, broker_ids, ask, timeout_ms=timeout_ms)


async def describe_transaction(
    client: ClusterClient, transactional_id: str
) -> DescribedTransaction:
    """Describe a transactional id; raises TRANSACTIONAL_ID_NOT_FOUND."""
    described = await describe_transactions(client, [transactional_id])
    return settled_or_raise(described)[transactional_id]


async def describe_transactions(
    client: ClusterClient, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
) -> dict[str, DescribedTransaction | RequestError]:
    """Describe transactional ids; each has a result or its failure."""

    async def ask(
        node_id: int, connection: Connection, keys: list[str]
    ) -> dict[str, DescribedTransaction | RequestError]:
        request = DescribeTransactionsRequest(transactional_ids=keys)
        response: DescribeTransactionsResponse = await connection.send(request)
        return {
            state.transactional_id: failure(state.error_code, state.transactional_id)
            if state.error_code
            else DescribedTransaction(
                state.transactional_id,
                node_id,
                state.transaction_state,
                state.producer_id,
                state.producer_epoch,
                state.transaction_timeout_ms,
                state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
                tuple(
                    TopicPartition(topic.topic, number)
                    for topic in state.topics
                    for number in topic.partitions
                ),
            )
            for state in response.transaction_states
        }

    return await ask_coordinators(
        client, transactional_ids, Kind.TRANSACTION, ask, timeout_ms=timeout_ms
    )


async def open_transactions(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> list[OpenTransaction]:
    """Return the transactions that are open on partitions, according to their leaders."""
    return [
        OpenTransaction(
            partition,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.transaction_start_offset,
            producer.last_timestamp_ms,
        )
        for partition, producers in (await describe_producers(client, partitions)).items()
        for producer in producers
        if producer.transaction_start_offset is not None
    ]


async def abort_transaction(client: ClusterClient, opened: OpenTransaction) -> None:
    """Write an abort marker to a partition, regardless of the transaction's coordinator."""
    topic = WritableTxnMarkerTopic(
        name=opened.partition.topic, partition_indexes=[opened.partition.partition]
    )
    marker = WritableTxnMarker(
        producer_id=opened.producer_id,
        producer_epoch=opened.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=max(opened.coordinator_epoch, 0),
    )

    async def attempt() -> None:
        request = WriteTxnMarkersRequest(markers=[marker])
        response: WriteTxnMarkersResponse = await client.send(request, opened.partition)
        result = response.markers[0].topics[0].partitions[0]
        check(result.error_code, f"abort on {opened.partition}")

    await client.retrying(attempt, topics=[opened.partition.topic])
