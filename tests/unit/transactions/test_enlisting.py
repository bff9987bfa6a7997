"""AddPartitionsToTxn taken apart and answered, in the shape of each version."""

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.transactions.enlisting import (
    add_partitions_response,
    partitions_of,
    refused,
    result_of,
    transactions_of,
)
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

TOPICS = [
    AddPartitionsToTxnTopic(name="b", partitions=[2, 0]),
    AddPartitionsToTxnTopic(name="a", partitions=[1]),
]
TRANSACTION = AddPartitionsToTxnTransaction(
    transactional_id="tx", producer_id=9, producer_epoch=4, verify_only=False, topics=TOPICS
)


@pytest.mark.parametrize("version", range(4))
def test_a_client_asks_about_one_transaction(version: int) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=9,
        v3_and_below_producer_epoch=4,
        v3_and_below_topics=TOPICS,
    )
    request, _ = decode(AddPartitionsToTxnRequest, encode(request, version), version)
    assert transactions_of(request, version) == [TRANSACTION]


@pytest.mark.parametrize("version", [4, 5])
def test_a_broker_asks_about_several(version: int) -> None:
    request = AddPartitionsToTxnRequest(transactions=[TRANSACTION, TRANSACTION])
    request, _ = decode(AddPartitionsToTxnRequest, encode(request, version), version)
    assert transactions_of(request, version) == [TRANSACTION, TRANSACTION]


def test_every_partition_is_answered_in_the_order_asked() -> None:
    result = result_of(TRANSACTION, ErrorCode.CONCURRENT_TRANSACTIONS)
    answered = [
        (topic.name, p.partition_index, p.partition_error_code)
        for topic in result.topic_results
        for p in topic.results_by_partition
    ]
    assert answered == [("b", 2, 51), ("b", 0, 51), ("a", 1, 51)]
    assert partitions_of(TRANSACTION) == {TopicPartition(t, p) for t, p, _ in answered}


def test_one_partition_refused_means_none_added() -> None:
    refusal = {TopicPartition("b", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    result = refused(TRANSACTION, refusal)
    codes = [p.partition_error_code for t in result.topic_results for p in t.results_by_partition]
    assert codes == [55, 3, 55]


@pytest.mark.parametrize("version", range(6))
def test_the_answer_has_the_shape_of_its_version(version: int) -> None:
    result = result_of(TRANSACTION, ErrorCode.NONE)
    response = add_partitions_response([result], version)
    read, _ = decode(AddPartitionsToTxnResponse, encode(response, version), version)
    if version >= 4:
        assert read.results_by_transaction == [result]
    else:
        assert read.results_by_topic_v3_and_below == result.topic_results
