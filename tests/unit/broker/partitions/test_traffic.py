"""Traffic per topic and in total, counted by a broker that serves."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.broker.scraping import Scrape, scrape
from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    produce,
)

from barnabas.broker.partitions import traffic as module
from barnabas.broker.partitions.traffic import OTHER, Traffic
from barnabas.metrics.catalogue import traffic as catalogue
from barnabas.metrics.catalogue.rejections import REJECTIONS
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import Record
from barnabas.records.legacy import encode_message
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest


def partition(topic: str, number: int = 0, **more: Any) -> Any:
    state = {"traffic": None, "is_assigned_leader": True, "adding": (), **more}
    return SimpleNamespace(topic_partition=TopicPartition(topic, number), **state)


def test_the_partitions_of_a_topic_share_its_numbers() -> None:
    traffic = Traffic()
    first, second, other = partition("a"), partition("a", 1), partition("b")
    assert traffic.of(first) is traffic.of(second) is first.traffic
    assert traffic.of(other) is not first.traffic
    first.traffic.bytes_in += 3
    second.traffic.bytes_in += 4
    other.traffic.bytes_in += 5
    assert list(traffic.by_topic("bytes_in")) == [("a", 7), ("b", 5)]
    assert traffic.total("bytes_in") == 12


def test_a_topic_that_is_no_longer_led_keeps_what_consumers_read() -> None:
    traffic = Traffic()
    led, followed = partition("a"), partition("a", 1, is_assigned_leader=False)
    for each in (led, followed):
        traffic.of(each)
    led.traffic.bytes_in, led.traffic.bytes_out = 3, 4
    for _ in traffic.keep([led, followed]):
        pass
    assert list(traffic.by_topic("bytes_in")) == [("a", 3)]
    led.is_assigned_leader = False
    for _ in traffic.keep([led, followed]):
        pass
    assert list(traffic.by_topic("bytes_in")) == []
    assert list(traffic.by_topic("bytes_out")) == [("a", 4)]
    assert traffic.total("bytes_in") == 3
    led.traffic.bytes_in += 1
    assert traffic.total("bytes_in") == 4, "it counts on"


def test_a_topic_that_is_gone_stays_in_the_total() -> None:
    traffic = Traffic()
    gone, hosted = partition("gone"), partition("hosted")
    traffic.of(gone).bytes_out = 5
    traffic.of(hosted).bytes_out = 6
    for _ in traffic.keep([hosted]):
        pass
    assert list(traffic.by_topic("bytes_out")) == [("hosted", 6)]
    assert traffic.total("bytes_out") == 11
    traffic.topic_deleted("hosted")
    traffic.topic_deleted("hosted")
    assert list(traffic.by_topic("bytes_out")) == []
    assert traffic.total("bytes_out") == 11


def test_topics_beyond_the_limit_are_counted_together_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "TOPICS_MAX", 2)
    traffic = Traffic()
    hosted = [partition(name) for name in "abcd"]
    with caplog.at_level(logging.WARNING):
        for number, each in enumerate(hosted, 1):
            traffic.of(each).messages_in += number
        for _ in traffic.keep(hosted):
            pass
    assert list(traffic.by_topic("messages_in")) == [("a", 1), ("b", 2), (OTHER, 7)]
    assert len(caplog.records) == 1


def test_bytes_for_replicas_that_are_being_added() -> None:
    traffic = Traffic()
    traffic.replicated_in(partition("a", adding=(1,)), 10, 1)
    traffic.replicated_in(partition("a"), 5, 1)
    traffic.replicated_out(partition("a", adding=(1, 2)), 20, 2)
    traffic.replicated_out(partition("a", adding=(1, 2)), 7, 3)
    assert (traffic.replication_bytes_in, traffic.reassignment_bytes_in) == (15, 10)
    assert (traffic.replication_bytes_out, traffic.reassignment_bytes_out) == (27, 20)


# through a broker


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A broker of each test's own, whose numbers begin with 0."""
    with Serving(tmp_path, {"message.max.bytes": 100_000}) as serving:
        yield serving


def of_topic(found: Scrape, topic: str = "") -> dict[str, float]:
    """Return what was counted of a topic, or in total, under short names."""
    prefix, suffix = "kafka_server_brokertopicmetrics_", "_total"
    labels = f'topic="{topic}"' if topic else ""
    return {
        name.removeprefix(prefix).removesuffix(suffix): value
        for (name, text), value in found.items()
        if name.startswith(prefix) and text == labels and value
    }


def test_what_is_written_and_read(serving: Serving) -> None:
    batch = batch_of(["a", "bc", "def"])
    with serving.connect() as wire:
        create_topic(wire, "orders", 2)
        create_topic(wire, "idle")
        assert produce(wire, "orders", batch, partition=0).error_code == 0
        assert produce(wire, "orders", batch, partition=1).error_code == 0
        assert produce(wire, "orders", batch, acks=-1).error_code == 0
        assert len(fetch(wire, "orders").records or b"") == 2 * len(batch)
        assert fetch(wire, "orders", 6).records == b""
    found = scrape(serving)
    written = {
        "bytesin": 3 * len(batch),
        "messagesin": 9,
        "totalproducerequests": 3,
        "bytesout": 2 * len(batch),
        "totalfetchrequests": 2,
    }
    assert of_topic(found, "orders") == written
    assert of_topic(found) == written
    assert of_topic(found, "idle") == {}, "it had no traffic"
    assert found.series(catalogue.REPLICATION_BYTES_IN) == {"": 0}


