"""Transactions: list and describe them, and abort those that nobody ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.admin.cluster import describe_producers
from barnabas.admin.coordinators import Kind, at_coordinator, check, find_coordinator
from barnabas.client.connection import Connection
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
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


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id in one line."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id, and what its transaction has written to."""

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
    start_offset: int
    last_timestamp_ms: int


async def list_transactions(
    board: Switchboard, states: Iterable[str] = (), producer_ids: Iterable[int] = ()
) -> list[ListedTransaction]:
    """Return the transactional ids of all brokers, in the order of their names."""
    wanted_states, wanted_ids = list(states), list(producer_ids)

    async def ask(broker_id: int) -> list[ListedTransaction]:
        request = ListTransactionsRequest(
            state_filters=wanted_states, producer_id_filters=wanted_ids
        )
        response: ListTransactionsResponse = await board.send(request, broker_id)
        check(response.error_code, f"transactions of broker {broker_id}")
        if response.unknown_state_filters:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"no transaction can be {', '.join(response.unknown_state_filters)}",
            )
        return [
            ListedTransaction(
                each.transactional_id, each.producer_id, each.transaction_state, broker_id
            )
            for each in response.transaction_states
        ]

    async def attempt() -> list[list[ListedTransaction]]:
        return await asyncio.gather(*(ask(broker_id) for broker_id in board.cluster.brokers))

    return sorted(
        (each for listed in await board.retrying(attempt) for each in listed),
        key=lambda each: each.transactional_id,
    )


async def describe_transaction(board: Switchboard, transactional_id: str) -> TransactionDescription:
    """Describe a transactional id; raises TRANSACTIONAL_ID_NOT_FOUND."""
    coordinator_id = await board.retrying(
        lambda: find_coordinator(board, transactional_id, Kind.TRANSACTION)
    )

    async def ask(connection: Connection) -> TransactionDescription:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        response: DescribeTransactionsResponse = await connection.send(request)
        (state,) = response.transaction_states
        check(state.error_code, transactional_id)
        return TransactionDescription(
            transactional_id,
            coordinator_id,
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

    return await at_coordinator(board, transactional_id, Kind.TRANSACTION, ask)


async def open_transactions(
    board: Switchboard, partitions: Iterable[TopicPartition]
) -> list[OpenTransaction]:
    """Return the transactions that are open on partitions, by the word of their leaders."""
    return [
        OpenTransaction(
            partition,
            producer.producer_id,
            producer.producer_epoch,
            max(producer.coordinator_epoch, 0),
            producer.transaction_start_offset,
            producer.last_timestamp_ms,
        )
        for partition, producers in (await describe_producers(board, partitions)).items()
        for producer in producers
        if producer.transaction_start_offset is not None
    ]


async def abort_transaction(board: Switchboard, opened: OpenTransaction) -> None:
    """Write an abort marker to a partition, whatever the transaction's coordinator thinks."""
    topic = WritableTxnMarkerTopic(
        name=opened.partition.topic, partition_indexes=[opened.partition.partition]
    )
    marker = WritableTxnMarker(
        producer_id=opened.producer_id,
        producer_epoch=opened.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=opened.coordinator_epoch,
    )

    async def attempt() -> None:
        request = WriteTxnMarkersRequest(markers=[marker])
        response: WriteTxnMarkersResponse = await board.send(request, opened.partition)
        result = response.markers[0].topics[0].partitions[0]
        check(result.error_code, f"abort on {opened.partition}")

    await board.retrying(attempt, topics=[opened.partition.topic])
