"""What one listener counts: connections, bytes, rejected clients."""

from __future__ import annotations

from barnabas.metrics.catalogue import network as catalogue
from barnabas.metrics.catalogue.network import NETWORK_PROCESSOR
from barnabas.metrics.catalogue.rejections import REJECTIONS
from barnabas.metrics.registry import Registry
from barnabas.quotas.sampled_rate import SampledRate, Windows

WINDOWS = Windows(2, 30_000)
"""Kafka's rates in metrics are those of two windows of 30 s."""


class ListenerCounts:
    """The counters of a listener; one that is opened again under its name goes on with them."""

    def __init__(self, registry: Registry, name: str) -> None:
        self._registry = registry
        self.bytes_in = registry.counter(catalogue.INCOMING_BYTES, name, NETWORK_PROCESSOR)
        self.bytes_out = registry.counter(catalogue.OUTGOING_BYTES, name, NETWORK_PROCESSOR)
        self._opened = registry.counter(catalogue.CONNECTIONS_OPENED, name, NETWORK_PROCESSOR)
        self._closed = registry.counter(catalogue.CONNECTIONS_CLOSED, name, NETWORK_PROCESSOR)
        self.opening = SampledRate(WINDOWS)
        """Connections admitted per second."""
        self.closing = SampledRate(WINDOWS)
        """Connections closed per second."""

    def opened(self, now_ms: int) -> None:
        """Count a connection that was admitted."""
        self._opened.add()
        self.opening.record(1, now_ms)

    def closed(self, now_ms: int) -> None:
        """Count the end of a connection."""
        self._closed.add()
        self.closing.record(1, now_ms)

    def rejected(self, why: str) -> None:
        """Count a client that was rejected, or a request of it."""
        self._registry.counter(REJECTIONS, why).add()
