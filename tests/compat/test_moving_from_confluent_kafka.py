"""The table of docs/how-to/move-to-barnabas.md: what a program for confluent-kafka becomes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.compat.samples import until_deadline

from barnabas import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from barnabas.admin import NewTopic
from barnabas.errors import UnknownTopicOrPartitionError
from barnabas.model.errors import ConfigError

pytestmark = pytest.mark.compat


def test_options_under_the_names_of_librdkafka(quick_bootstrap: str, name: str) -> None:
    conf = {
        "metadata.broker.list": quick_bootstrap,
        "queue.buffering.max.ms": 10,
        "request.required.acks": "all",
        "max.in.flight": 5,
    }
    with KafkaProducer(**conf) as producer:
        assert producer.config["linger_ms"] == 10
        assert producer.send(name, b"v").get(30).offset == 0
    with pytest.raises(ConfigError, match=r"statistics\.interval\.ms: no such option"):
        KafkaProducer(**conf, **{"statistics.interval.ms": 1000})


def test_produce_with_callbacks_that_need_no_poll(quick_bootstrap: str, name: str) -> None:
    told = threading.Event()
    with KafkaProducer(**{"bootstrap.servers": quick_bootstrap}) as producer:
        producer.send(name, b"value", b"key").add_callback(lambda metadata: told.set())
        assert told.wait(30)
        places = producer.send_many(name, [(b"k", b"v"), (b"k", b"w")]).get(30)
        assert sum(place.count for place in places) == 2


def test_consume_commit_and_listen(quick_bootstrap: str, name: str) -> None:
    assigned: list[Any] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            pass

        def on_partitions_assigned(self, partitions: set[TopicPartition]) -> None:
            assigned.extend(partitions)

    with KafkaProducer(**{"bootstrap.servers": quick_bootstrap}) as producer:
        producer.send_many(name, [b"%d" % number for number in range(10)]).get(30)
    conf = {
        "bootstrap.servers": quick_bootstrap,
        "group.id": name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    place = TopicPartition(name, 0)
    with KafkaConsumer(**conf) as consumer:
        consumer.subscribe([name], listener=Listener())
        found: list[Any] = []
        for _ in until_deadline("ten records"):
            found += consumer.consume(500, 1.0)
            if len(found) == 10:
                break
        assert [record.value for record in found] == [b"%d" % number for number in range(10)]
        assert assigned == [place]
        done = consumer.commit_async()
        for _ in until_deadline("the commit"):
            consumer.poll(10)
            if done.done():
                break
        assert done.result() is None
        assert consumer.committed(place) == 10
        consumer.commit()


def test_administration_waits_and_raises(quick_bootstrap: str, name: str) -> None:
    with KafkaAdminClient(**{"bootstrap.servers": quick_bootstrap}) as admin:
        admin.create_topics([NewTopic(name, 2, 1)])
        assert name in admin.list_topics()
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.delete_topics([f"{name}-not"])
