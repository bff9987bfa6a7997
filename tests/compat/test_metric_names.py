"""A program that reads kafka-python's `metrics()` finds the same groups and keys in ours."""

from __future__ import annotations

import importlib
import uuid
import warnings
from contextlib import closing
from typing import Any

import pytest
from tests.compat.samples import until_deadline

pytestmark = pytest.mark.compat

Metrics = dict[str, dict[str, Any]]

OWN_CONNECTIONS = ("-node-metrics.node-bootstrap-", "-node-metrics.node-coordinator-")
"""kafka-python counts these connections to a broker apart."""


def used(library: str, bootstrap: str, topic: str) -> tuple[Metrics, Metrics]:
    """Produce and consume in a group; return the metrics of both clients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kafka = importlib.import_module(library)
    with closing(kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id="m")) as producer:
        for _ in range(20):
            producer.send(topic, b"value")
        producer.flush()
        produced = producer.metrics()
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id="m",
        group_id=f"{topic}-{library}",
        auto_offset_reset="earliest",
    )
    with closing(consumer):
        count = 0
        for _ in until_deadline("20 records"):
            count += sum(map(len, consumer.poll(500).values()))
            if count >= 20:
                break
        consumer.commit()
        consumed = consumer.metrics()
    return produced, consumed


@pytest.fixture(scope="module")
def both(bootstrap: str) -> dict[str, tuple[Metrics, Metrics]]:
    topic = f"metrics-{uuid.uuid4().hex[:8]}"
    return {library: used(library, bootstrap, topic) for library in ("kafka", "barnabas")}


@pytest.mark.parametrize("client", [0, 1], ids=["producer", "consumer"])
def test_every_name_exists(both: dict[str, tuple[Metrics, Metrics]], client: int) -> None:
    theirs, ours = both["kafka"][client], both["barnabas"][client]
    shared = [group for group in theirs if not any(part in group for part in OWN_CONNECTIONS)]
    assert len(shared) >= 4
    missing = {group: theirs[group].keys() - ours.get(group, {}).keys() for group in shared}
    assert {group: names for group, names in missing.items() if names} == {}


def test_values_agree(both: dict[str, tuple[Metrics, Metrics]]) -> None:
    for produced, consumed in both.values():
        (topic,) = [values for group, values in produced.items() if "-topic-metrics." in group]
        assert topic["record-error-rate"] == 0
        assert topic["compression-rate"] == 1
        assert produced["producer-metrics"]["record-size-avg"] > 5
        assert produced["producer-metrics"]["byte-rate"] > 0
        group = consumed["consumer-coordinator-metrics"]
        assert group["assigned-partitions"] >= 1
        assert group["commit-rate"] > 0
        assert group["commit-latency-max"] >= group["commit-latency-avg"] >= 0
        assert group["join-rate"] > 0
        assert group["sync-rate"] > 0
        assert group["sync-time-max"] >= group["sync-time-avg"] >= 0
        fetches = consumed["consumer-fetch-manager-metrics"]
        assert fetches["fetch-size-max"] >= fetches["fetch-size-avg"] > 0
        assert fetches["records-lag-max"] == 0