def test_a_batch_that_is_sent_twice_is_appended_once(serving: Serving) -> None:
    batch = batch_of(["a"], producer_id=5, producer_epoch=0, base_sequence=0)
    with serving.connect() as wire:
        create_topic(wire, "orders")
        for _ in range(2):
            assert produce(wire, "orders", batch).base_offset == 0
    counted = of_topic(scrape(serving), "orders")
    assert counted == {"bytesin": len(batch), "messagesin": 1, "totalproducerequests": 2}


def test_what_is_rejected(serving: Serving) -> None:
    corrupt = bytearray(batch_of(["a"]))
    corrupt[-1] ^= 1
    large = batch_of(["x" * 200_000])
    behind = batch_of(["a"], producer_id=5, producer_epoch=0, base_sequence=7)
    with serving.connect() as wire:
        create_topic(wire, "orders")
        create_topic(wire, "compacted", configs={"cleanup.policy": "compact"})
        assert produce(wire, "orders", bytes(corrupt)).error_code == 2
        assert produce(wire, "orders", large).error_code == 10
        assert produce(wire, "compacted", batch_of(["a", "b"])).error_code == 87
        old = encode_message(Record(0, 1, b"k", b"v", ()), 1)
        assert produce(wire, "orders", old).error_code == 87
        assert produce(wire, "orders", behind).error_code == 0
        again = batch_of(["a"], producer_id=5, producer_epoch=0, base_sequence=9)
        assert produce(wire, "orders", again).error_code == 45
        assert produce(wire, "absent", batch_of(["a"])).error_code == 3
    found = scrape(serving)
    assert of_topic(found, "orders") == {
        "bytesin": len(behind),
        "messagesin": 1,
        "totalproducerequests": 5,
        "bytesrejected": len(large),
        "invalidmessagecrcrecords": 1,
        "invalidmagicnumberrecords": 1,
        "failedproducerequests": 2,
    }
    assert of_topic(found, "compacted") == {
        "totalproducerequests": 1,
        "failedproducerequests": 1,
        "nokeycompactedtopicrecords": 2,
    }
    assert of_topic(found)["failedproducerequests"] == 3
    assert found.series(REJECTIONS) == {
        'reason="corrupt"': 1,
        'reason="too-large"': 1,
        'reason="no-key-compacted"': 1,
        'reason="invalid"': 1,
        'reason="sequence"': 1,
    }


def test_conversions_for_old_clients(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        create_topic(wire, "packed", configs={"compression.type": "gzip"})
        old = encode_message(Record(0, 1_700_000_000_000, b"k", b"v", ()), 1)
        assert produce(wire, "orders", old, version=2).error_code == 0
        assert produce(wire, "orders", batch_of(["a", "b"])).error_code == 0
        assert produce(wire, "packed", batch_of(["a", "b", "c"])).error_code == 0
        request = fetch_request("orders")
        assert wire.ask(request, 3).responses[0].partitions[0].records
    found = scrape(serving)
    assert found.of(catalogue.PRODUCE_CONVERSIONS, topic="orders") == 1
    assert found.of(catalogue.PRODUCE_CONVERSIONS, topic="packed") == 3
    assert found.of(catalogue.FETCH_CONVERSIONS, topic="orders") == 3
    assert found.of(catalogue.FETCH_CONVERSIONS) == 3


def test_reads_that_fail(serving: Serving) -> None:
    """An offset outside of the log is the consumer's affair; a wrong codec is a failure."""
    with serving.connect() as wire:
        create_topic(wire, "orders", configs={"compression.type": "zstd"})
        assert produce(wire, "orders", batch_of(["a"])).error_code == 0
        assert fetch(wire, "orders", 100).error_code == 1
        assert fetch(wire, "orders", version=9).error_code == 76
    found = of_topic(scrape(serving), "orders")
    assert (found["totalfetchrequests"], found["failedfetchrequests"]) == (2, 1)


def test_a_deleted_topic_has_no_series(serving: Serving) -> None:
    with serving.connect() as wire:
        create_topic(wire, "orders")
        assert produce(wire, "orders", batch_of(["a"])).error_code == 0
        assert of_topic(scrape(serving), "orders")["messagesin"] == 1
        wire.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000), 5)
        found = scrape(serving)
        assert of_topic(found, "orders") == {}
        assert found.of(catalogue.MESSAGES_IN) == 1, "the total stays"
        create_topic(wire, "orders")
        assert produce(wire, "orders", batch_of(["a", "b"])).error_code == 0
    assert scrape(serving).of(catalogue.MESSAGES_IN, topic="orders") == 2


def test_a_response_that_a_quota_takes_back_was_not_sent(serving: Serving) -> None:
    batch = batch_of(["x" * 5000])
    with serving.connect() as wire:
        create_topic(wire, "orders")
        assert produce(wire, "orders", batch).error_code == 0
        serving.inside(
            lambda: serving.broker.quotas.configs_changed(
                "users", "<default>", {"consumer_byte_rate": "100"}
            )
        )
        response = wire.ask(fetch_request("orders"), 12)
        assert response.throttle_time_ms > 0
        assert response.responses == []
    found = scrape(serving)
    assert found.of(catalogue.BYTES_OUT) == 0
    assert found.of(catalogue.FETCH_REQUESTS, topic="orders") == 1
