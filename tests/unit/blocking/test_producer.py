"""KafkaProducer against a real broker: records, errors, limits, threads, forks, transactions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from tests.unit.metronome import Metronome

from barnabas.blocking.producer import KafkaProducer
from barnabas.errors import (
    ClientForkedError,
    ConfigError,
    IllegalStateError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NoBrokersAvailable,
    ProducerClosed,
    ProducerFencedError,
    TransactionAbortedError,
)
from barnabas.model.serializer import JsonSerializer
from barnabas.structs import OffsetAndMetadata, TopicPartition
from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(options={"num.partitions": 3, "group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as made:
        yield made


def read(cluster: Cluster, topic: str, count: int, **options: Any) -> list[Any]:
    """Read a topic from its beginning with a client that is not ours."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            **options,
        }
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([Place(topic, number, 0) for number in partitions])
    found: list[Any] = []
    deadline = time.monotonic() + 20
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.consume(count - len(found), 0.2)
    consumer.close()
    return found


def test_a_record_arrives_with_everything(
    cluster: Cluster, producer: KafkaProducer, topic: str
) -> None:
    metadata = producer.send(topic, b"value", b"key", [("h", b"1")], 2, 1234).get(10)
    assert metadata[:5] == (topic, 2, TopicPartition(topic, 2), 0, 1234)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (3, 5)
    [record] = read(cluster, topic, 1)
    assert (record.value(), record.key(), record.headers()) == (b"value", b"key", [("h", b"1")])
    assert (record.partition(), record.timestamp()[1]) == (2, 1234)


def test_keywords_and_order_are_kafka_pythons(producer: KafkaProducer, topic: str) -> None:
    future = producer.send(topic=topic, value=b"v", key=b"k", headers=[], partition=0)
    assert future.get(timeout=10).offset == 0
    assert future.succeeded()
    assert future.is_done
    assert future.exception is None


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs(cluster: Cluster, topic: str, codec: str) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, compression_type=codec) as producer:
        futures = [producer.send(topic, b"a" * 500, partition=0) for _ in range(50)]
        producer.flush(10)
        assert [future.value.offset for future in futures] == list(range(50))
        rate = producer.metrics()["producer-metrics"]["compression-rate-avg"]
    assert rate < 0.5
    assert [record.value() for record in read(cluster, topic, 50)] == [b"a" * 500] * 50


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(cluster: Cluster, topic: str, acks: int | str) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=acks) as producer:
        metadata = producer.send(topic, b"v", partition=0).get(10)
    assert metadata.offset == (-1 if acks == 0 else 0)
    assert len(read(cluster, topic, 1)) == 1


def test_dotted_names(cluster: Cluster, topic: str) -> None:
    options = {"bootstrap.servers": cluster.bootstrap, "linger.ms": "5", "batch.size": "100"}
    with KafkaProducer(**options) as producer:
        futures = [producer.send(topic, b"x" * 40, partition=0) for _ in range(4)]
        assert [future.get(10).offset for future in futures] == [0, 1, 2, 3]
        assert producer.metrics()["producer-metrics"]["batch-size-max"] <= 120


def test_serializers_interceptors_and_a_partitioner(cluster: Cluster, topic: str) -> None:
    class Tags:
        def __init__(self) -> None:
            self.heard: list[Any] = []
            self.closed = False

        def on_send(self, record: Any) -> Any:
            return record.replace(headers=[("tag", b"1")])

        def on_acknowledgement(self, metadata: Any, failure: Any) -> None:
            self.heard.append((metadata.partition, failure))

        def close(self) -> None:
            self.closed = True

    class Broken:
        def on_send(self, record: Any) -> Any:
            raise RuntimeError("of the interceptor")

    tags = Tags()
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        key_serializer=lambda key: None if key is None else key.encode(),
        value_serializer=lambda value: json.dumps(value).encode(),
        partitioner=lambda key, every, available: max(every),
        interceptors=[tags, Broken],
    ) as producer:
        producer.send(topic, {"a": 1}, "key").get(10)
        assert producer.send_many(topic, [("k", [1]), {"b": 2}]).get(10)[0].partition == 2
        with pytest.raises(TypeError):
            producer.send(topic, object())
    assert tags.closed
    assert tags.heard[:3] == [(2, None)] * 3, "each record is told of, those of send_many too"
    records = read(cluster, topic, 3)
    assert [json.loads(record.value()) for record in records] == [{"a": 1}, [1], {"b": 2}]
    assert records[0].headers() == [("tag", b"1")]


