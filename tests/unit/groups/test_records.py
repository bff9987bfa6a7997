"""Records of `__consumer_offsets` against known bytes, in all versions that logs may hold."""

from __future__ import annotations

import pytest

from barnabas.groups.records import (
    ClassicGroupKey,
    ClassicGroupValue,
    ClassicMemberMetadata,
    ClassicMemberValue,
    ClassicProtocolValue,
    CurrentMemberKey,
    CurrentMemberValue,
    GroupEpochKey,
    GroupEpochValue,
    MemberKey,
    MemberValue,
    OffsetKey,
    OffsetValue,
    SubscribedTopic,
    SubscribedTopicsKey,
    SubscribedTopicsValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetMemberKey,
    TargetMemberValue,
    TopicPartitions,
    decode_key,
    decode_value,
    state_record,
)
from barnabas.model.errors import RemoteProtocolError
from barnabas.wire.schema import Message
from barnabas.wire.versioned import encode_versioned

OFFSET_KEY = OffsetKey(group="g1", topic="t", partition=0)
TIME = 0x018BCFE56800


def test_offset_record_has_kafkas_bytes() -> None:
    value = OffsetValue(offset=42, leader_epoch=5, metadata="meta", commit_timestamp=TIME)
    record = state_record(OFFSET_KEY, value)
    assert record.key.hex(" ") == "00 01 00 02 67 31 00 01 74 00 00 00 00"
    assert record.value is not None
    assert record.value.hex(" ") == (
        "00 03 00 00 00 00 00 00 00 2a 00 00 00 05 00 04 6d 65 74 61 00 00 01 8b cf e5 68 00"
    )
    assert decode_key(record.key) == OFFSET_KEY
    assert decode_value(OFFSET_KEY, record.value) == value


def test_retention_of_a_commit_needs_the_first_version() -> None:
    value = OffsetValue(offset=1, metadata="", commit_timestamp=5, expire_timestamp=9)
    record = state_record(OFFSET_KEY, value)
    assert record.value is not None
    assert record.value[:2] == b"\x00\x01"
    assert decode_value(OFFSET_KEY, record.value) == value


def test_group_key_and_tombstone() -> None:
    record = state_record(ClassicGroupKey(group="g1"), None)
    assert record.key.hex(" ") == "00 02 00 02 67 31"
    assert record.value is None


def test_group_value_has_kafkas_bytes() -> None:
    member = ClassicMemberValue(
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=2,
        subscription=b"s",
        assignment=b"a",
    )
    value = ClassicGroupValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        current_state_timestamp=TIME,
        members=[member],
    )
    record = state_record(ClassicGroupKey(group="g"), value)
    assert record.value is not None
    assert record.value.hex() == (
        "0003" "0008636f6e73756d6572" "00000003" "000572616e6765" "00016d" "0000018bcfe56800"
        "00000001" "00016d" "ffff" "000163" "00022f68" "00000001" "00000002"
        "0000000173" "0000000161"
    )  # fmt: skip


@pytest.mark.parametrize("version", range(5))
def test_values_of_every_version_are_read(version: int) -> None:
    offset = OffsetValue(offset=7, metadata="m", commit_timestamp=5)
    assert decode_value(OFFSET_KEY, encode_versioned(offset, version)) == offset
    group = ClassicGroupValue(protocol_type="consumer", generation=1)
    assert decode_value(ClassicGroupKey(group="g"), encode_versioned(group, version)) == group


def test_offset_keys_of_version_zero_are_read() -> None:
    assert decode_key(encode_versioned(OFFSET_KEY, 0)) == OFFSET_KEY


def test_keys_of_newer_brokers_are_skipped_and_broken_ones_refused() -> None:
    assert decode_key(b"\x00\x10\x00\x00") is None
    with pytest.raises(RemoteProtocolError):
        decode_key(b"\x00")


PARTITIONS = [TopicPartitions(topic_id=bytes(range(16)), partitions=[1, 2])]

CONSUMER_RECORDS: list[tuple[int, Message, Message, str]] = [
    (3, GroupEpochKey(group="g"), GroupEpochValue(epoch=7), "0000" "00000007" "00"),
    (
        4,
        SubscribedTopicsKey(group="g"),
        SubscribedTopicsValue(
            topics=[SubscribedTopic(topic_id=bytes(range(16)), topic_name="t", num_partitions=3)]
        ),
        "0000" "02" "000102030405060708090a0b0c0d0e0f" "0274" "00000003" "01" "00" "00",
    ),
    (
        5,
        MemberKey(group="g", member="m"),
        MemberValue(
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["t"],
            rebalance_timeout_ms=5,
            server_assignor="uniform",
        ),
        "0000" "00" "00" "0263" "032f68" "02" "0274" "00" "00000005" "08756e69666f726d" "00",
    ),
    (6, TargetEpochKey(group="g"), TargetEpochValue(assignment_epoch=7), "0000" "00000007" "00"),
    (
        7,
        TargetMemberKey(group="g", member="m"),
        TargetMemberValue(topic_partitions=PARTITIONS),
        "0000" "02" "000102030405060708090a0b0c0d0e0f" "03" "0000000100000002" "00" "00",
    ),
    (
        8,
        CurrentMemberKey(group="g", member="m"),
        CurrentMemberValue(
            member_epoch=7, previous_member_epoch=6, state=1, assigned_partitions=PARTITIONS
        ),
        "0000" "00000007" "00000006" "01"
        "02" "000102030405060708090a0b0c0d0e0f" "03" "0000000100000002" "00" "01" "00",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("version", "key", "value", "expected"), CONSUMER_RECORDS)
def test_consumer_group_records(version: int, key: Message, value: Message, expected: str) -> None:
    record = state_record(key, value)
    assert record.value is not None
    assert int.from_bytes(record.key[:2], "big") == version
    assert record.value.hex() == expected
    assert decode_key(record.key) == key
    assert decode_value(key, record.value) == value


def test_classic_members_of_consumer_groups_are_read() -> None:
    metadata = ClassicMemberMetadata(
        session_timeout_ms=1, supported_protocols=[ClassicProtocolValue(name="r", metadata=b"x")]
    )
    key = MemberKey(group="g", member="m")
    value = MemberValue(client_id="c", client_host="/h", classic_member_metadata=metadata)
    record = state_record(key, value)
    assert record.value is not None
    assert decode_value(key, record.value) == value
