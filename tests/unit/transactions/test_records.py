"""The bytes of `__transaction_state`: as Kafka writes them, and as it reads them."""

import pytest

from barnabas.model.errors import CorruptRecordError, RemoteProtocolError
from barnabas.model.ids import TopicPartition
from barnabas.transactions.records import decode_key, decode_value, encode_record
from barnabas.transactions.state import State
from barnabas.transactions.transaction import Transaction

NOW_MS = 1_700_000_000_000  # 01 8b cf e5 68 00

KEY = bytes.fromhex("00 00 00 03 74 78 31")
ONGOING = bytes.fromhex(
    "00 00 00 00 00 00 00 00 0f a0 00 00 00 00 ea 60 01 00 00 00 01 00 01 74 00 00 00 01 00 00 00"
    "00 00 00 01 8b cf e5 68 0a 00 00 01 8b cf e5 68 00"
)
EMPTY = bytes.fromhex(
    "00 00 00 00 00 00 00 00 0f a0 00 00 00 00 ea 60 00 ff ff ff ff"
    "00 00 01 8b cf e5 68 00 ff ff ff ff ff ff ff ff"
)
# Version 1: a compact array (count + 1) of compact strings, tags last: previous id 4000 (tag 0),
# next id 5000 (tag 1), transaction version 2 (tag 2).
VERSION_1 = bytes.fromhex(
    "00 01 00 00 00 00 00 00 0f a1 7f ff 00 00 ea 60 02 02 02 74 02 00 00 00 00 00"
    "00 00 01 8b cf e5 68 0a 00 00 01 8b cf e5 68 00"
    "03 00 08 00 00 00 00 00 00 0f a0 01 08 00 00 00 00 00 00 13 88 02 02 00 02"
)

transaction_ongoing = Transaction(
    4000,
    0,
    60_000,
    NOW_MS + 10,
    State.ONGOING,
    frozenset({TopicPartition("t", 0)}),
    start_ms=NOW_MS,
)


def test_an_open_transaction_has_the_known_bytes() -> None:
    assert encode_record("tx1", transaction_ongoing) == (KEY, ONGOING)
    assert decode_key(KEY) == "tx1"
    assert decode_value(ONGOING) == transaction_ongoing


def test_an_empty_one_has_null_partitions() -> None:
    transaction = Transaction(4000, 0, 60_000, NOW_MS)
    assert encode_record("tx1", transaction) == (KEY, EMPTY)
    assert decode_value(EMPTY) == transaction


def test_a_completed_one_has_no_partitions_which_is_not_null() -> None:
    complete = transaction_ongoing.ended(committed=True, now_ms=NOW_MS).completed(NOW_MS)
    value = encode_record("tx1", complete).value
    assert value is not None
    assert value[16:21] == bytes.fromhex("04 00 00 00 00")
    assert decode_value(value) == complete


def test_version_1_is_read_and_written_for_what_version_0_cannot_tell() -> None:
    transaction = Transaction(
        4001,
        32_767,
        60_000,
        NOW_MS + 10,
        State.PREPARE_COMMIT,
        frozenset({TopicPartition("t", 0)}),
        start_ms=NOW_MS,
        previous_producer_id=4000,
        next_producer_id=5000,
        transaction_version=2,
    )
    assert encode_record("tx1", transaction).value == VERSION_1
    assert decode_value(VERSION_1) == transaction


def test_version_1_without_tags_is_read() -> None:
    plain = VERSION_1[: -(1 + 10 + 10 + 4)] + b"\x00"
    transaction = decode_value(plain)
    assert (transaction.previous_producer_id, transaction.next_producer_id) == (-1, -1)
    assert transaction.transaction_version == 0


def test_a_dead_id_is_a_key_without_value() -> None:
    dead = Transaction(4000, 0, 60_000, NOW_MS).to(State.DEAD, NOW_MS)
    assert encode_record("tx1", dead) == (KEY, None)


def test_partitions_are_written_in_order_whatever_the_order_of_arrival() -> None:
    partitions = [TopicPartition(topic, p) for topic in ("b", "a") for p in (10, 9, 0)]
    one = Transaction(1, 0, 1, 0).with_partitions(frozenset(partitions), 5)
    other = Transaction(1, 0, 1, 0)
    for partition in reversed(partitions):
        other = other.with_partitions(frozenset({partition}), 5)
    assert encode_record("x", one) == encode_record("x", other)


def test_an_unknown_kind_of_key_is_passed_over() -> None:
    assert decode_key(bytes.fromhex("00 09 00 03 74 78 31")) is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (ONGOING[:16] + b"\x09" + ONGOING[17:], CorruptRecordError),
        (ONGOING[:-1], RemoteProtocolError),
        (b"", RemoteProtocolError),
    ],
)
def test_a_broken_value_is_refused(value: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_value(value)
