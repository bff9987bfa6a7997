"""The series of traffic: totals first, then the topics that have any."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from barnabas.broker.monitoring.traffic_series import OF_TOPICS, TrafficSeries
from barnabas.broker.partitions.traffic import Traffic
from barnabas.metrics.catalogue import metrics
from barnabas.metrics.catalogue import traffic as catalogue
from barnabas.model.ids import TopicPartition
from barnabas.replication.topic_traffic import FIELDS


class Partitions(dict[Any, Any]):
    """What is read of the hosted partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.traffic = Traffic()

    def host(self, topic: str) -> Any:
        key = TopicPartition(topic, 0)
        self[key] = SimpleNamespace(topic_partition=key, traffic=None, is_assigned_leader=True)
        return self.traffic.of(self[key])


def collected(partitions: Any) -> dict[Any, list[tuple[str, float]]]:
    families = filter(None, TrafficSeries(partitions).collect())
    return {metric: list(series) for metric, series in families}


def test_every_number_has_a_metric() -> None:
    assert sorted(OF_TOPICS.values()) == sorted(FIELDS)
    assert set(collected(Partitions())) == set(metrics()["traffic"])


def test_totals_are_there_without_any_traffic() -> None:
    assert {tuple(series) for series in collected(Partitions()).values()} == {(("", 0),)}


def test_topics_have_series_while_they_are_hosted() -> None:
    partitions = Partitions()
    partitions.host("a").bytes_in += 5
    partitions.host('b"').bytes_in += 6
    assert collected(partitions)[catalogue.BYTES_IN] == [
        ("", 11),
        ('topic="a"', 5),
        ('topic="b\\""', 6),
    ]
    assert collected(partitions)[catalogue.BYTES_OUT] == [("", 0)]
    partitions.clear()
    assert collected(partitions)[catalogue.BYTES_IN] == [("", 11)]


def test_failures_are_shown_from_the_first_request_of_a_topic_on() -> None:
    """Dashboards show the rate of failures: a line at 0 says more than none."""
    partitions = Partitions()
    partitions.host("written").produce_requests += 3
    read = partitions.host("read")
    read.fetch_requests += 2
    read.failed_fetch += 1
    found = collected(partitions)
    assert found[catalogue.FAILED_PRODUCE] == [("", 0), ('topic="written"', 0)]
    assert found[catalogue.FAILED_FETCH] == [("", 1), ('topic="read"', 1)]
