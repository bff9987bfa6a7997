"""The session with the coordination service, and the time of its responses."""

from __future__ import annotations

from barnabas.coordination.contract import Coordination, SessionState
from barnabas.metrics.catalogue import coordination as catalogue
from barnabas.metrics.instruments import Counter, Histogram
from barnabas.metrics.registry import Registry


class CoordinationMetrics:
    """Listens to a session from before it is opened; ZooKeeper's have Kafka's names, too."""

    def __init__(self, registry: Registry, tree: Coordination, *, shared: bool) -> None:
        """Measure a tree; one that is `shared` by brokers has sessions that can be lost."""
        registry.gauge(
            catalogue.CONNECTED, lambda: 1 if tree.state is SessionState.CONNECTED else 0
        )
        self._latency = registry.histogram(catalogue.LATENCY)
        self._shared_latency: Histogram | None = None
        self._refusals = Counter()
        if shared:
            self._shared_latency = registry.histogram(catalogue.ZOOKEEPER_LATENCY)
            self._changes = {
                SessionState.CONNECTED: registry.counter(catalogue.CONNECTS),
                SessionState.SUSPENDED: registry.counter(catalogue.DISCONNECTS),
                SessionState.EXPIRED: registry.counter(catalogue.EXPIRES),
            }
            self._refusals = registry.counter(catalogue.AUTH_FAILURES)
            tree.add_session_listener(self._changed)
        tree.measure(self._answered)

    def refused(self) -> None:
        """Count a new session that was not opened because the service rejected the login."""
        self._refusals.add()

    def _changed(self, state: SessionState) -> None:
        counter = self._changes.get(state)
        if counter is not None:
            counter.add()

    def _answered(self, seconds: float) -> None:
        microseconds = int(seconds * 1e6)
        self._latency.record(microseconds)
        if self._shared_latency is not None:
            self._shared_latency.record(microseconds)
