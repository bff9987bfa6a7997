"""Transactions on a broker: fencing, verification, timeouts, and what a restart must finish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.coordinated import COORDINATED, TRANSACTION, fetch_offsets, find
from tests.unit.broker.serving import Serving, Wire, batch_of, create_topic, fetch, wait_for

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

Producer = tuple[int, int]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("transactions"), COORDINATED) as running:
        with running.connect() as wire:
            create_topic(wire, "t", 2)
            find(wire, "any")
            find(wire, "any", TRANSACTION)
        yield running


@pytest.fixture
def txn_id(new_name: Any) -> str:
    """A transactional id of the test's own."""
    return f"id-of-{new_name()}"


def init(wire: Wire, txn_id: str, timeout_ms: int = 60_000) -> Producer:
    """Take an id over, waiting for the end of a transaction that another one left open."""
    found: list[Producer] = []

    def attempt() -> bool:
        request = InitProducerIdRequest(transactional_id=txn_id, transaction_timeout_ms=timeout_ms)
        answer = wire.ask(request, 4)
        if answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            return False
        assert answer.error_code == 0, answer
        found.append((answer.producer_id, answer.producer_epoch))
        return True

    wait_for(attempt, f"{txn_id} is free")
    return found[0]


def enlist(
    wire: Wire, txn_id: str, producer: Producer, topic: str, *partitions: int, version: int = 3
) -> list[int]:
    """Add partitions to a transaction; return the error codes."""
    wanted = AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=txn_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[wanted],
    )
    answer = wire.ask(request, version)
    return [
        each.partition_error_code
        for result in answer.results_by_topic_v3_and_below
        for each in result.results_by_partition
    ]


def produce(
    wire: Wire, txn_id: str | None, producer: Producer, topic: str, value: str, sequence: int = 0
) -> int:
    """Append one record to partition 0; return the error code."""
    records = batch_of(
        [value],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=txn_id is not None,
    )
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        transactional_id=txn_id,
        acks=-1,
        timeout_ms=60_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    code: int = wire.ask(request, 9).responses[0].partition_responses[0].error_code
    return code


def end(
    wire: Wire, txn_id: str, producer: Producer, *, committed: bool = True, version: int = 3
) -> int:
    request = EndTxnRequest(
        transactional_id=txn_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=committed,
    )
    code: int = wire.ask(request, version).error_code
    return code


def state(wire: Wire, txn_id: str) -> Any:
    answer = wire.ask(DescribeTransactionsRequest(transactional_ids=[txn_id]), 0)
    return answer.transaction_states[0]


def wait_for_state(wire: Wire, txn_id: str, wanted: str) -> None:
    wait_for(lambda: state(wire, txn_id).transaction_state == wanted, f"{txn_id} is {wanted}")


def stable_offset(wire: Wire, topic: str) -> int:
    return fetch(wire, topic, 0, isolation_level=1).last_stable_offset


def test_the_life_of_a_transaction(wire: Wire, txn_id: str, topic: str) -> None:
    producer = init(wire, txn_id)
    assert state(wire, txn_id).transaction_state == "Empty"
    assert enlist(wire, txn_id, producer, topic, 0) == [0]
    assert produce(wire, txn_id, producer, topic, "one") == 0
    described = state(wire, txn_id)
    assert described.transaction_state == "Ongoing"
    assert [(each.topic, each.partitions) for each in described.topics] == [(topic, [0])]
    assert stable_offset(wire, topic) == 0
    assert end(wire, txn_id, producer) == 0
    wait_for_state(wire, txn_id, "CompleteCommit")
    assert stable_offset(wire, topic) == 2
    assert end(wire, txn_id, producer) == 0  # a retry is told the same again
    assert end(wire, txn_id, producer, committed=False) == ErrorCode.INVALID_TXN_STATE
    listed = wire.ask(ListTransactionsRequest(state_filters=["CompleteCommit"]), 0)
    assert txn_id in [each.transactional_id for each in listed.transaction_states]


