"""A consumer behind a proxy that breaks things: nothing lost, nothing twice, nothing hangs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.network.fault_proxy import FaultProxy
from tests.unit.consumer.logs import numbered, write
from tests.unit.metronome import Metronome

from barnabas.blocking.consumer import KafkaConsumer
from barnabas.errors import KafkaError, KafkaTimeoutError
from barnabas.model.ids import TopicPartition
from barnabas.testing import Cluster
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.schema import Message

Topic = Callable[..., str]

QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "request_timeout_ms": 700,
    "fetch_max_wait_ms": 100,
    "retry_backoff_ms": 10,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "max_partition_fetch_bytes": 2000,
}


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap) as running:
        yield running


def read(consumer: KafkaConsumer, count: int) -> list[int]:
    values: list[int] = []
    deadline = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            values += [int(record.value) for record in records]
    return values


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except KafkaError as failure:
        return failure


def long_log(cluster: Cluster, topic: Topic) -> TopicPartition:
    """Return a partition with 300 records in many batches."""
    partition = TopicPartition(topic(), 0)
    for start in range(0, 300, 20):
        write(cluster.bootstrap, partition, numbered(20, start))
    return partition


@pytest.mark.parametrize("at", ["request", "answer"])
@pytest.mark.parametrize("after_bytes", [0, 3, 40, -1])
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_cut_fetches(
    cluster: Cluster, proxy: FaultProxy, topic: Topic, at: str, after_bytes: int, nth: int
) -> None:
    """Wherever a fetch is cut, reading goes on with the next record."""
    partition = long_log(cluster, topic)
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap, **QUICK) as consumer:
        consumer.assign([partition])
        fault = proxy.cut(FetchRequest, nth=nth, at=at, after_bytes=after_bytes)
        assert read(consumer, 300) == list(range(300))
        assert fault.happened.wait(60)
        assert consumer.position(partition) == 300


@pytest.mark.parametrize("deed", ["stall", "drop"])
@pytest.mark.parametrize("at", ["request", "answer"])
def test_fetches_that_are_never_answered(
    cluster: Cluster, proxy: FaultProxy, topic: Topic, deed: str, at: str
) -> None:
    """A silent broker is left after request.timeout.ms, and reading goes on."""
    partition = long_log(cluster, topic)
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap, **QUICK) as consumer:
        consumer.assign([partition])
        fault = getattr(proxy, deed)(FetchRequest, nth=2, at=at)
        assert read(consumer, 300) == list(range(300))
        assert fault.happened.wait(60)


@pytest.mark.parametrize("api", [ListOffsetsRequest, MetadataRequest, OffsetFetchRequest])
@pytest.mark.parametrize("at", ["request", "answer"])
def test_cut_preparations(
    cluster: Cluster, proxy: FaultProxy, topic: Topic, api: type[Message], at: str
) -> None:
    """Positions and committed offsets are found at the second attempt."""
    partition = long_log(cluster, topic)
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap, group_id="faults", **QUICK) as consumer:
        proxy.cut(api, at=at)
        consumer.assign([partition])
        assert read(consumer, 300) == list(range(300))


def test_all_connections_cut_again_and_again(
    cluster: Cluster, proxy: FaultProxy, topic: Topic
) -> None:
    """However often everything is cut, records come once and in order."""
    partition = long_log(cluster, topic)
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap, **QUICK, max_poll_records=20) as consumer:
        consumer.assign([partition])
        values: list[int] = []
        while len(values) < 300:
            values += read(consumer, 20)
            proxy.cut_all()
        assert values == list(range(300))


def test_nothing_hangs(cluster: Cluster, proxy: FaultProxy, topic: Topic) -> None:
    """With brokers that accept and say nothing, every call ends about when it should."""
    partition = long_log(cluster, topic)
    consumer = KafkaConsumer(bootstrap_servers=proxy.bootstrap, group_id="frozen", **QUICK)
    consumer.assign([partition])
    assert read(consumer, 300) == list(range(300))
    proxy.freeze()
    calls: list[Callable[[], Any]] = [
        lambda: consumer.poll(timeout_ms=300),
        lambda: consumer.end_offsets([partition], timeout_ms=300),
        lambda: consumer.committed(partition, timeout_ms=300),
        lambda: consumer.commit(timeout_ms=300),
    ]
    for call in calls:
        with Metronome() as clock:
            outcome = _outcome(call)
        assert outcome == {} or isinstance(outcome, KafkaTimeoutError) or outcome.retriable
        assert clock.elapsed_s < 3
    with Metronome() as clock:
        consumer.close(timeout_ms=300)
    assert clock.elapsed_s < 5


def test_closing_takes_its_time_once(cluster: Cluster, proxy: FaultProxy, topic: Topic) -> None:
    """A member that commits, leaves and ends its sessions in vain shares the time among them."""
    partition = long_log(cluster, topic)
    consumer = KafkaConsumer(
        partition.topic, bootstrap_servers=proxy.bootstrap, group_id="leaving", **QUICK
    )
    assert read(consumer, 300) == list(range(300))
    proxy.freeze()
    with Metronome() as clock:
        consumer.close(timeout_ms=2000)
    assert clock.elapsed_s < 3.8  # its time, and a second for the connections


def test_a_broker_that_comes_back(cluster: Cluster, proxy: FaultProxy, topic: Topic) -> None:
    """While nobody answers, polls are empty and health tells why; later reading goes on."""
    partition = long_log(cluster, topic)
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap, **QUICK) as consumer:
        consumer.assign([partition])
        assert read(consumer, 300) == list(range(300))
        proxy.refuse()
        deadline = time.monotonic() + 60
        troubled = False
        while not troubled and time.monotonic() < deadline:
            assert consumer.poll(timeout_ms=50) == {}
            health = consumer.health()
            troubled = health["partitions"][str(partition)]["last_failure"] is not None
        assert troubled
        assert health["status"].startswith("failing")
        write(cluster.bootstrap, partition, numbered(10, 300))
        proxy.heal()
        assert read(consumer, 10) == list(range(300, 310))
