"""Programs in the style of confluent-kafka's examples, with its library and with ours.

Each program gets the library as its one difference, and must see the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.compat.confluent import Confluent
from tests.compat.samples import until_deadline

from barnabas.testing import Cluster

pytestmark = pytest.mark.compat


def test_produce_lines_and_consume_them(
    confluent: Confluent, quick_bootstrap: str, name: str
) -> None:
    """The first program of every introduction."""
    confluent.topic(quick_bootstrap, name)
    producer = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    acked: list[str] = []

    def acked_or_failed(error: Any, message: Any) -> None:
        acked.append(f"{message.topic()} [{message.partition()}] @ {message.offset()}")

    for line in ("to be", "or not", "to be"):
        while True:
            try:
                producer.produce(name, line.rstrip(), callback=acked_or_failed)
                break
            except BufferError:
                producer.poll(1)
        producer.poll(0)
    producer.flush()
    assert acked == [f"{name} [0] @ {number}" for number in range(3)]

    consumer = confluent.consumer(quick_bootstrap, f"{name}.group")
    consumer.subscribe([name])
    counts: dict[str, int] = {}
    try:
        while sum(counts.values()) < 3:
            message = consumer.poll(timeout=1.0)
            if message is None:
                continue
            if message.error():
                raise confluent.kafka.KafkaException(message.error())
            line = message.value().decode()
            counts[line] = counts.get(line, 0) + 1
    finally:
        consumer.close()
    assert counts == {"to be": 2, "or not": 1}


def test_at_least_once(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    """Offsets are stored when a message is done; the rest is read again."""
    confluent.topic(quick_bootstrap, name)
    confluent.fill(quick_bootstrap, name, 6)
    conf = {"enable_auto_offset_store": False, "auto_commit_interval_ms": 100}
    done: list[bytes] = []

    def work(fail_at: bytes | None) -> None:
        consumer = confluent.consumer(quick_bootstrap, f"{name}.group", **conf)
        consumer.subscribe([name])
        try:
            while len(done) < 6:
                message = consumer.poll(1.0)
                if message is None:
                    continue
                if message.value() == fail_at:
                    raise RuntimeError("the program crashes")
                done.append(message.value())
                consumer.store_offsets(message)
        finally:
            consumer.close()

    with pytest.raises(RuntimeError):
        work(b"4")
    work(None)
    assert done == [b"%d" % number for number in range(6)]


def test_copy_with_transactions(
    confluent: Confluent, quick_bootstrap: str, new_name: Callable[[], str]
) -> None:
    """Read, transform and write, exactly once, with a crash in the middle."""
    source, target = (confluent.topic(quick_bootstrap, new_name()) for _ in range(2))
    confluent.fill(quick_bootstrap, source, 20)

    def copy(limit: int, crash: bool) -> None:
        consumer = confluent.consumer(quick_bootstrap, f"{source}.group", enable_auto_commit=False)
        consumer.subscribe([source])
        producer = confluent.kafka.Producer(
            {"bootstrap.servers": quick_bootstrap, "transactional.id": f"{source}.copy"}
        )
        producer.init_transactions()
        copied = 0
        while copied < limit:
            messages = consumer.consume(5, timeout=5.0)
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, value=b"<" + message.value() + b">", key=message.key())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            )
            copied += len(messages)
            if crash and copied >= limit:
                producer.flush()
                break  # neither committed nor aborted
            producer.commit_transaction()
        consumer.close()

    copy(10, crash=True)
    copy(15, crash=False)
    reader = confluent.consumer(quick_bootstrap, "not used", enable_partition_eof=True)
    reader.assign([confluent.kafka.TopicPartition(target, 0, 0)])
    found = []
    while (message := reader.poll(30)) is not None and message.error() is None:
        found.append(message.value())
    reader.close()
    assert found == [b"<%d>" % number for number in range(20)]


def test_objects(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    """Serializers of keys and values, and what becomes of objects that do not fit."""
    there = confluent.serialization
    confluent.topic(quick_bootstrap, name)

    def to_json(obj: Any, context: Any) -> bytes:
        assert (context.topic, context.field) == (name, there.MessageField.VALUE)
        return json.dumps(obj).encode()

    def from_json(data: bytes, context: Any) -> Any:
        assert (context.topic, context.field) == (name, there.MessageField.VALUE)
        return json.loads(data)

    producer = confluent.kafka.SerializingProducer(
        {
            "bootstrap.servers": quick_bootstrap,
            "key.serializer": there.StringSerializer("utf_8"),
            "value.serializer": to_json,
        }
    )
    told: list[Any] = []
    producer.produce(
        topic=name, key="ä", value={"n": 1}, on_delivery=lambda e, m: told.append(m.value())
    )
    with pytest.raises(confluent.error.ValueSerializationError) as failure:
        producer.produce(topic=name, key="b", value=object())
    assert failure.value.code == confluent.kafka.KafkaError._VALUE_SERIALIZATION
    assert failure.value.name == "_VALUE_SERIALIZATION"
    with pytest.raises(confluent.error.KeySerializationError):
        producer.produce(topic=name, key=5, value={})
    assert producer.flush() == 0
    assert told == [b'{"n": 1}']
    plain = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap})
    plain.produce(name, b"no JSON")
    plain.flush()
    consumer = confluent.kafka.DeserializingConsumer(
        {
            "bootstrap.servers": quick_bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "key.deserializer": there.StringDeserializer(),
            "value.deserializer": from_json,
        }
    )
    consumer.subscribe([name])
    message = consumer.poll(30)
    assert (message.key(), message.value()) == ("ä", {"n": 1})
    with pytest.raises(confluent.error.ValueDeserializationError) as bad:
        consumer.poll(30)
    assert bad.value.kafka_message.value() == b"no JSON"
    assert isinstance(bad.value, confluent.serialization.SerializationError)
    with pytest.raises(NotImplementedError):
        consumer.consume()
    consumer.close()


@pytest.mark.parametrize(
    ("kind", "good", "data", "bad"),
    [
        ("String", "ü", "ü".encode(), b"\xff"),
        ("Integer", -5, b"\xff\xff\xff\xfb", b"abc"),
        ("Double", 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00", b"abc"),
    ],
)
def test_serializers(confluent: Confluent, kind: str, good: Any, data: bytes, bad: bytes) -> None:
    there = confluent.serialization
    serialize = getattr(there, f"{kind}Serializer")()
    deserialize = getattr(there, f"{kind}Deserializer")()
    assert (serialize(good), serialize(None)) == (data, None)
    assert (deserialize(data), deserialize(None)) == (good, None)
    with pytest.raises(there.SerializationError):
        deserialize(bad)
    with pytest.raises((there.SerializationError, AttributeError)):  # of their strings
        serialize(object())


def test_asynchronous_programs(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)

    async def program() -> list[bytes]:
        told: list[str] = []
        async with confluent.aio.AIOProducer({"bootstrap.servers": quick_bootstrap}) as producer:
            futures = [await producer.produce(name, b"%d" % number) for number in range(10)]
            await producer.flush()
            messages = await asyncio.gather(*futures)
            assert [message.offset() for message in messages] == list(range(10))
            assert len(producer) == 0
            failing = await producer.produce(name, b"v", partition=9)
            await producer.flush()
            with pytest.raises(confluent.kafka.KafkaException):
                await failing

        async def assigned(consumer: Any, partitions: list[Any]) -> None:
            told.append("assigned")
            for each in partitions:
                each.offset = 2
            await consumer.assign(partitions)

        consumer = confluent.aio.AIOConsumer(
            {"bootstrap.servers": quick_bootstrap, "group.id": name, "enable.auto.commit": False}
        )
        await consumer.subscribe([name], on_assign=assigned)
        first = await consumer.poll(timeout=30)
        rest = await consumer.consume(7, timeout=30)
        (committed,) = await consumer.commit(asynchronous=False)
        assert committed.offset == 10
        await consumer.unsubscribe()
        await consumer.close()
        assert told == ["assigned"]
        return [first.value(), *(each.value() for each in rest)]

    assert asyncio.run(program()) == [b"%d" % number for number in range(2, 10)]


def test_asynchronous_objects(confluent: Confluent, quick_bootstrap: str, name: str) -> None:
    confluent.topic(quick_bootstrap, name)

    async def to_json(obj: Any, context: Any) -> bytes:
        return json.dumps(obj).encode()

    async def from_json(data: bytes, context: Any) -> Any:
        return json.loads(data)

    async def program() -> Any:
        producer = await confluent.aio.AsyncSerializingProducer(
            {"bootstrap.servers": quick_bootstrap, "value.serializer": to_json}
        )
        delivered = await producer.produce(name, value={"n": 1})
        await producer.flush()
        assert (await delivered).offset() == 0
        with pytest.raises(confluent.error.ValueSerializationError):
            await producer.produce(name, value=object())
        await producer.close()
        consumer = await confluent.aio.AsyncDeserializingConsumer(
            {
                "bootstrap.servers": quick_bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "value.deserializer": from_json,
            }
        )
        await consumer.subscribe([name])
        message = await consumer.poll(30)
        await consumer.close()
        return message.value()

    assert asyncio.run(program()) == {"n": 1}


def test_brokers_that_come_later_and_go(confluent: Confluent, name: str) -> None:
    """A client may be created before its cluster, and outlives a restart of it."""
    with Cluster() as cluster:
        confluent.topic(cluster.bootstrap, name)
        conf = {"bootstrap.servers": cluster.bootstrap, "reconnect.backoff.max.ms": 200}
        cluster.stop()
        errors: list[Any] = []
        reports: list[Any] = []
        producer = confluent.kafka.Producer({**conf, "error_cb": errors.append})
        consumer = confluent.kafka.Consumer(
            {**conf, "group.id": name, "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([name])
        producer.produce(name, b"early", on_delivery=lambda e, m: reports.append(e))
        for _ in until_deadline("the errors"):
            producer.poll(0.1)
            if confluent.kafka.KafkaError._ALL_BROKERS_DOWN in [each.code() for each in errors]:
                break
        cluster.start()
        assert producer.flush(60) == 0
        assert reports == [None]
        found: list[bytes] = []
        for _ in until_deadline("the message"):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append(message.value())
            if found == [b"early"]:
                break
        cluster.stop()
        producer.produce(name, b"late", on_delivery=lambda e, m: reports.append(e))
        cluster.start()
        assert producer.flush(60) == 0
        assert reports == [None, None]
        for _ in until_deadline("the other message"):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append(message.value())
            if found == [b"early", b"late"]:
                break
        consumer.close()


def test_throttling_is_told(confluent: Confluent, name: str) -> None:
    from barnabas import KafkaAdminClient
    from barnabas.admin import QuotaAlteration

    with Cluster() as cluster:
        with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
            quota = QuotaAlteration({"client-id": "slow"}, {"producer_byte_rate": 100_000.0})
            (outcome,) = admin.alter_client_quotas([quota])
            assert outcome.error is None
        confluent.topic(cluster.bootstrap, name)
        events: list[Any] = []
        producer = confluent.kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "client.id": "slow",
                "linger.ms": 0,
                "throttle_cb": events.append,
            }
        )
        for _ in until_deadline("throttling"):
            producer.produce(name, bytes(80_000))
            producer.poll(0.1)
            if events:
                break
        event = events[0]
        (broker,) = producer.list_topics(timeout=30).brokers
        assert (event.broker_name, event.broker_id) == (cluster.bootstrap, broker)
        assert 0 < event.throttle_time < 60
        assert "throttled for" in str(event)


def test_two_threads_with_one_consumer(quick_bootstrap: str, name: str) -> None:
    """One thread polls, and another one commits; with confluent-kafka 2.16 the commit hangs."""
    confluent = Confluent("barnabas.compat.confluent_kafka")
    confluent.topic(quick_bootstrap, name)
    confluent.fill(quick_bootstrap, name, 5)
    consumer = confluent.consumer(quick_bootstrap, name, enable_auto_commit=False)
    consumer.subscribe([name])
    messages: list[Any] = []
    over = threading.Event()

    def poll() -> None:
        while not over.is_set():
            message = consumer.poll(0.1)
            if message is not None:
                messages.append(message)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        for _ in until_deadline("five messages"):
            if len(messages) == 5:
                break
            time.sleep(0.01)
        (done,) = consumer.commit(messages[3], asynchronous=False)
    finally:
        over.set()
        thread.join()
    assert done.offset == 4
    consumer.close()


def test_a_thread_that_polls_for_a_producer(
    confluent: Confluent, quick_bootstrap: str, name: str
) -> None:
    """The reports come in one thread, and another one flushes."""
    confluent.topic(quick_bootstrap, name)
    producer = confluent.kafka.Producer({"bootstrap.servers": quick_bootstrap, "linger.ms": 0})
    reports: list[int] = []
    over = threading.Event()

    def poll() -> None:
        while not over.is_set():
            producer.poll(0.01)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        for number in range(500):
            producer.produce(
                name,
                b"%d" % number,
                on_delivery=lambda _, message: reports.append(message.offset()),
            )
            if number % 100 == 99:
                assert producer.flush(60) == 0
    finally:
        over.set()
        thread.join()
    producer.poll(0)
    assert sorted(reports) == list(range(500))


PROGRAM = """
import sys
from {root} import Consumer
consumer = Consumer({{"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2],
                     "auto.offset.reset": "earliest"}})
