"""The series of traffic: a total for each number, and one series for each topic that has any."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.monitoring.family import Family
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.metrics.catalogue import traffic as catalogue
from barnabas.metrics.metric import label_text

OF_TOPICS = {
    catalogue.BYTES_IN: "bytes_in",
    catalogue.BYTES_OUT: "bytes_out",
    catalogue.MESSAGES_IN: "messages_in",
    catalogue.PRODUCE_REQUESTS: "produce_requests",
    catalogue.FETCH_REQUESTS: "fetch_requests",
    catalogue.FAILED_PRODUCE: "failed_produce",
    catalogue.FAILED_FETCH: "failed_fetch",
    catalogue.BYTES_REJECTED: "bytes_rejected",
    catalogue.PRODUCE_CONVERSIONS: "produce_conversions",
    catalogue.FETCH_CONVERSIONS: "fetch_conversions",
    catalogue.NO_KEY: "no_key",
    catalogue.INVALID_MAGIC: "invalid_magic",
    catalogue.INVALID_CRC: "invalid_crc",
    catalogue.INVALID_OFFSET: "invalid_offset",
}
SHOWN_WITH = {"failed_produce": "produce_requests", "failed_fetch": "fetch_requests"}
"""Failures that are shown for each topic with requests: a rate needs the 0 before the first."""
OF_REPLICATION = {
    catalogue.REPLICATION_BYTES_IN: "replication_bytes_in",
    catalogue.REPLICATION_BYTES_OUT: "replication_bytes_out",
    catalogue.REASSIGNMENT_BYTES_IN: "reassignment_bytes_in",
    catalogue.REASSIGNMENT_BYTES_OUT: "reassignment_bytes_out",
}


class TrafficSeries:
    """Reads the traffic of a broker's partitions."""

    def __init__(self, partitions: HostedPartitions) -> None:
        self._partitions = partitions

    def collect(self) -> Iterator[Family | None]:
        """Yield each number of all topics, then those of replication."""
        traffic = self._partitions.traffic
        for _ in traffic.keep(self._partitions.values()):
            yield None
        for metric, field in OF_TOPICS.items():
            series: list[tuple[str, float]] = [("", traffic.total(field))]
            by_topic = dict(traffic.by_topic(field))
            if field in SHOWN_WITH:
                topics = (topic for topic, _ in traffic.by_topic(SHOWN_WITH[field]))
                by_topic = dict.fromkeys(topics, 0) | by_topic
            series += [
                (label_text(metric.labels, (topic,)), value) for topic, value in by_topic.items()
            ]
            yield metric, series
        for metric, field in OF_REPLICATION.items():
            yield metric, [("", getattr(traffic, field))]