def test_fencing(wire: Wire, txn_id: str, topic: str) -> None:
    """Whoever took the id last may write; all others are told so, in the words they know."""
    old = init(wire, txn_id)
    assert enlist(wire, txn_id, old, topic, 0) == [0]
    assert produce(wire, txn_id, old, topic, "of the old one") == 0
    new = init(wire, txn_id)
    assert new[0] == old[0]
    assert new[1] > old[1]
    fenced, invalid = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
    assert enlist(wire, txn_id, old, topic, 0) == [fenced]
    assert enlist(wire, txn_id, old, topic, 0, version=1) == [invalid]
    assert end(wire, txn_id, old) == fenced
    assert end(wire, txn_id, old, version=1) == invalid
    assert produce(wire, txn_id, old, topic, "late", 1) == invalid
    stranger = (new[0] + 1, 0)
    assert end(wire, txn_id, stranger) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    unknown = end(wire, "never-was", new)
    assert unknown == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_produce_without_a_registered_partition(wire: Wire, txn_id: str, topic: str) -> None:
    producer = init(wire, txn_id)
    assert produce(wire, txn_id, producer, topic, "not added") == ErrorCode.INVALID_TXN_STATE
    assert enlist(wire, txn_id, producer, "t", 0) == [0]
    assert produce(wire, txn_id, producer, topic, "still not") == ErrorCode.INVALID_TXN_STATE
    assert enlist(wire, txn_id, producer, topic, 0) == [0]
    assert produce(wire, txn_id, producer, topic, "added") == 0
    assert end(wire, txn_id, producer, committed=False) == 0
    wait_for_state(wire, txn_id, "CompleteAbort")
    # A batch that comes after its transaction's end would open one that nobody ends.
    assert produce(wire, txn_id, producer, topic, "late", 1) == ErrorCode.INVALID_TXN_STATE


def test_sequences_are_checked(wire: Wire, txn_id: str, topic: str) -> None:
    """A batch that is sent twice is stored once; one that comes too early is refused."""
    producer = init(wire, txn_id)
    enlist(wire, txn_id, producer, topic, 0)
    assert produce(wire, txn_id, producer, topic, "first", 0) == 0
    assert produce(wire, txn_id, producer, topic, "first", 0) == 0
    assert produce(wire, txn_id, producer, topic, "third", 2) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert produce(wire, txn_id, producer, topic, "second", 1) == 0
    assert end(wire, txn_id, producer) == 0
    wait_for_state(wire, txn_id, "CompleteCommit")
    assert stable_offset(wire, topic) == 3


def test_partitions_are_added_all_or_none(wire: Wire, txn_id: str) -> None:
    producer = init(wire, txn_id)
    assert enlist(wire, txn_id, producer, "t", 0, 9) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert state(wire, txn_id).transaction_state == "Empty"


def test_verification_by_brokers(wire: Wire, txn_id: str) -> None:
    producer = init(wire, txn_id)
    assert enlist(wire, txn_id, producer, "t", 0) == [0]
    asked = AddPartitionsToTxnTransaction(
        transactional_id=txn_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=True,
        topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, 1])],
    )
    answer = wire.ask(AddPartitionsToTxnRequest(transactions=[asked, asked]), 5)
    for result in answer.results_by_transaction:
        codes = [each.partition_error_code for each in result.topic_results[0].results_by_partition]
        assert codes == [0, ErrorCode.TRANSACTION_ABORTABLE]
    assert wire.ask(AddPartitionsToTxnRequest(), 5).results_by_transaction == []
    assert end(wire, txn_id, producer, committed=False) == 0


def test_requests_that_cannot_be(wire: Wire, txn_id: str) -> None:
    def code(**more: Any) -> int:
        fields = {"transactional_id": txn_id, "transaction_timeout_ms": 1000, **more}
        answer: int = wire.ask(InitProducerIdRequest(**fields), 4).error_code
        return answer

    assert code(transactional_id="") == ErrorCode.INVALID_REQUEST
    assert code(transaction_timeout_ms=0) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert code(transaction_timeout_ms=2**31 - 1) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert code(producer_id=5) == ErrorCode.INVALID_REQUEST
    assert code(producer_epoch=5) == ErrorCode.INVALID_REQUEST
    unknown = state(wire, "never-was")
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def commit_offset(
    wire: Wire, txn_id: str, producer: Producer, group: str, offset: int, **more: Any
) -> int:
    wanted = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id=txn_id,
        group_id=group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[wanted])],
        **more,
    )
    code: int = wire.ask(request, 3).topics[0].partitions[0].error_code
    return code


def add_offsets(wire: Wire, txn_id: str, producer: Producer, group: str) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=txn_id,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=group,
    )
    code: int = wire.ask(request, 3).error_code
    return code


def test_offsets_count_with_their_transaction(wire: Wire, txn_id: str) -> None:
    group = f"group-of-{txn_id}"
    producer = init(wire, txn_id)
    assert commit_offset(wire, txn_id, producer, group, 5) == ErrorCode.INVALID_TXN_STATE
    assert add_offsets(wire, txn_id, producer, group) == 0
    assert commit_offset(wire, txn_id, producer, group, 5) == 0
    assert fetch_offsets(wire, group, [("t", 0)]) == [-1]
    strange = {"member_id": "stranger", "generation_id": 3}
    refused = commit_offset(wire, txn_id, producer, group, 6, **strange)
    assert ErrorCode.of(refused) in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    assert end(wire, txn_id, producer) == 0
    wait_for_state(wire, txn_id, "CompleteCommit")
    assert fetch_offsets(wire, group, [("t", 0)]) == [5]
    assert add_offsets(wire, txn_id, producer, group) == 0
    assert commit_offset(wire, txn_id, producer, group, 9) == 0
    assert end(wire, txn_id, producer, committed=False) == 0
    wait_for_state(wire, txn_id, "CompleteAbort")
    assert fetch_offsets(wire, group, [("t", 0)]) == [5]


