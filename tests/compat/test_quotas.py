"""Quotas and clients that we did not write: held to the rate, and others go on.

How a rate is measured: `tests.held_rate`.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.held_rate import LIMIT, SECONDS, WINDOWS, Received

from barnabas import KafkaAdminClient as OurAdmin
from barnabas.admin.quotas import QuotaAlteration, QuotaFilter, QuotaMatch
from barnabas.testing.cluster import Cluster

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaProducer

pytestmark = pytest.mark.compat

VALUE = b"x" * 10_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(options={"quota.window.num": WINDOWS}, process=True) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[OurAdmin]:
    client = OurAdmin(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


def limit(admin: OurAdmin, client_id: str, **values: float) -> None:
    (outcome,) = admin.alter_client_quotas([QuotaAlteration({"client-id": client_id}, values)])
    assert outcome.error is None


def create(cluster: Cluster, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    stamped = {"message.timestamp.type": "LogAppendTime"}
    for future in client.create_topics([NewTopic(topic, 1, 1, config=stamped)]).values():
        future.result(30)


class Pressing(threading.Thread):
    """A producer that offers so many bytes a second, whatever becomes of them."""

    def __init__(self, cluster: Cluster, topic: str, client_id: str, rate: float) -> None:
        super().__init__(daemon=True)
        self.received = Received()
        self.throttles: list[float] = []
        self._topic = topic
        self._rate = rate
        self._ended = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "client.id": client_id,
                "batch.size": 100_000,
                "linger.ms": 5,
                "throttle_cb": lambda event: self.throttles.append(event.throttle_time),
                "log_level": 3,
            }
        )

    def run(self) -> None:
        began, offered = time.monotonic(), 0
        while not self._ended.is_set():
            if offered < (time.monotonic() - began) * self._rate:
                try:
                    self._producer.produce(self._topic, VALUE, on_delivery=self._delivered)
                    offered += len(VALUE)
                except BufferError:
                    self._producer.poll(0.01)
            self._producer.poll(0.001)
        self._producer.purge()
        self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            # The broker's clock: this process may learn of it late when the machine is busy.
            self.received.add(len(VALUE), message.timestamp()[1] / 1000)

    def end(self) -> None:
        self._ended.set()
        self.join(60)
        del self._producer  # else it looks for its broker until the end of the process


def until(condition: Any, what: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + SECONDS + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come true that {what}"
        time.sleep(0.05)


def test_a_producer_of_librdkafka_is_held_to_its_quota(cluster: Cluster, admin: OurAdmin) -> None:
    """To a tenth of what it offers, within 5 %; another one is not affected."""
    create(cluster, "greedy")
    create(cluster, "modest")
    limit(admin, "greedy", producer_byte_rate=LIMIT)
    greedy = Pressing(cluster, "greedy", "greedy", 10 * LIMIT)
    modest = Pressing(cluster, "modest", "modest", LIMIT)
    greedy.start()
    modest.start()
    try:
        until(lambda: greedy.received.rate() is not None, "it had bursts")
    finally:
        greedy.end()
        modest.end()
    rate = greedy.received.rate()
    assert rate is not None
    print(f"held to {rate / LIMIT:.3f} of its quota over {SECONDS} s, {WINDOWS} windows")
    assert abs(rate - LIMIT) <= 0.05 * LIMIT
    assert max(greedy.throttles) > 0
    assert not any(modest.throttles)
    took = modest.received.times[-1] - modest.received.times[0]
    assert modest.received.totals[-1] / took > 0.95 * LIMIT


def test_a_consumer_of_librdkafka_is_held_to_its_quota(cluster: Cluster, admin: OurAdmin) -> None:
    """It gets empty responses meanwhile, keeps its session, and misses nothing."""
    create(cluster, "read")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
    for _ in range(600):
        producer.produce("read", VALUE)
    assert producer.flush(60) == 0
    limit(admin, "reader", consumer_byte_rate=LIMIT)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "client.id": "reader",
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 100_000,
            "queued.max.messages.kbytes": 200,
            "fetch.queue.backoff.ms": 1,
            "log_level": 3,
        }
    )
    consumer.subscribe(["read"])
    offsets = []
    began = first = time.monotonic()
    while len(offsets) < 600:
        assert time.monotonic() - began < 120
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            if not offsets:
                first = time.monotonic()
            offsets.append(message.offset())
    took = time.monotonic() - first
    consumer.close()
    assert offsets == list(range(600))
    # 6 MB, of which the windows but one are free.
    assert took >= 6 - (WINDOWS - 1) - 0.5


def test_a_producer_of_kafka_python_rests(
    cluster: Cluster, admin: OurAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    """Two seconds' worth beyond what the windows allow takes two seconds, and all arrives."""
    create(cluster, "python")
    limit(admin, "python", producer_byte_rate=100_000)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id="python", linger_ms=0)
    began = time.monotonic()
    for _ in range((WINDOWS + 1) * 10):
        producer.send("python", VALUE).get(timeout=60)
    took = time.monotonic() - began
    producer.close()
    assert "ProduceResponse throttled by broker" in caplog.text
    assert took >= 1.5


def test_quotas_are_shown_as_they_were_set(admin: OurAdmin) -> None:
    """Through our client, as the tools of others do it."""
    limit(admin, "shown", consumer_byte_rate=7)
    found = admin.describe_client_quotas([QuotaFilter("client-id", QuotaMatch.EXACT, "shown")])
    assert [(dict(each.entity), dict(each.values)) for each in found] == [
        ({"client-id": "shown"}, {"consumer_byte_rate": 7.0})
    ]


def test_quotas_hold_at_every_broker_and_not_between_them() -> None:
    """A change at one is known at all; replication goes on while clients rest."""
    options = {"quota.window.num": 2, "min.insync.replicas": 3}
    with Cluster(brokers=3, options=options) as cluster:
        client = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for future in client.create_topics([NewTopic("t", 3, 3)]).values():
            future.result(30)
        with OurAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            everyone = QuotaAlteration(
                {"user": None},
                {
                    "producer_byte_rate": 200_000.0,
                    "consumer_byte_rate": 1.0,
                    "request_percentage": 100.0,
                },
            )
            (outcome,) = admin.alter_client_quotas([everyone])
            assert outcome.error is None

            def known() -> bool:
                usage = admin.describe_quota_usage()
                return all(isinstance(each, list) and each for each in usage.values())

            until(known, "every broker measures")
            # With acks=all each record is fetched by two followers, above what a client may.
            producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
            delivered: list[Any] = []
            for number in range(90):
                producer.produce(
                    "t",
                    VALUE,
                    partition=number % 3,
                    on_delivery=lambda error, _: delivered.append(error),
                )
            assert producer.flush(60) == 0
            assert delivered == [None] * 90
            usages = [
                usage
                for each in admin.describe_quota_usage().values()
                if isinstance(each, list)
                for usage in each
            ]
        shared = {(usage.key, usage.entity.get("user")) for usage in usages}
        assert shared == {
            ("producer_byte_rate", "ANONYMOUS"),
            ("request_percentage", "ANONYMOUS"),
        }