def test_an_interceptor_cannot_send_a_row_elsewhere(cluster: Cluster, topic: str) -> None:
    """`send` follows it to another topic; `send_many` says that it cannot."""

    class Elsewhere:
        def on_send(self, record: Any) -> Any:
            return record.replace(topic=f"{topic}-2")

    with KafkaProducer(bootstrap_servers=cluster.bootstrap, interceptors=[Elsewhere()]) as producer:
        assert producer.send(topic, b"v").get(10).topic == f"{topic}-2"
        with pytest.raises(ValueError, match=f"topic of a row from '{topic}' to '{topic}-2'"):
            producer.send_many(topic, [b"v"])


def test_callbacks_run_on_the_producers_thread_in_order(
    producer: KafkaProducer, topic: str
) -> None:
    offsets: list[int] = []
    threads: set[str] = set()

    def delivered(metadata: Any) -> None:
        offsets.append(metadata.offset)
        threads.add(threading.current_thread().name)

    for _ in range(500):
        producer.send(topic, b"v", partition=1).add_callback(delivered).add_errback(pytest.fail)
    producer.flush(10)
    assert offsets == list(range(500))
    assert threads == {producer.config["client_id"]}


def test_waiting_inside_a_callback_is_refused_instead_of_hanging(
    producer: KafkaProducer, topic: str
) -> None:
    heard: list[Any] = []

    def delivered(_: Any) -> None:
        try:
            producer.send(topic, b"inner").get(5)
        except IllegalStateError as failure:
            heard.append(failure)

    producer.send(topic, b"outer").add_callback(delivered).get(10)
    producer.flush(10)
    assert len(heard) == 1


def test_many_rows(cluster: Cluster, producer: KafkaProducer, topic: str) -> None:
    rows = [(str(n).encode(), b"v" * 100) for n in range(5000)]
    ranges = producer.send_many(topic, rows).get(10)
    assert sum(part.count for part in ranges) == 5000
    assert {part.partition for part in ranges} == {0, 1, 2}
    assert {record.key() for record in read(cluster, topic, 5000)} == {key for key, _ in rows}


def test_many_rows_awaited_on_a_loop(producer: KafkaProducer, topic: str) -> None:
    async def program() -> int:
        return sum(part.count for part in await producer.send_many(topic, [b"v"] * 100))

    assert asyncio.run(asyncio.wait_for(program(), 10)) == 100


def test_a_serializer_may_be_a_class(cluster: Cluster, topic: str) -> None:
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, value_serializer=JsonSerializer
    ) as producer:
        producer.send(topic, {"a": 1}).get(10)
    assert read(cluster, topic, 1)[0].value() == b'{"a": 1}'


def test_a_bad_row_is_named_and_those_before_it_are_sent(
    cluster: Cluster, producer: KafkaProducer, topic: str
) -> None:
    with pytest.raises(TypeError) as caught:
        producer.send_many(topic, [b"a", b"b", 3.5])
    assert caught.value.__notes__ == ["row 2; the rows before it are queued"]
    producer.flush(10)
    assert len(read(cluster, topic, 2)) == 2


def test_a_table(cluster: Cluster, producer: KafkaProducer, topic: str) -> None:
    table = pa.table(
        {
            "value": [b"a", b"b", b"c"],
            "key": ["x", None, "z"],
            "partition": pa.array([0, 1, None], pa.int32()),
            "timestamp": pa.array([5, None, 7], pa.timestamp("ms")),
        }
    )
    future = producer.send_arrow(topic, table, partition=2)
    future.get(10)
    assert future.succeeded()
    assert future.count == 3
    records = {record.value(): record for record in read(cluster, topic, 3)}
    assert {value: record.partition() for value, record in records.items()} == {
        b"a": 0,
        b"b": 1,
        b"c": 2,
    }
    assert records[b"a"].timestamp()[1] == 5
    assert records[b"b"].key() is None
    headers = pa.table({"value": ["x"], "headers": [[{"key": "h", "value": b"1"}]]})
    producer.send_arrow(topic, headers, partition=0).get(10)
    assert read(cluster, topic, 4)[-1].value() in {b"x", b"a", b"b", b"c"}
    with pytest.raises(ValueError, match="must have value, and may have key"):
        producer.send_arrow(topic, pa.table({"values": [b"a"]}))


def test_bad_input_is_refused_by_name(producer: KafkaProducer, topic: str) -> None:
    with pytest.raises(TypeError, match="value is of type str: must be bytes"):
        producer.send(topic, "text")
    with pytest.raises(TypeError, match="key is of type int"):
        producer.send(topic, b"v", key=5)
    with pytest.raises(TypeError, match=r"headers .* must be a list of"):
        producer.send(topic, b"v", headers={"h": b"1"})
    with pytest.raises(TypeError, match=r"timestamp_ms 1\.5"):
        producer.send(topic, b"v", timestamp_ms=1.5)
    with pytest.raises(ValueError, match="at least one of key and value"):
        producer.send(topic)
    with pytest.raises(ValueError, match="is not allowed: only letters"):
        producer.send("no spaces", b"v")
    with pytest.raises(TypeError, match="topic 5 must be a str, not int"):
        producer.send(5, b"v")
    producer.partitions_for(topic)
    with pytest.raises(ValueError, match=r"partition 3 of .* must be 0 to 2"):
        producer.send(topic, b"v", partition=3)
    with pytest.raises(MessageSizeTooLargeError, match=r"max.request.size=1048576"):
        producer.send(topic, b"v" * 2_000_000)
    assert producer.send(topic, b"good").get(10).offset >= 0


