"""The queue of messages, without a broker: limits, expiry, purging."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.compat.confluent_kafka import KafkaError, KafkaException, Producer


@contextmanager
def producer(**options: Any) -> Iterator[Any]:
    made = Producer(
        {
            "bootstrap.servers": "127.0.0.1:1",
            **{name.replace("_", "."): value for name, value in options.items()},
        }
    )
    try:
        yield made
    finally:
        made.purge()
        made.close()


def codes(told: list[Any]) -> list[str]:
    return [error.name() for error, _ in told]


def test_messages_wait_for_their_topic_until_they_expire() -> None:
    told: list[Any] = []
    with producer(message_timeout_ms=150) as made:
        for value in (b"1", b"2"):
            made.produce("t", value, on_delivery=lambda *report: told.append(report))
        assert (len(made), made.flush(0.0)) == (2, 2)
        assert made.flush(30) == 0
        assert codes(told) == ["_MSG_TIMED_OUT"] * 2
        assert [message.value() for _, message in told] == [b"1", b"2"]
        made.produce("t", b"3", on_delivery=lambda *report: told.append(report))
        assert made.flush(30) == 0
        assert codes(told) == ["_MSG_TIMED_OUT"] * 3


def test_the_queue_is_full() -> None:
    with producer(queue_buffering_max_messages=2) as made:
        made.produce("t", b"1")
        made.produce("u", b"2")
        with pytest.raises(BufferError, match=r"^Local: Queue full$"):
            made.produce("t", b"3")
        made.purge()
        assert made.poll(0) == 2
        made.produce("t", b"4")
        assert len(made) == 1


def test_purged_messages_are_reported() -> None:
    told: list[Any] = []
    with producer() as made:
        made.produce("t", b"1", on_delivery=lambda *report: told.append(report))
        made.purge(in_queue=False)
        assert made.flush(0) == 1
        made.purge()
        assert made.flush(30) == 0
    assert codes(told) == ["_PURGE_QUEUE"]


def test_a_report_that_raises_leaves_the_others_to_the_next_poll() -> None:
    told: list[Any] = []

    def report(error: Any, message: Any) -> None:
        told.append(message.value())
        if message.value() == b"1":
            raise LookupError

    with producer() as made:
        for value in (b"1", b"2"):
            made.produce("t", value, on_delivery=report)
        made.purge()
        with pytest.raises(LookupError):
            made.flush(30)
        assert (told, len(made)) == ([b"1"], 1)
        assert made.flush(30) == 0
        assert told == [b"1", b"2"]


def test_what_is_never_queued() -> None:
    told: list[Any] = []
    with producer(message_max_bytes=1000) as made:
        for partition, value, code in (
            (-1, bytes(2000), KafkaError.MSG_SIZE_TOO_LARGE),
            (-2, b"v", KafkaError._UNKNOWN_PARTITION),
        ):
            with pytest.raises(KafkaException) as failure:
                made.produce("t", value, partition=partition)
            assert failure.value.args[0] == code
        assert len(made) == 0
        made.produce("not a topic", b"v", on_delivery=lambda *report: told.append(report))
        assert made.flush(30) == 0
        assert codes(told) == ["TOPIC_EXCEPTION"]
