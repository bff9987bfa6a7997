"""A trace's context in headers, as they come from users and from other clients."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry", reason="needs opentelemetry-api")

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from barnabas.opentelemetry.propagation import (
    LINKS_MAX,
    extracted,
    injected,
    links_to,
    with_context,
)

PARENT = b"00-0000000000000000000000000000000a-000000000000000b-01"


def span(number: int = 11) -> NonRecordingSpan:
    return NonRecordingSpan(SpanContext(10, number, True, TraceFlags(1)))


def test_there_and_back() -> None:
    pairs = injected(span())
    assert pairs == [("traceparent", PARENT)]
    found = trace.get_current_span(extracted(pairs)).get_span_context()
    assert (found.trace_id, found.span_id, found.is_remote) == (10, 11, True)


@pytest.mark.parametrize("headers", [None, [], ()])
def test_without_headers(headers: object) -> None:
    assert with_context(headers, [("traceparent", PARENT)]) == [("traceparent", PARENT)]


def test_headers_stay_as_they_are_and_are_not_changed_in_place() -> None:
    own = [("a", b"1")]
    assert with_context(own, [("traceparent", PARENT)]) == [("a", b"1"), ("traceparent", PARENT)]
    assert own == [("a", b"1")]
    theirs = (("traceparent", b"x"),)
    assert with_context(theirs, [("traceparent", PARENT)]) is theirs
    assert with_context({"a": b"1"}, [("baggage", b"b=c")]) == [("a", b"1"), ("baggage", b"b=c")]
    assert with_context([("baggage", b"own=1")], [("baggage", b"b=c")]) == [("baggage", b"own=1")]
    assert with_context([7], [("b", b"c")]) == [7, ("b", b"c")], "the producer rejects it"


@pytest.mark.parametrize("value", [None, b"", b"garbage", b"\xff\xfe", "text", PARENT[:-1]])
def test_what_is_no_context_is_ignored(value: object) -> None:
    assert links_to([[("traceparent", value)]]) == []


def test_links_are_distinct_and_limited() -> None:
    headers = [injected(span(number)) for number in range(1, 200)]
    assert len(links_to([headers[0], headers[0], None, []])) == 1
    assert len(links_to(headers)) == LINKS_MAX