def test_unknown_options_are_refused_with_a_hint(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="linger_msec: no such option; did you mean linger_ms"):
        KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_msec=5)
    with pytest.raises(ConfigError, match="acks=2: must be 0, 1 or all"):
        KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=2)
    with pytest.raises(ConfigError, match="acks=1: must be all for an idempotent producer"):
        KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=1, enable_idempotence=True)
    with pytest.raises(ConfigError, match=r"transactional\.id=: must not be empty"):
        KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id="")
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is empty"):
        KafkaProducer(bootstrap_servers=[])
    with pytest.raises(ConfigError, match=r"delivery.timeout.ms=10: must be at least"):
        KafkaProducer(bootstrap_servers=cluster.bootstrap, delivery_timeout_ms=10)


def test_nobody_there() -> None:
    with Metronome() as clock, pytest.raises(NoBrokersAvailable, match="connection refused"):
        KafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=200)
    assert clock.elapsed_s < 5


def test_a_topic_that_cannot_be_found_in_time() -> None:
    with (
        Cluster(options={"auto.create.topics.enable": "false"}) as strict,
        KafkaProducer(bootstrap_servers=strict.bootstrap, max_block_ms=200) as producer,
    ):
        with pytest.raises(KafkaTimeoutError, match=r"'absent' could not be found .* 3|absent"):
            producer.send("absent", b"v")
        with pytest.raises(KafkaTimeoutError):
            producer.partitions_for("absent")


def test_memory_that_is_taken_for_too_long(cluster: Cluster, topic: str) -> None:
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        batch_size=1000,
        buffer_memory=2000,
        linger_ms=20_000,
        max_block_ms=1000,
    ) as producer:
        producer._await_topic(topic, 60_000)
        stopped = producer._core.cluster_client.ready
        producer._core.cluster_client.ready = lambda *_, **__: None  # type: ignore[method-assign]
        producer.send_many(topic, [b"x" * 900] * 2, partition=0)
        with pytest.raises(KafkaTimeoutError, match=r"buffer.memory=2000 is full"):
            producer.send(topic, b"x" * 900, partition=0)
        producer._core.cluster_client.ready = stopped  # type: ignore[method-assign]
        producer.flush(10)
        assert producer.send(topic, b"x", partition=0)
        producer.flush(10)


def test_more_than_the_memory_goes_through(cluster: Cluster, topic: str) -> None:
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, batch_size=4000, buffer_memory=16_000
    ) as producer:
        threads = [
            threading.Thread(target=lambda: [producer.send(topic, b"x" * 300) for _ in range(1000)])
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        producer.flush(20)
    assert len(read(cluster, topic, 3000)) == 3000


def test_closing_sends_what_is_queued_and_then_nothing_is_taken(
    cluster: Cluster, topic: str
) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=10_000)
    send = producer.send
    future = send(topic, b"v")
    producer.close(timeout=10)
    assert future.succeeded()
    for late in (producer.send, send):
        with pytest.raises(ProducerClosed):
            late(topic, b"v")
    with pytest.raises(ProducerClosed):
        producer.flush()
    with pytest.raises(ValueError, match="timeout -1"):
        producer.close(-1)
    producer.close()


def test_closing_without_time_gives_up_what_waits(cluster: Cluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=10_000)
    producer.partitions_for(topic)
    producer._core.cluster_client.ready = lambda *_, **__: None  # type: ignore[method-assign]
    future = producer.send(topic, b"v")
    producer.close(timeout=0)
    assert isinstance(future.exception, ProducerClosed)


def test_a_producer_that_nobody_holds_ends(cluster: Cluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=10_000)
    future = producer.send(topic, b"v")
    name = producer.config["client_id"]
    del producer
    assert future.succeeded()
    assert name not in {thread.name for thread in threading.enumerate()}


