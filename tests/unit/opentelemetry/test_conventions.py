"""Names of spans and attributes."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry", reason="needs opentelemetry-api")

from opentelemetry.trace import SpanKind

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.opentelemetry.conventions import (
    Conventions,
    error_type,
    key_text,
    message,
)

OLD, NEW, BOTH = Conventions(True, False), Conventions(False, True), Conventions(True, True)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("", OLD),
        ("http", OLD),
        ("messaging", NEW),
        ("http, Messaging", NEW),
        ("messaging/dup", BOTH),
        ("messaging,messaging/dup", BOTH),
    ],
)
def test_what_is_chosen(text: str, chosen: Conventions) -> None:
    assert Conventions.chosen(text) == chosen


def test_span_names() -> None:
    assert OLD.span_name("send", ["t"]) == "t send"
    assert OLD.span_name("poll", ["b", "a", "b"]) == "a, b receive"
    assert OLD.span_name("poll", [f"t{n}" for n in range(20)]).endswith(", … receive")
    assert NEW.span_name("poll", ["t"]) == BOTH.span_name("poll", ["t"]) == "poll t"
    assert NEW.span_name("poll", ["a", "b"]) == "poll"
    assert NEW.span_name("commit", []) == "commit"


def test_operations() -> None:
    assert OLD.operation("send")["messaging.operation.type"] == "publish"
    assert NEW.operation("send")["messaging.operation.type"] == "send"
    assert OLD.operation("poll")["messaging.operation.name"] == "receive"
    assert NEW.operation("commit")["messaging.operation.type"] == "settle"
    assert OLD.kind("poll") is SpanKind.CONSUMER
    assert NEW.kind("poll") is SpanKind.CLIENT
    assert NEW.kind("process") is SpanKind.CONSUMER
    assert NEW.kind("send") is SpanKind.PRODUCER


def test_keys_and_values() -> None:
    assert key_text("ü".encode()) == key_text("ü") == "ü"
    assert key_text(b"\xff") == "b'\\xff'"
    assert key_text(7) == "7"
    assert message(None, b"") == {}
    assert message(b"", None) == {
        "messaging.kafka.message.key": "",
        "messaging.kafka.message.tombstone": True,
    }


def test_errors_have_kafkas_names() -> None:
    assert error_type(RequestError(ErrorCode.NOT_ENOUGH_REPLICAS)) == "NOT_ENOUGH_REPLICAS"
    assert error_type(OSError(5, "disk")) == "OSError"
