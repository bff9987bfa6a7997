"""One trace through our producer, our broker and confluent-kafka, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from confluent_kafka import Consumer, Message, Producer
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
    InMemorySpanExporter,
)
from tests.compat.conftest import NewTopicName
from tests.compat.samples import until_deadline

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.opentelemetry import BarnabasInstrumentor, processing

pytestmark = pytest.mark.compat


@pytest.fixture
def exporter() -> Iterator[tuple[InMemorySpanExporter, trace.Tracer]]:
    """What was traced, by our clients and by the test itself, with a tracer for that."""
    made, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(made))
    BarnabasInstrumentor().instrument(tracer_provider=provider)
    yield made, provider.get_tracer("test")
    BarnabasInstrumentor().uninstrument()
    provider.shutdown()


def receive(consumer: Consumer) -> Message:
    for left in until_deadline("a record is received"):
        message = consumer.poll(min(left, 1))
        if message is not None and message.error() is None:
            return message
    raise AssertionError("unreachable")


def test_a_trace_goes_there_and_back(bootstrap: str, new_name: NewTopicName, exporter: Any) -> None:
    spans_of, tracer = exporter
    there, back = new_name(), new_name()
    options = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        producer.send(there, b"question").get(30)

    theirs = Consumer({**options, "group.id": there})
    theirs.subscribe([there])
    message = receive(theirs)
    headers = {name: value.decode() for name, value in message.headers()}
    with tracer.start_as_current_span("theirs", propagate.extract(headers)):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        replier = Producer({"bootstrap.servers": bootstrap})
        replier.produce(back, b"answer", headers=list(carrier.items()))
        assert replier.flush(30) == 0
    theirs.close()

    with KafkaConsumer(
        back, bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=back
    ) as consumer:
        record = next(iter(consumer))
        with processing(record):
            assert trace.get_current_span().get_span_context().is_valid

    spans: dict[str, ReadableSpan] = {each.name: each for each in spans_of.get_finished_spans()}
    sent, between = spans[f"{there} send"], spans["theirs"]
    received, processed = spans[f"{back} receive"], spans[f"{back} process"]
    assert sent.parent is None
    assert between.parent.span_id == sent.context.span_id
    assert received.parent.span_id == processed.parent.span_id == between.context.span_id
    assert len({each.context.trace_id for each in spans.values()}) == 1
    assert headers["traceparent"].split("-")[1] == f"{sent.context.trace_id:032x}"