def test_a_forked_child_is_told(cluster: Cluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    future = producer.send(topic, b"parent")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            producer.send(topic, b"child")
        except ClientForkedError:
            try:
                producer.flush(1)
            except ClientForkedError:
                code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert future.get(10).offset == 0
    assert producer.send(topic, b"parent").get(10).offset >= 0
    producer.close()


def test_ctrl_c_ends_a_wait_at_once(cluster: Cluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=30_000)
    future = producer.send(topic, b"v")

    clock = Metronome()
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(clock.elapsed_s)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def interrupted(wait: Callable[[], object]) -> None:
        threading.Timer(0.2, interrupt).start()
        wait()

    with clock:
        for wait in (lambda: future.get(20), lambda: producer.send("x" * 5, b"v").get(20)):
            with pytest.raises(KeyboardInterrupt):
                interrupted(wait)
            assert clock.elapsed_s - sent[-1] < 0.5
    producer.close()
    assert future.succeeded()


def test_a_transaction_is_seen_whole_or_not_at_all(cluster: Cluster, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=topic) as producer:
        with pytest.raises(IllegalStateError, match="not initialized"):
            producer.send(topic, b"early")
        producer.init_transactions()
        with pytest.raises(IllegalStateError, match="not in a transaction"):
            producer.send(topic, b"early")
        producer.begin_transaction()
        for number in range(10):
            producer.send(topic, b"good", partition=number % 3)
        producer.commit_transaction()
        producer.begin_transaction()
        sent = producer.send(topic, b"bad", partition=0)
        sent.get(10)
        waiting = producer.send(topic, b"bad", partition=1)
        producer.abort_transaction()
        assert waiting.succeeded() or isinstance(waiting.exception, TransactionAbortedError)
        producer.begin_transaction()
        producer.send(topic, b"good", partition=0)
        producer.send_offsets_to_transaction(
            {TopicPartition(topic, 0): OffsetAndMetadata(5, "note")}, topic
        )
        producer.commit_transaction()
    records = read(cluster, topic, 11, **{"isolation.level": "read_committed"})
    assert [record.value() for record in records] == [b"good"] * 11
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": topic})
    [place] = reader.committed([Place(topic, 0)], 10)
    reader.close()
    assert place.offset == 5


def test_a_second_producer_of_the_same_name_takes_over(cluster: Cluster, topic: str) -> None:
    options: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "transactional_id": topic}
    with KafkaProducer(**options) as old, KafkaProducer(**options) as new:
        old.init_transactions()
        old.begin_transaction()
        old.send(topic, b"old").get(10)
        new.init_transactions()
        with pytest.raises(ProducerFencedError):
            old.commit_transaction()
        with pytest.raises(ProducerFencedError):
            old.begin_transaction()
        new.begin_transaction()
        new.send(topic, b"new")
        new.commit_transaction()
    records = read(cluster, topic, 1, **{"isolation.level": "read_committed"})
    assert [record.value() for record in records] == [b"new"]


def test_transactions_need_a_name(producer: KafkaProducer) -> None:
    with pytest.raises(IllegalStateError, match=r"begin_transaction: .* no transactional.id"):
        producer.begin_transaction()


def test_metrics_have_kafkas_names(producer: KafkaProducer, topic: str) -> None:
    for _ in range(5):
        producer.send(topic, b"v", partition=0)
    producer.flush(10)
    metrics = producer.metrics()
    assert metrics["producer-metrics"]["record-send-total"] == 5
    assert metrics["producer-metrics"]["request-total"] > 0
    assert metrics[f"producer-topic-metrics.{topic}"]["record-send-total"] == 5
    with pytest.raises(ValueError, match="raw=True"):
        producer.metrics(raw=True)


def test_a_large_record_gets_its_memory_among_many_small_senders(
    cluster: Cluster, topic: str
) -> None:
    """First come, first served: small records that come later do not take what it waits for."""
    small, large = b"s" * 900, b"L" * 12_000
    enough = threading.Event()
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        batch_size=1000,
        buffer_memory=16_000,
        max_block_ms=30_000,
    ) as producer:
        producer._await_topic(topic, 60_000)
        counts = [0] * 6
        failures: list[BaseException] = []

        def send_small(number: int) -> None:
            try:
                while not enough.is_set():
                    producer.send(topic, small, partition=0)
                    counts[number] += 1
            except KafkaTimeoutError as failure:
                failures.append(failure)

        threads = [threading.Thread(target=send_small, args=(each,)) for each in range(6)]
        for thread in threads:
            thread.start()
        overtaking = []
        try:
            for _ in range(20):
                before = sum(counts)
                producer.send(topic, large, partition=0)
                overtaking.append(sum(counts) - before)
        finally:
            enough.set()
            for thread in threads:
                thread.join(60)
        assert not failures
        producer.flush(60)
        # Those that were in the queue before it, and some while this thread did not run.
        assert max(overtaking) <= 100, overtaking
        assert min(counts) > 0
    values = [record.value() for record in read(cluster, topic, sum(counts) + 20)]
    assert values.count(large) == 20
    assert values.count(small) == sum(counts)
