"""What administrators see: committed states, filters, and why something is not shown."""

from typing import Any

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.model.ids import TopicPartition
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.listing import describe, list_of, undescribed
from barnabas.transactions.records import encode_record
from barnabas.transactions.transaction import Transaction
from barnabas.wire.codec import encode
from barnabas.wire.messages.describe_transactions import DescribeTransactionsResponse
from barnabas.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

PARTITIONS = frozenset(TopicPartition(t, p) for t, p in (("b", 0), ("a", 3), ("a", 1)))
EMPTY = Transaction(1, 0, 60_000, 100)
OPEN = Transaction(2, 5, 30_000, 100).with_partitions(PARTITIONS, 1_000)
DECIDED = Transaction(3, 0, 60_000, 100).with_partitions(PARTITIONS, 2_000)
COMPLETE = DECIDED.ended(committed=False, now_ms=3_000).completed(3_100)


def loaded(**transactions: Transaction) -> TransactionCoordinator:
    coordinator = TransactionCoordinator(BrokerOptions.parse({}), 7)
    for name, transaction in transactions.items():
        coordinator.replay(encode_record(name, transaction))
    coordinator.loaded(5_000)
    return coordinator


@pytest.fixture
def coordinators() -> list[TransactionCoordinator]:
    decided = DECIDED.ended(committed=True, now_ms=3_000)
    return [loaded(empty=EMPTY, open=OPEN), loaded(decided=decided, complete=COMPLETE)]


def names(coordinators: list[TransactionCoordinator], **filters: Any) -> list[str]:
    request = ListTransactionsRequest(**filters)
    return [s.transactional_id for s in list_of(coordinators, request, 5_000).transaction_states]


def test_without_filters_everything_is_listed(coordinators: list[TransactionCoordinator]) -> None:
    response = list_of(coordinators, ListTransactionsRequest(), 5_000)
    listed = [
        (s.transactional_id, s.producer_id, s.transaction_state)
        for s in response.transaction_states
    ]
    assert listed == [
        ("empty", 1, "Empty"),
        ("open", 2, "Ongoing"),
        ("decided", 3, "PrepareCommit"),
        ("complete", 3, "CompleteAbort"),
    ]


def test_filters_by_state_producer_duration_and_name(
    coordinators: list[TransactionCoordinator],
) -> None:
    assert names(coordinators, state_filters=["Ongoing", "Empty"]) == ["empty", "open"]
    assert names(coordinators, producer_id_filters=[3]) == ["decided", "complete"]
    both = names(coordinators, producer_id_filters=[3], state_filters=["PrepareCommit"])
    assert both == ["decided"]
    # Open since 1000 and 2000; at 5000 that is 4000 and 3000, and idle ids have no duration.
    assert names(coordinators, duration_filter=0) == ["open", "decided"]
    assert names(coordinators, duration_filter=3_000) == ["open"]
    assert names(coordinators, transactional_id_pattern="[oe].*") == ["empty", "open"]
    assert names(coordinators, transactional_id_pattern="ope") == []
    assert len(names(coordinators, transactional_id_pattern="")) == 4


def test_unknown_states_are_named_and_match_nothing(
    coordinators: list[TransactionCoordinator],
) -> None:
    request = ListTransactionsRequest(state_filters=["Sleeping", "ongoing"])
    response = list_of(coordinators, request, 5_000)
    assert response.unknown_state_filters == ["Sleeping", "ongoing"]
    assert response.transaction_states == []


def test_a_broken_pattern_is_refused(coordinators: list[TransactionCoordinator]) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    assert list_of(coordinators, request, 5_000).error_code == 128


def test_nothing_is_listed_while_a_coordinator_loads(
    coordinators: list[TransactionCoordinator],
) -> None:
    loading = TransactionCoordinator(BrokerOptions.parse({}), 7)
    response = list_of([*coordinators, loading], ListTransactionsRequest(), 5_000)
    assert (response.error_code, response.transaction_states) == (14, [])


def test_a_transaction_is_described_with_its_partitions_in_order() -> None:
    shown = describe(loaded(open=OPEN), "open")
    assert (shown.error_code, shown.transactional_id) == (0, "open")
    assert (shown.transaction_state, shown.transaction_timeout_ms) == ("Ongoing", 30_000)
    assert (shown.producer_id, shown.producer_epoch) == (2, 5)
    assert shown.transaction_start_time_ms == 1_000
    assert [(t.topic, t.partitions) for t in shown.topics] == [("a", [1, 3]), ("b", [0])]


def test_what_is_not_known_or_not_ours_is_not_described() -> None:
    coordinator = loaded()
    assert describe(coordinator, "nobody") == undescribed("nobody", 105)  # type: ignore[arg-type]
    assert describe(coordinator, "").error_code == 42
    coordinator.unload()
    assert describe(coordinator, "nobody").error_code == 16
    assert describe(TransactionCoordinator(BrokerOptions.parse({}), 1), "x").error_code == 14


def test_answers_can_be_sent_in_every_version(coordinators: list[TransactionCoordinator]) -> None:
    listing = list_of(coordinators, ListTransactionsRequest(), 5_000)
    for version in range(ListTransactionsResponse.VERSIONS.last + 1):
        assert encode(listing, version)
    shown = [describe(coordinators[0], name) for name in ("open", "nobody")]
    response = DescribeTransactionsResponse(transaction_states=shown)
    for version in range(DescribeTransactionsResponse.VERSIONS.last + 1):
        assert encode(response, version)
