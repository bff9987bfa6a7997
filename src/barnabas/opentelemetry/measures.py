"""Metrics of clients by the semantic conventions for messaging."""

from __future__ import annotations

from opentelemetry.metrics import Meter

from barnabas.opentelemetry.conventions import Attributes

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_LABELS = (
    "messaging.system",
    "messaging.operation.name",
    "messaging.destination.name",
    "messaging.consumer.group.name",
    "messaging.destination.partition.id",
    "server.address",
    "server.port",
    "error.type",
)


class Measures:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Duration of an operation of a producer or consumer.",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )
        self._sent = meter.create_counter(
            "messaging.client.sent.messages",
            unit="{message}",
            description="Number of messages producer attempted to send to the broker.",
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages",
            unit="{message}",
            description="Number of messages that were delivered to the application.",
        )
        self._process = meter.create_histogram(
            "messaging.process.duration",
            unit="s",
            description="Duration of processing operation.",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )

    def sent(self, count: int, seconds: float, attributes: Attributes) -> None:
        """Record that records were sent, or could not be."""
        chosen = _chosen(attributes)
        self._duration.record(seconds, chosen)
        self._sent.add(count, chosen)

    def consumed(self, count: int, attributes: Attributes) -> None:
        """Record that records were handed out."""
        self._consumed.add(count, _chosen(attributes))

    def lasted(self, seconds: float, attributes: Attributes) -> None:
        """Record how long a call took."""
        self._duration.record(seconds, _chosen(attributes))

    def processed(self, seconds: float, attributes: Attributes) -> None:
        """Record how long the program worked on a record."""
        self._process.record(seconds, _chosen(attributes))


def _chosen(attributes: Attributes) -> Attributes:
    """Return the attributes with few values, which a metric may have."""
    return {name: attributes[name] for name in _LABELS if name in attributes}
