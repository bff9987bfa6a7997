"""Transactions in the shapes of kafka-python, against a scripted broker."""

from __future__ import annotations

import time
from typing import Any

from tests.unit.admin.scripted import converse, in_turn

from barnabas.admin.transaction_words import (
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from barnabas.blocking.admin import transactions
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages import describe_transactions as description
from barnabas.wire.messages import list_transactions as listing

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def state(name: str, word: str, start_ms: int) -> description.TransactionState:
    return description.TransactionState(
        transactional_id=name,
        transaction_state=word,
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=start_ms,
        producer_id=7,
        producer_epoch=3,
        topics=[description.TopicData(topic="t", partitions=[1, 0])],
    )


def test_transactions_of_each_broker() -> None:
    found = [
        listing.TransactionState(transactional_id="a", producer_id=7, transaction_state="Ongoing"),
        listing.TransactionState(transactional_id="b", producer_id=8, transaction_state="Later"),
    ]
    answer = listing.ListTransactionsResponse(transaction_states=found)
    listed, broker = converse(
        {listing.ListTransactionsRequest: in_turn(answer)},
        lambda client: transactions.list_transactions(client, state_filters=["Ongoing"]),
    )
    assert listed == {
        1: [
            TransactionListing("a", 7, TransactionState.ONGOING),
            TransactionListing("b", 8, TransactionState.UNKNOWN),
        ]
    }
    [asked] = broker.asked(listing.ListTransactionsRequest)
    sent: Any = asked.message
    assert sent.state_filters == ["Ongoing"]


def test_a_transaction_without_a_start_has_minus_one() -> None:
    answer = description.DescribeTransactionsResponse(transaction_states=[state("a", "Empty", -1)])
    found, _ = converse(
        {description.DescribeTransactionsRequest: in_turn(answer)},
        lambda client: transactions.describe_transactions(client, ["a"]),
    )
    assert found == {
        "a": TransactionDescription(1, TransactionState.EMPTY, 7, 3, 60_000, -1, {T0, T1})
    }


def test_only_open_transactions_that_are_old_hang() -> None:
    now_ms = time.time_ns() // 1_000_000
    old_ms = now_ms - 900_000 - transactions.GRACE_MS - 1
    states = [
        state("hanging", "Ongoing", old_ms),
        state("young", "Ongoing", now_ms),
        state("ended", "CompleteAbort", old_ms),
        state("never begun", "Ongoing", -1),
    ]
    listed = [
        listing.TransactionState(
            transactional_id=each.transactional_id,
            producer_id=7,
            transaction_state=each.transaction_state,
        )
        for each in states
    ]
    script = {
        listing.ListTransactionsRequest: in_turn(
            listing.ListTransactionsResponse(transaction_states=listed)
        ),
        description.DescribeTransactionsRequest: in_turn(
            description.DescribeTransactionsResponse(transaction_states=states)
        ),
    }
    [hanging], _ = converse(script, transactions.find_hanging_transactions)
    assert hanging["transactional_id"] == "hanging"
    assert (hanging["producer_id"], hanging["producer_epoch"]) == (7, 3)
    assert (hanging["state"], hanging["coordinator_id"]) == ("Ongoing", 1)
    assert hanging["topic_partitions"] == [T0, T1]
    assert hanging["age_ms"] > 900_000 + transactions.GRACE_MS
