"""A producer's spans: when they begin and end, what they say, and what travels in headers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry import baggage, context, trace
from opentelemetry.trace import SpanKind, StatusCode
from tests.unit.opentelemetry.conftest import Traced

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.aio import AIOKafkaProducer


def sent(bootstrap: str, topic: str) -> list[Any]:
    """Read a topic from its beginning."""
    found: list[Any] = []
    with KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=200
    ) as consumer:
        while not found:
            found += list(consumer)
    return found


def parent_in(record: Any) -> str:
    """The trace and span in a record's header, as two hexadecimal numbers."""
    ((_, value),) = [pair for pair in record.headers if pair[0] == "traceparent"]
    return value.decode()[3:52]


def ids(span: Any) -> str:
    return f"{span.context.trace_id:032x}-{span.context.span_id:016x}"


def test_a_record_has_a_span_and_carries_its_context(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument()
    with (
        traced.tracer.start_as_current_span("the program") as program,
        KafkaProducer(bootstrap_servers=traced_bootstrap, client_id="web") as producer,
    ):
        written = producer.send(topic, b"tea", b"key-1", headers=[("a", b"1")]).get(30)
    span = traced.span(f"{topic} send")
    assert span.kind is SpanKind.PRODUCER
    assert span.parent.span_id == program.get_span_context().span_id
    cluster_id = span.attributes["messaging.kafka.cluster.id"]
    assert len(cluster_id) == 22
    assert dict(span.attributes) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "publish",
        "messaging.client.id": "web",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": str(written.partition),
        "messaging.kafka.cluster.id": cluster_id,
        "messaging.kafka.message.key": "key-1",
        "messaging.kafka.message.offset": written.offset,
        "server.address": f'["{traced_bootstrap}"]',
    }
    (record,) = sent(traced_bootstrap, topic)
    assert record.headers[0] == ("a", b"1")
    assert parent_in(record) == ids(span)


def test_the_names_of_the_conventions(
    traced_bootstrap: str, topic: str, traced: Traced, opt_in: Callable[[str], None]
) -> None:
    opt_in("http,messaging")
    traced.instrument()
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        producer.send(topic, None, "ü".encode() + b"\xff").get(30)
    span = traced.span(f"send {topic}")
    host, port = traced_bootstrap.split(":")
    assert span.attributes["messaging.operation.type"] == "send"
    assert span.attributes["messaging.kafka.offset"] == 0
    assert span.attributes["messaging.kafka.message.tombstone"] is True
    assert (span.attributes["server.address"], span.attributes["server.port"]) == (host, int(port))
    assert "messaging.kafka.message.offset" not in span.attributes