def test_the_first_offsets_of_all_make_their_topic(tmp_path: Path) -> None:
    """Nobody has asked for a group's coordinator before."""
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        find(wire, "tx", TRANSACTION)
        producer = init(wire, "tx")
        assert serving.broker.cluster.topic("__consumer_offsets") is None
        assert add_offsets(wire, "tx", producer, "g") == 0
        assert serving.broker.cluster.topic("__consumer_offsets") is not None


def test_a_transaction_past_its_timeout_is_aborted(
    wire: Wire, serving: Serving, txn_id: str, topic: str
) -> None:
    producer = init(wire, txn_id, timeout_ms=600_000)
    enlist(wire, txn_id, producer, topic, 0)
    assert produce(wire, txn_id, producer, topic, "slow") == 0
    broker = serving.broker
    serving.inside(broker.transactions.abort_timed_out)
    assert state(wire, txn_id).transaction_state == "Ongoing"
    now_ms = broker.now_ms() + 601_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker, "_wall_clock", lambda: now_ms / 1000)
        serving.inside(broker.transactions.abort_timed_out)
    wait_for_state(wire, txn_id, "CompleteAbort")
    assert stable_offset(wire, topic) == 2
    assert end(wire, txn_id, producer) == ErrorCode.PRODUCER_FENCED


def test_ids_that_nobody_uses_are_forgotten(wire: Wire, serving: Serving, txn_id: str) -> None:
    init(wire, txn_id)
    broker = serving.broker
    later_ms = broker.now_ms() + broker.options.transactional_id_expiration_ms + 1000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker, "_wall_clock", lambda: later_ms / 1000)
        serving.inside(broker.transactions.expire)
    missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    wait_for(lambda: state(wire, txn_id).error_code == missing, "the id is forgotten")


def test_a_deleted_topic_does_not_hold_up_the_end(wire: Wire, txn_id: str, topic: str) -> None:
    from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    producer = init(wire, txn_id)
    assert enlist(wire, txn_id, producer, topic, 0) == [0]
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=60_000)
    assert wire.ask(request, 6).responses[0].error_code == 0
    assert end(wire, txn_id, producer) == 0
    wait_for_state(wire, txn_id, "CompleteCommit")


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_a_restart_finishes_what_was_decided(tmp_path: Path, ending: str) -> None:
    """Markers that were not written before are written after, on topics of any name."""
    options = {**COORDINATED, "log.flush.interval.messages": "1"}
    with Serving(tmp_path, options) as serving:
        with serving.connect() as wire:
            for name in ("A-first", "__z", "zz-last"):
                create_topic(wire, name)
            find(wire, "tx", TRANSACTION)
            find(wire, "g")
            producer = init(wire, "tx")
            for name in ("A-first", "__z", "zz-last"):
                assert enlist(wire, "tx", producer, name, 0) == [0]
                assert produce(wire, "tx", producer, name, "one") == 0
            assert add_offsets(wire, "tx", producer, "g") == 0
            request = TxnOffsetCommitRequest(
                transactional_id="tx",
                group_id="g",
                producer_id=producer[0],
                producer_epoch=producer[1],
                topics=[
                    TxnOffsetCommitRequestTopic(
                        name="__z",
                        partitions=[
                            TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
                        ],
                    )
                ],
            )
            assert wire.ask(request, 3).topics[0].partitions[0].error_code == 0
            held = serving.broker.transactions
            # The decision is durable, the broker ends before the first marker.
            held.finish = lambda shard, outcome: held.send(outcome.replies)  # type: ignore[method-assign]
            assert end(wire, "tx", producer) == 0
        getattr(serving, ending)()
        serving.start()
        with serving.connect() as wire:
            wait_for_state(wire, "tx", "CompleteCommit")
            for name in ("A-first", "__z", "zz-last"):
                assert stable_offset(wire, name) == 2
            assert fetch_offsets(wire, "g", [("__z", 0)]) == [7]


def test_verify_says_why_not(serving: Serving, wire: Wire, txn_id: str) -> None:
    producer = init(wire, txn_id)
    transactions, place = serving.broker.transactions, TopicPartition("t", 0)

    def verify(epoch: int) -> ErrorCode:
        return serving.inside(lambda: transactions.verify(txn_id, producer[0], epoch, place))

    assert verify(producer[1]) is ErrorCode.TRANSACTION_ABORTABLE
    assert enlist(wire, txn_id, producer, "t", 0) == [0]
    assert verify(producer[1]) is ErrorCode.NONE
    assert verify(producer[1] + 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(wire, txn_id, producer) == 0
