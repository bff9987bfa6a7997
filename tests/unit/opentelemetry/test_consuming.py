"""A consumer's spans: one for each record handed out alone, one for each call that returns many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry.trace import SpanKind, StatusCode
from tests.unit.opentelemetry.conftest import Traced

from barnabas import KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.aio import AIOKafkaConsumer
from barnabas.errors import KafkaError
from barnabas.structs import OffsetAndMetadata

EARLIEST = {"auto_offset_reset": "earliest"}


def produce(traced: Traced, bootstrap: str, topic: str, count: int) -> list[Any]:
    """Send records, each with a span of its own; return the spans."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, b"key", partition=0)
        producer.flush(30)
    return sorted(
        (each for each in traced.spans() if each.kind is SpanKind.PRODUCER),
        key=lambda span: span.start_time,
    )


def linked(span: Any) -> list[int]:
    return [link.context.span_id for link in span.links]


def test_iteration_gives_each_record_a_child_of_its_sender(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument(meter_provider=traced.meters)
    senders = produce(traced, traced_bootstrap, topic, 3)
    with (
        KafkaConsumer(
            topic,
            bootstrap_servers=traced_bootstrap,
            group_id=topic,
            client_id="reader",
            **EARLIEST,
        ) as consumer,
        traced.tracer.start_as_current_span("the program"),
    ):
        records = iter(consumer)
        assert [next(records).offset for _ in range(2)] == [0, 1]
    spans = traced.spans(f"{topic} receive")
    assert len(spans) == 2, "the third was only fetched"
    for span, sender, offset in zip(spans, senders, range(2), strict=False):
        assert span.kind is SpanKind.CONSUMER
        assert span.context.trace_id == sender.context.trace_id
        assert span.parent.span_id == sender.context.span_id
        assert dict(span.attributes) == {
            "messaging.system": "kafka",
            "messaging.operation.name": "receive",
            "messaging.operation.type": "receive",
            "messaging.client.id": "reader",
            "messaging.consumer.group.name": topic,
            "messaging.destination.name": topic,
            "messaging.destination.partition.id": "0",
            "messaging.kafka.cluster.id": sender.attributes["messaging.kafka.cluster.id"],
            "messaging.kafka.message.key": "key",
            "messaging.kafka.message.offset": offset,
            "messaging.message.id": f"{topic}.0.{offset}",
            "server.address": f'["{traced_bootstrap}"]',
        }
    assert sum(n for _, n in traced.measured("messaging.client.consumed.messages")) == 2


def test_a_call_has_one_span_with_links(traced_bootstrap: str, topic: str, traced: Traced) -> None:
    traced.instrument(meter_provider=traced.meters)
    senders = produce(traced, traced_bootstrap, topic, 5)
    with KafkaConsumer(topic, bootstrap_servers=traced_bootstrap, **EARLIEST) as consumer:
        found: list[Any] = []
        while len(found) < 4:
            for records in consumer.poll(1000, max_records=4 - len(found)).values():
                found += records
        found += consumer.consume(1, timeout=30)
    spans = traced.spans(f"{topic} receive")
    assert sum(each.attributes["messaging.batch.message_count"] for each in spans) == 5
    assert [each for span in spans for each in linked(span)] == [
        sender.context.span_id for sender in senders
    ]
    for span in spans:
        assert span.parent is None
        assert span.start_time < span.end_time
        assert span.attributes["messaging.destination.name"] == topic
    durations = traced.measured("messaging.client.operation.duration")
    received = [n for each, n in durations if each["messaging.operation.name"] == "receive"]
    assert sum(received) == len(spans)


def test_a_span_has_at_most_128_links(traced_bootstrap: str, topic: str, traced: Traced) -> None:
    traced.instrument()
    produce(traced, traced_bootstrap, topic, 150)
    with KafkaConsumer(topic, bootstrap_servers=traced_bootstrap, **EARLIEST) as consumer:
        count = 0
        while count < 150:
            count += sum(map(len, consumer.poll(1000, max_records=1000).values()))
    spans = traced.spans(f"{topic} receive")
    assert sum(len(each.links) for each in spans) >= 128
    assert max(len(each.links) for each in spans) <= 128


def test_columns(traced_bootstrap: str, topic: str, traced: Traced) -> None:
    pytest.importorskip("pyarrow")
    traced.instrument()
    senders = produce(traced, traced_bootstrap, topic, 3)
    with KafkaConsumer(topic, bootstrap_servers=traced_bootstrap, **EARLIEST) as consumer:
        while not consumer.poll_arrow(1000).num_rows:
            pass
    (span, *_) = traced.spans(f"{topic} receive")
    assert linked(span)[0] == senders[0].context.span_id
    assert span.attributes["messaging.batch.message_count"] == len(span.links)


def test_the_names_of_the_conventions(
    traced_bootstrap: str, topic: str, traced: Traced, opt_in: Callable[[str], None]
) -> None:
    opt_in("messaging")
    traced.instrument(meter_provider=traced.meters)
    senders = produce(traced, traced_bootstrap, topic, 2)
    options = {"bootstrap_servers": traced_bootstrap, "group_id": topic}
    with KafkaConsumer(topic, **options, **EARLIEST) as consumer:
        next(iter(consumer))
        consumer.commit()
        partition = TopicPartition(topic, 0)
        nowhere = {TopicPartition(topic, 99): OffsetAndMetadata(1, "", -1)}
        with pytest.raises(KafkaError):
            consumer.commit(nowhere, timeout_ms=1)
        consumer.commit({partition: OffsetAndMetadata(1, "", -1)})
    span = traced.span(f"poll {topic}")
    assert span.kind is SpanKind.CLIENT
    assert span.parent is None
    assert linked(span) == [senders[0].context.span_id]
    assert span.attributes["messaging.kafka.offset"] == 0
    assert span.attributes["messaging.operation.name"] == "poll"
    commits = traced.spans(f"commit {topic}")
    assert [each.attributes["messaging.operation.type"] for each in commits] == ["settle"] * 3
    assert [each.status.status_code for each in commits] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]
    measured = traced.measured("messaging.client.operation.duration")
    assert sum(n for each, n in measured if each["messaging.operation.name"] == "commit") == 3