consumer.subscribe([sys.argv[2]])
try:
    while True:
        message = consumer.poll({timeout})
        if message is not None:
            print(message.value().decode(), flush=True)
except KeyboardInterrupt:
    print("interrupted")
finally:
    consumer.close()
"""


def test_ctrl_c(confluent: Confluent, quick_bootstrap: str, name: str, tmp_path: Path) -> None:
    """A poll without an end can be interrupted, and the group is left in order."""
    confluent.topic(quick_bootstrap, name)
    confluent.fill(quick_bootstrap, name, 1)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(root=confluent.root, timeout="" if confluent.ours else 0.5))
    process = subprocess.Popen(
        [sys.executable, str(program), quick_bootstrap, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "0\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (output, process.returncode) == ("interrupted\n", 0), errors
    assert "Traceback" not in errors
    consumer = confluent.consumer(quick_bootstrap, name)
    where = [confluent.kafka.TopicPartition(name, 0)]
    assert consumer.committed(where, 30)[0].offset == 1
    consumer.close()


def test_the_program_of_the_page(
    confluent: Confluent, quick_bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints the same with both libraries: what the page shows."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "move-to-barnabas.md").read_text()
    section = page[page.index("### The same program with another import") :]
    program = section.split("```python\n")[2].split("```")[0]
    shown = section.split("```text\n")[1].split("```")[0]
    topic = "moved-by-ours" if confluent.ours else "moved-by-theirs"
    for before, after in (
        ("barnabas.compat.confluent_kafka", confluent.root),
        ("localhost:9092", quick_bootstrap),
        ('"moved', f'"{topic}'),
        ('"movers', f'"{topic}'),
    ):
        assert before in program
        program = program.replace(before, after)
    exec(program, {})
    assert capsys.readouterr().out == shown.replace("moved", topic)
