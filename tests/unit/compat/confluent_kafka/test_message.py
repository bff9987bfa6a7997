"""`Message`, and headers on their way to our producer."""

from __future__ import annotations

import pytest

from barnabas.compat.confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, Message
from barnabas.compat.confluent_kafka.message import error_message, header_pairs


def test_an_empty_message() -> None:
    message: Message[bytes, bytes] = Message()
    assert (message.topic(), message.partition(), message.offset()) == (None, None, None)
    assert (message.key(), message.value(), message.headers(), len(message)) == (None,) * 3 + (0,)
    assert message.timestamp() == (TIMESTAMP_NOT_AVAILABLE, 0)
    assert (message.error(), message.latency(), message.leader_epoch()) == (None, None, None)
    assert message.delivery_count() is None


def test_what_a_deserializer_replaces() -> None:
    message: Message[str, int] = Message("t", 1, 2, b"k", b"123")
    message.set_key("k")
    message.set_value(123)
    message.set_headers([("a", b"b")])
    message.set_error(KafkaError(1))
    assert (message.deserialized_key(), message.deserialized_value()) == ("k", 123)
    assert message.headers() == [("a", b"b")]
    assert message.error() == 1


def test_an_error_in_the_place_of_a_message() -> None:
    message = error_message(KafkaError(3, "no such topic"), "t", 0)
    assert (message.topic(), message.partition(), message.offset()) == ("t", 0, None)
    assert (message.key(), message.value()) == (None, b"no such topic")


def test_headers() -> None:
    assert header_pairs(None) is None
    assert header_pairs({"a": "ü", "b": None}) == [("a", "ü".encode()), ("b", None)]
    assert header_pairs([("a", b"1"), ("a", b"2")]) == [("a", b"1"), ("a", b"2")]
    for wrong in (5, [("a",)], {"a": 5}, ["abc"]):
        with pytest.raises(TypeError, match="header"):
            header_pairs(wrong)