def test_both_names(
    traced_bootstrap: str, topic: str, traced: Traced, opt_in: Callable[[str], None]
) -> None:
    opt_in("messaging/dup")
    traced.instrument()
    produce(traced, traced_bootstrap, topic, 1)
    with KafkaConsumer(topic, bootstrap_servers=traced_bootstrap, **EARLIEST) as consumer:
        next(iter(consumer))
    span = traced.span(f"poll {topic}")
    assert span.attributes["messaging.kafka.offset"] == 0
    assert span.attributes["messaging.kafka.message.offset"] == 0


def test_on_asyncio(traced_bootstrap: str, topic: str, traced: Traced) -> None:
    seen: list[tuple[str, int]] = []

    def hook(span: Any, record: Any, args: tuple, kwargs: dict) -> None:
        assert span.is_recording()
        seen.append(("plain", record.offset))

    async def async_hook(span: Any, record: Any, args: tuple, kwargs: dict) -> None:
        await asyncio.sleep(0)
        assert span.is_recording()
        seen.append(("async", record.offset))

    traced.instrument(consume_hook=hook, async_consume_hook=async_hook)
    senders = produce(traced, traced_bootstrap, topic, 4)

    async def program() -> None:
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=traced_bootstrap, group_id=topic, **EARLIEST
        ) as consumer:
            partition = TopicPartition(topic, 0)
            assert (await consumer.getone()).offset == 0
            assert (await consumer.getone(partition)).offset == 1
            async for record in consumer:
                assert record.offset == 2
                break
            found = await consumer.getmany(partition, timeout_ms=30_000)
            assert [each.offset for each in found[partition]] == [3]
            assert await consumer.getmany(timeout_ms=0) == {}
            await consumer.commit()

    asyncio.run(program())
    spans = traced.spans(f"{topic} receive")
    assert [each.parent and each.parent.span_id for each in spans] == [
        *(sender.context.span_id for sender in senders[:3]),
        None,
    ]
    assert linked(spans[3]) == [senders[3].context.span_id]
    assert seen == [(kind, offset) for offset in range(4) for kind in ("plain", "async")]
