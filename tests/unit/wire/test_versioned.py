"""Messages as data inside others, preceded by their version."""

from __future__ import annotations

import pytest

from barnabas.model.errors import RemoteProtocolError
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.wire.versioned import decode_versioned, encode_versioned


def test_a_subscription_as_consumers_send_it() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"])
    data = encode_versioned(subscription, 0)
    assert data == bytes.fromhex("0000" "00000001" "000174" "ffffffff")  # fmt: skip
    assert decode_versioned(ConsumerProtocolSubscription, data) == (subscription, 0)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_is_read_back(version: int) -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="t", partitions=[0, 3])], user_data=b"x"
    )
    data = encode_versioned(assignment, version)
    assert data[:2] == bytes([0, version])
    assert decode_versioned(ConsumerProtocolAssignment, memoryview(data)) == (assignment, version)


def test_a_newer_version_is_read_as_our_newest() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
    data = encode_versioned(subscription, 3)
    newer = b"\x00\x09" + data[2:] + b"what version 9 added"
    assert decode_versioned(ConsumerProtocolSubscription, newer) == (subscription, 9)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x00\x00\x00"])
def test_what_is_no_version_or_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="ConsumerProtocolSubscription"):
        decode_versioned(ConsumerProtocolSubscription, data)
