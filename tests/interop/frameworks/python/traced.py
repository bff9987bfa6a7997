"""OpenTelemetry's instrumentation of a client: send records, read them, print the spans as JSON."""

import asyncio
import json
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

library, bootstrap, topic, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("test")


def kafka_python() -> list[bytes]:
    from opentelemetry.instrumentation.kafka import KafkaInstrumentor

    KafkaInstrumentor().instrument(tracer_provider=provider)
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    with tracer.start_as_current_span("order"):
        for number in range(count):
            producer.send(topic, b"%d" % number)
    producer.close()
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    values = [next(consumer).value for _ in range(count)]
    consumer.close()
    return values


def aiokafka() -> list[bytes]:
    from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor

    AIOKafkaInstrumentor().instrument(tracer_provider=provider)
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            with tracer.start_as_current_span("order"):
                for number in range(count):
                    await producer.send_and_wait(topic, b"%d" % number)
        options = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer(topic, **options) as consumer:
            return [(await consumer.getone()).value for _ in range(count)]

    return asyncio.run(run())


def confluent_kafka() -> list[bytes]:
    from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor

    ConfluentKafkaInstrumentor().instrument(tracer_provider=provider)
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    with tracer.start_as_current_span("order"):
        for number in range(count):
            producer.produce(topic, b"%d" % number)
        producer.flush(60)
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


values = globals()[library]()
print(
    json.dumps(
        {
            "values": sorted(int(value) for value in values),
            "spans": [
                {
                    "kind": span.kind.name,
                    "name": span.name,
                    "trace": span.context.trace_id,
                    "id": span.context.span_id,
                    "parent": span.parent and span.parent.span_id,
                    "links": [link.context.span_id for link in span.links],
                }
                for span in spans.get_finished_spans()
            ],
        }
    )
)
