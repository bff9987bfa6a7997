"""Transactions, as `KafkaAdminClient` lists, describes and aborts them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from barnabas.admin import producers
from barnabas.admin import transactions as calls
from barnabas.admin.group_words import word
from barnabas.admin.numbered import member_of
from barnabas.admin.settling import settled_or_raise
from barnabas.admin.transaction_words import (
    AbortTransactionSpec,
    PartitionProducerState,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from barnabas.admin.transactions import OpenTransaction
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.ids import TopicPartition

GRACE_MS = 5 * 60 * 1000
"""Added to the maximum transaction timeout, before a transaction counts as hanging."""

ENDED = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.DEAD,
)


async def list_transactions(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    producer_id_filters: Iterable[int] | None = None,
    state_filters: Iterable[TransactionState | str] | None = None,
    duration_filter_ms: int | None = None,
    transactional_id_pattern: str | None = None,
) -> dict[int, list[TransactionListing]]:
    """Return the transactional ids that each broker coordinates.

    admin.list_transactions(state_filters=["Ongoing"])
    """
    listed = await calls.list_transactions_of(
        client,
        broker_ids,
        states=[word(TransactionState, state) for state in state_filters or ()],
        producer_ids=producer_id_filters or (),
        running_ms_min=duration_filter_ms,
        pattern=transactional_id_pattern,
    )
    return {
        broker_id: [
            TransactionListing(
                each.transactional_id, each.producer_id, member_of(TransactionState, each.state)
            )
            for each in found
        ]
        for broker_id, found in settled_or_raise(listed).items()
    }


async def describe_transactions(
    client: ClusterClient, transactional_ids: Iterable[str]
) -> dict[str, TransactionDescription]:
    """Describe transactional ids; raises if one of them is unknown.

    admin.describe_transactions(["payments-1"])["payments-1"].state
    """
    described = await calls.describe_transactions(client, transactional_ids)
    return {
        name: TransactionDescription(
            each.coordinator_id,
            member_of(TransactionState, each.state),
            each.producer_id,
            each.producer_epoch,
            each.timeout_ms,
            -1 if each.start_ms is None else each.start_ms,
            set(each.partitions),
        )
        for name, each in settled_or_raise(described).items()
    }


async def describe_producers(
    client: ClusterClient, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> dict[TopicPartition, PartitionProducerState]:
    """Return the producers known to partitions, at their leaders or at one broker.

    admin.describe_producers([TopicPartition("orders", 0)])
    """
    described = await producers.describe_producers(client, partitions, broker_id=broker_id)
    return {
        partition: PartitionProducerState(
            [
                ProducerState(
                    each.producer_id,
                    each.producer_epoch,
                    each.last_sequence,
                    each.last_timestamp_ms,
                    each.coordinator_epoch,
                    -1 if each.transaction_start_offset is None else each.transaction_start_offset,
                )
                for each in found
            ]
        )
        for partition, found in described.items()
    }


async def abort_transaction(client: ClusterClient, spec: AbortTransactionSpec) -> None:
    """Write an abort marker to a partition with a hanging transaction.

    admin.abort_transaction(AbortTransactionSpec(TopicPartition("orders", 0), 4711, 3))
    """
    await calls.abort_transaction(
        client,
        OpenTransaction(
            spec.topic_partition,
            spec.producer_id,
            spec.producer_epoch,
            spec.coordinator_epoch,
            start_offset=-1,
            last_timestamp_ms=-1,
        ),
    )


async def find_hanging_transactions(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    max_transaction_timeout_ms: int = 900_000,
) -> list[dict[str, Any]]:
    """Return the open transactions that exceed the brokers' maximum timeout by five minutes.

    for hanging in admin.find_hanging_transactions(): ...
    """
    listed = await list_transactions(client, broker_ids)
    names = sorted({each.transactional_id for found in listed.values() for each in found})
    now_ms = time.time_ns() // 1_000_000
    hanging = []
    for name, each in (await describe_transactions(client, names)).items():
        age_ms = now_ms - each.transaction_start_time_ms
        if each.state in ENDED or each.transaction_start_time_ms < 0:
            continue
        if age_ms >= max_transaction_timeout_ms + GRACE_MS:
            hanging.append(
                {
                    "transactional_id": name,
                    "producer_id": each.producer_id,
                    "producer_epoch": each.producer_epoch,
                    "state": each.state.value,
                    "age_ms": age_ms,
                    "coordinator_id": each.coordinator_id,
                    "topic_partitions": sorted(each.topic_partitions),
                }
            )
    return hanging
