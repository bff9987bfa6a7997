"""A span for what a program does with a record."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry import baggage
from opentelemetry.trace import SpanKind
from tests.unit.opentelemetry.conftest import Traced
from tests.unit.opentelemetry.test_consuming import EARLIEST, produce

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.opentelemetry import processing


def test_the_trace_goes_on_where_a_record_is_processed(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument(meter_provider=traced.meters)
    (sender,) = produce(traced, traced_bootstrap, topic, 1)
    with KafkaConsumer(topic, bootstrap_servers=traced_bootstrap, **EARLIEST) as consumer:
        record = next(iter(consumer))
    with processing(record) as span, traced.tracer.start_as_current_span("inside"):
        assert span.is_recording()
    with pytest.raises(KeyError), processing(record):
        raise KeyError("of the program")
    good, bad = traced.spans(f"{topic} process")
    assert good.kind is SpanKind.CONSUMER
    assert good.parent.span_id == sender.context.span_id
    assert traced.span("inside").parent.span_id == good.context.span_id
    assert bad.attributes["error.type"] == "KeyError"
    assert sum(n for _, n in traced.measured("messaging.process.duration")) == 2


def test_baggage_is_current_where_a_record_is_processed(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument()
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        producer.send(topic, b"tea", headers=[("baggage", b"customer=7")]).get(30)
    with KafkaConsumer(topic, bootstrap_servers=traced_bootstrap, **EARLIEST) as consumer:
        record = next(iter(consumer))
    with processing(record):
        assert baggage.get_baggage("customer") == "7"
    assert baggage.get_baggage("customer") is None