def test_the_users_own_context_is_left_alone_and_baggage_travels(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument()
    own = ("traceparent", b"00-11111111111111111111111111111111-2222222222222222-01")
    token = context.attach(baggage.set_baggage("customer", "7"))
    try:
        with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
            producer.send(topic, b"1", headers=[own]).get(30)
            producer.send(topic, b"2").get(30)
    finally:
        context.detach(token)
    first, second = sent(traced_bootstrap, topic)
    assert list(first.headers) == [own]
    assert dict(second.headers)["baggage"] == b"customer=7"


def test_a_record_that_cannot_be_sent(traced_bootstrap: str, topic: str, traced: Traced) -> None:
    traced.instrument(meter_provider=traced.meters)
    with KafkaProducer(bootstrap_servers=traced_bootstrap, max_request_size=100) as producer:
        with pytest.raises(Exception, match=r"max\.request\.size"):
            producer.send(topic, bytes(1000)).get(30)
        with pytest.raises(Exception, match="topic"):
            producer.send("no/such/topic", b"x").get(30)
    for name in (f"{topic} send", "no/such/topic send"):
        span = traced.span(name)
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"]
        assert [each.name for each in span.events] == ["exception"]
    errors = {
        attributes.get("error.type")
        for attributes, _ in traced.measured("messaging.client.sent.messages")
    }
    assert len(errors) == 2
    assert None not in errors


def test_many_records_of_one_call_share_a_span(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument()
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        rows = [b"1", (b"k", b"2"), (b"k", b"3", [("a", b"x")])]
        producer.send_many(topic, rows).get(30)
        with pytest.raises(TypeError):
            producer.send_many(topic, [object()])
    good, bad = traced.spans(f"{topic} send")
    assert good.attributes["messaging.batch.message_count"] == 3
    assert good.kind is SpanKind.PRODUCER
    assert bad.attributes["error.type"] == "TypeError"
    records = sent(traced_bootstrap, topic)
    assert {parent_in(each) for each in records} == {ids(good)}
    assert sorted(len(each.headers) for each in records) == [1, 1, 2]


def test_columns_have_a_span_and_no_headers(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    traced.instrument()
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        producer.send_arrow(topic, pyarrow.table({"value": [b"a", b"b"]})).get(30)
    span = traced.span(f"{topic} send")
    assert span.kind is SpanKind.CLIENT
    assert span.attributes["messaging.batch.message_count"] == 2
    assert [list(each.headers) for each in sent(traced_bootstrap, topic)] == [[], []]


def test_on_asyncio(traced_bootstrap: str, topic: str, traced: Traced) -> None:
    """Concurrent sends keep their spans apart; both kinds of hooks are called."""
    seen: list[tuple[str, Any]] = []

    def hook(span: Any, args: tuple, kwargs: dict) -> None:
        seen.append(("plain", (*args, kwargs["value"])))

    async def async_hook(span: Any, args: tuple, kwargs: dict) -> None:
        await asyncio.sleep(0)
        span.set_attribute("of.the.user", kwargs["value"].decode())

    traced.instrument(produce_hook=hook, async_produce_hook=async_hook)

    async def program() -> None:
        async with AIOKafkaProducer(bootstrap_servers=traced_bootstrap) as producer:

            async def one(number: int) -> None:
                with traced.tracer.start_as_current_span(f"task {number}"):
                    await producer.send_and_wait(topic, b"%d" % number)

            await asyncio.gather(*(one(number) for number in range(3)))
            await (await producer.send_many(topic, [b"x", b"y"]))
            batch = producer.create_batch()
            batch.append(timestamp=None, key=None, value=b"z")
            await (await producer.send_batch(batch, topic, partition=0))

    asyncio.run(program())
    assert sorted(seen) == [("plain", (topic, b"%d" % number)) for number in range(3)]
    sends = [each for each in traced.spans(f"{topic} send") if "of.the.user" in each.attributes]
    for span in sends:
        (task,) = traced.spans(f"task {span.attributes['of.the.user']}")
        assert span.parent.span_id == task.context.span_id
    counts = [each.attributes.get("messaging.batch.message_count") for each in traced.spans()]
    assert sorted(each for each in counts if each) == [1, 2]
    by_value = {each.value: each for each in sent(traced_bootstrap, topic)}
    for span in sends:
        assert parent_in(by_value[span.attributes["of.the.user"].encode()]) == ids(span)


def test_a_hook_that_fails_stops_nothing(
    traced_bootstrap: str, topic: str, traced: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(*_: object) -> None:
        raise RuntimeError("of the user")

    traced.instrument(produce_hook=hook)
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        producer.send(topic, b"tea").get(30)
    assert traced.span(f"{topic} send").status.status_code is StatusCode.UNSET
    assert "of the user" in caplog.text


def test_what_is_suppressed_is_not_traced(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument()
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        token = context.attach(context.set_value(context._SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            producer.send(topic, b"1").get(30)
        finally:
            context.detach(token)
        assert trace.get_current_span() is trace.INVALID_SPAN
        producer.send(topic, b"2").get(30)
    assert len(traced.spans()) == 1


def test_serializers_partitioners_and_interceptors_work_as_before(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    class Renames:
        def on_send(self, record: Any) -> Any:
            return record.replace(value=record.value.upper())

    traced.instrument(meter_provider=traced.meters)
    with KafkaProducer(
        bootstrap_servers=traced_bootstrap,
        interceptors=[Renames],
        value_serializer=str.encode,
        key_serializer=str.encode,
    ) as producer:
        producer.send(topic, "tea", "k").get(30)
    (record,) = sent(traced_bootstrap, topic)
    assert (record.key, record.value) == (b"k", b"TEA")
    ((attributes, count),) = traced.measured("messaging.client.sent.messages")
    assert count == 1
    assert attributes["messaging.destination.name"] == topic
    assert "messaging.kafka.message.key" not in attributes
    ((_, times),) = traced.measured("messaging.client.operation.duration")
    assert times == 1
