"""Records of Kafka's own topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.decoding import Decoder
from barnabas.console.records.internal_topics import (
    OFFSETS_TOPIC,
    TOPICS,
    TRANSACTIONS_TOPIC,
    UnknownLayoutError,
    read_internal,
)
from barnabas.groups import records as groups
from barnabas.transactions.records import TransactionLogKey, TransactionLogValue
from barnabas.wire.versioned import encode_versioned


def test_internal_records() -> None:
    key = groups.OffsetKey(group="billing", topic="orders", partition=3)
    record = groups.state_record(
        key, groups.OffsetValue(offset=2**53 + 1, metadata="m", commit_timestamp=5)
    )
    value = Decoder(OFFSETS_TOPIC, "value")(record.value, record.key)
    assert value.document["offset"] == 2**53 + 1
    assert Decoder(OFFSETS_TOPIC, "key")(record.key).document["group"] == "billing"
    topics = groups.SubscribedTopic(topic_id=b"\1" * 16, topic_name="t", num_partitions=1)
    record = groups.state_record(
        groups.SubscribedTopicsKey(group="g"), groups.SubscribedTopicsValue(topics=[topics])
    )
    value = Decoder(OFFSETS_TOPIC, "value")(record.value, record.key)
    assert value.document["topics"][0]["topic_id"] == "AQEBAQEBAQEBAQEBAQEBAQ"


def test_transactions() -> None:
    key = encode_versioned(TransactionLogKey(transactional_id="t-1"), 0)
    value = encode_versioned(
        TransactionLogValue(producer_id=2**60, producer_epoch=3, transaction_status=4), 0
    )
    assert read_internal(TRANSACTIONS_TOPIC, "key", key, key)["transactional_id"] == "t-1"
    found = read_internal(TRANSACTIONS_TOPIC, "value", value, key)
    assert (found["producer_id"], found["transaction_status"]) == (2**60, "CompleteCommit")


def test_records_of_newer_brokers_are_not_guessed() -> None:
    for topic in TOPICS:
        with pytest.raises(UnknownLayoutError):
            read_internal(topic, "key", b"\0\x63later", None)


@given(st.sampled_from(TOPICS), st.sampled_from(["key", "value"]), st.binary(max_size=80))
def test_other_bytes_raise_only_its_own_error(topic: str, side: str, data: bytes) -> None:
    try:
        found = read_internal(topic, side, b"\0" + data[:1] + data, b"\0\1" + data)
    except UnknownLayoutError:
        return
    assert found["layout"]
