"""`send`: straight to the accumulator, or around it where a record cannot be taken as it is."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from barnabas.producer.accumulator import Refusal


def producer_of(twin: ModuleType, *, direct: bool = True) -> Any:
    class Producer(twin.RecordSender):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            pool = twin.BufferPool(10_000, 1000)
            accumulator = twin.Accumulator(
                pool, wake=lambda: None, choose=lambda topic: 0, wait=None
            )
            accumulator.add_topic("t", 4)
            if direct:
                self._direct = accumulator

        def _prepare_and_send(self, arguments: tuple[Any, ...]) -> Any:
            return "prepared", arguments

        def _wait_and_send(self, refusal: Refusal, arguments: tuple[Any, ...]) -> Any:
            return refusal, arguments

    return Producer()


def test_a_record_that_is_taken_has_a_future(twin: ModuleType) -> None:
    future = producer_of(twin).send("t", b"value", partition=3)
    assert isinstance(future, twin.RecordFuture)
    assert future.batch.partition == ("t", 3)


def test_a_record_that_is_refused_waits(twin: ModuleType) -> None:
    arguments = ("unknown", b"value", b"key", [("h", b"1")], 1, 77)
    assert producer_of(twin).send(*arguments) == (Refusal.TOPIC, arguments)
    whole = ("t", None, None, None, None, None)
    assert producer_of(twin).send("t") == (Refusal.EMPTY, whole)


def test_a_record_that_is_not_sent_as_it_is_is_prepared(twin: ModuleType) -> None:
    whole = ("t", 5, None, None, None, None)
    assert producer_of(twin, direct=False).send("t", 5) == ("prepared", whole)


def test_send_is_a_method_that_a_subclass_may_override(twin: ModuleType) -> None:
    producer = producer_of(twin)

    class Shouting(type(producer)):  # type: ignore[misc]
        def send(self, topic: str, value: bytes, **more: Any) -> Any:
            return super().send(topic, value.upper(), **more)

    [batch] = [Shouting().send("t", b"quiet", partition=0).batch]
    assert b"QUIET" in bytes(batch.view())
    assert "send" not in vars(producer)


def test_arguments_go_by_their_names(twin: ModuleType) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        producer_of(twin).send("t", b"v", timestamp=5)
