"""KafkaProducer behind a proxy that breaks things: no gap, no duplicate, nothing hangs.

Every record is numbered. Whatever is cut, delayed, stalled or dropped at whichever point, the
partition holds each acknowledged record once and in order, and each failure has a name, says where
it happened, and comes before delivery.timeout.ms and a little.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from tests.network.fault_proxy import FaultProxy
from tests.unit.metronome import Metronome

from barnabas.blocking.producer import KafkaProducer
from barnabas.errors import KafkaError, KafkaTimeoutError
from barnabas.testing import Cluster
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest

RECORDS = 600
QUICK: dict[str, Any] = {
    "request_timeout_ms": 250,
    "delivery_timeout_ms": 8000,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 20,
    "batch_size": 500,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def read(cluster: Cluster, topic: str, **options: Any) -> list[int]:
    """Return the numbers in the topic's one partition."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", **options})
    _, end = consumer.get_watermark_offsets(Place(topic, 0), 10)
    consumer.assign([Place(topic, 0, 0)])
    found: list[int] = []
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found += [int(record.value()) for record in consumer.consume(500, 0.2) if record.value()]
        if consumer.position([Place(topic, 0)])[0].offset >= end:
            break
    consumer.close()
    return found


def send_all(producer: KafkaProducer, topic: str) -> list[Any]:
    return [producer.send(topic, str(number).encode(), partition=0) for number in range(RECORDS)]


@pytest.mark.parametrize("deed", ["cut", "stall", "drop"])
@pytest.mark.parametrize("at", ["request", "answer"])
@pytest.mark.parametrize(
    "api", [ProduceRequest, MetadataRequest, InitProducerIdRequest], ids=lambda api: api.__name__
)
def test_faults_leave_neither_gap_nor_duplicate(
    cluster: Cluster, proxy: FaultProxy, topic: str, deed: str, at: str, api: Any
) -> None:
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, **QUICK) as producer:
        if api is ProduceRequest:
            producer.send(topic, b"0", partition=0).get(10)
        fault = getattr(proxy, deed)(api, at=at, nth=3 if api is ProduceRequest else 1)
        futures = send_all(producer, topic)
        if deed == "stall" and fault.happened.wait(0.2):
            proxy.heal()
        producer.flush(20)
        assert all(future.succeeded() for future in futures), [
            str(future.exception) for future in futures if future.failed()
        ][:1]
        assert fault.happened.is_set()
    numbers = read(cluster, topic)
    assert numbers[-RECORDS:] == list(range(RECORDS))
    assert len(numbers) == RECORDS + (api is ProduceRequest)


@pytest.mark.parametrize("after_bytes", [0, 1, 7, 60, 300, -1])
@pytest.mark.parametrize("at", ["request", "answer"])
def test_cuts_inside_frames_are_no_exception(
    cluster: Cluster, proxy: FaultProxy, topic: str, at: str, after_bytes: int
) -> None:
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, **QUICK) as producer:
        producer.partitions_for(topic)
        for nth in (2, 9, 17):
            proxy.cut(ProduceRequest, at=at, nth=nth, after_bytes=after_bytes)  # type: ignore[arg-type]
        futures = send_all(producer, topic)
        producer.flush(20)
        assert [future.get(0).offset for future in futures] == list(range(RECORDS))
    assert read(cluster, topic) == list(range(RECORDS))


def test_every_connection_cut_again_and_again(
    cluster: Cluster, proxy: FaultProxy, topic: str
) -> None:
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, **QUICK) as producer:
        producer.partitions_for(topic)
        futures = []
        for number in range(RECORDS):
            futures.append(producer.send(topic, str(number).encode(), partition=0))
            if number % 100 == 50:
                proxy.cut_all()
        producer.flush(20)
        assert all(future.succeeded() for future in futures)
    assert read(cluster, topic) == list(range(RECORDS))


def test_a_silent_broker_is_named_when_the_time_is_up(proxy: FaultProxy, topic: str) -> None:
    options = {**QUICK, "delivery_timeout_ms": 600}
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, **options) as producer:
        producer.send(topic, b"1").get(10)
        proxy.freeze()
        began = time.monotonic()
        with Metronome() as clock:
            future = producer.send(topic, b"2")
            with pytest.raises(KafkaTimeoutError, match=r"delivery\.timeout\.ms") as caught:
                future.get(60)
        elapsed = time.monotonic() - began
        proxy.heal()
    assert elapsed > 0.5
    assert clock.elapsed_s < 3
    assert f"1 records for {topic}-0 were not delivered" in str(caught.value)
    assert "delivery.timeout.ms=600" in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_after_records_were_given_up_the_next_ones_arrive(
    cluster: Cluster, proxy: FaultProxy, topic: str
) -> None:
    """Records of unknown fate are not sent again, and those after them are accepted."""
    options = {**QUICK, "delivery_timeout_ms": 600}
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, **options) as producer:
        producer.send(topic, b"0", partition=0).get(10)
        for at in ("request", "answer"):
            proxy.drop(ProduceRequest, at=at, times=1000)  # type: ignore[arg-type]
            lost = producer.send(topic, b"1", partition=0)
            with pytest.raises(KafkaError):
                lost.get(10)
            proxy.heal()
            producer.send(topic, b"2", partition=0).get(10)
    numbers = read(cluster, topic)
    assert numbers.count(2) == 2
    assert numbers.count(1) <= 2
    assert numbers[0] == 0
    assert numbers[-1] == 2


def test_flush_and_close_do_not_outlast_their_time(proxy: FaultProxy, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap, **QUICK)
    producer.partitions_for(topic)
    proxy.refuse()
    future = producer.send(topic, b"v")
    clock = Metronome()
    with clock:
        with pytest.raises(
            KafkaTimeoutError, match="1 of 1 batches have no outcome after 200 ms"
        ) as flushing:
            producer.flush(0.2)
        with pytest.raises(KafkaTimeoutError, match=r"in 0\.1 s \(\d+ attempts?\): ") as waiting:
            future.get(0.1)
        producer.close(timeout=0.2)
    assert clock.elapsed_s < 3
    for caught in (flushing, waiting):
        assert f"{topic}-0" in str(caught.value)
        assert proxy.bootstrap in str(caught.value), "who could not be reached is named"
    assert future.failed()


@pytest.mark.parametrize("deed", ["cut", "drop"])
@pytest.mark.parametrize("at", ["request", "answer"])
@pytest.mark.parametrize(
    "api",
    [
        FindCoordinatorRequest,
        InitProducerIdRequest,
        AddPartitionsToTxnRequest,
        ProduceRequest,
        EndTxnRequest,
    ],
    ids=lambda api: api.__name__,
)
def test_transactions_survive_faults(
    cluster: Cluster, proxy: FaultProxy, topic: str, deed: str, at: str, api: Any
) -> None:
    fault = getattr(proxy, deed)(api, at=at)
    with KafkaProducer(
        bootstrap_servers=proxy.bootstrap, transactional_id=topic, **QUICK
    ) as producer:
        producer.init_transactions()
        for commit in (True, False, True):
            producer.begin_transaction()
            for number in range(20):
                producer.send(topic, str(number).encode(), partition=0)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert fault.happened.is_set()
    committed = read(cluster, topic, **{"isolation.level": "read_committed"})
    assert committed == [*range(20), *range(20)]
