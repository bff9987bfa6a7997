"""Subscriptions and assignments of classic consumers, against known bytes."""

from __future__ import annotations

from tests.unit.assignment.groups import partitions

from barnabas.assignment.contract import Member, Share
from barnabas.assignment.embedded import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

OWNING = "000100000001000174ffffffff00000001000174000000020000000000000001"
IDLE = "000300000001000174ffffffff00000000ffffffffffff"
ASSIGNED = "000100000001000174000000020000000000000001ffffffff"


def test_subscriptions_have_kafkas_bytes() -> None:
    owner = Member("m", ["t"], owned=partitions("tp1 tp0"))
    assert encode_subscription(owner, 1).hex() == OWNING
    assert encode_subscription(Member("m", ["t"])).hex() == IDLE


def test_subscriptions_are_read_back() -> None:
    member = Member("m", ["a", "b"], "i", partitions("ap0 bp3"), 7, b"data", "rack")
    assert decode_subscription("m", "i", encode_subscription(member)) == member
    assert decode_subscription("m", None, bytes.fromhex(OWNING)) == Member(
        "m", ["t"], owned=partitions("tp0 tp1")
    )


def test_assignments() -> None:
    assert encode_assignment(partitions("tp1 tp0"), version=1).hex() == ASSIGNED
    assert decode_assignment(bytes.fromhex(ASSIGNED)) == Share(partitions("tp0 tp1"), None)
    assert decode_assignment(b"") == Share([], None)


def test_an_assignment_carries_what_the_leader_adds() -> None:
    encoded = encode_assignment(partitions("tp1"), b"more")
    assert encoded.hex() == "0003000000010001740000000100000001000000046d6f7265"
    assert decode_assignment(encoded) == Share(partitions("tp1"), b"more")
