"""What a client counts about its connections, and the nested dict that `metrics()` returns.

One `ConnectionStats` stands for one broker and outlives its connections. Counting is plain
attribute arithmetic, once per request; all else is computed on reading. Totals are since the start,
rates are averages since the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.metrics.instruments import Histogram
from barnabas.model.errors import InvalidValueError


class ConnectionStats:
    """The requests, bytes and connections of one broker."""

    __slots__ = (
        "answers",
        "bytes_in",
        "bytes_out",
        "closed",
        "failed",
        "latency_us",
        "opened",
        "request_bytes_max",
        "requests",
        "throttled_ms",
        "throttled_ms_max",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.answers = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.request_bytes_max = 0
        self.opened = 0
        self.closed = 0
        self.failed = 0
        self.throttled_ms = 0
        self.throttled_ms_max = 0
        self.latency_us = Histogram()

    def sent(self, size_bytes: int) -> None:
        """Count a request of this size."""
        self.requests += 1
        self.bytes_out += size_bytes
        if size_bytes > self.request_bytes_max:
            self.request_bytes_max = size_bytes

    def answered(self, elapsed_s: float) -> None:
        """Count a response with this latency."""
        self.answers += 1
        self.latency_us.record(int(elapsed_s * 1e6))

    def throttled(self, throttle_ms: int) -> None:
        """Count a response that asks the client to wait."""
        self.throttled_ms += throttle_ms
        if throttle_ms > self.throttled_ms_max:
            self.throttled_ms_max = throttle_ms


def connection_metrics(parts: Iterable[ConnectionStats], elapsed_s: float) -> dict[str, float]:
    """Return the metrics of several brokers together, under the names of Kafka's clients."""
    known = list(parts)
    requests = sum(part.requests for part in known)
    answers = sum(part.answers for part in known)
    bytes_out = sum(part.bytes_out for part in known)
    bytes_in = sum(part.bytes_in for part in known)
    opened = sum(part.opened for part in known)
    closed = sum(part.closed for part in known)
    latency_us = sum(part.latency_us.total for part in known)
    slowest = max((part.latency_us.quantile(1.0) for part in known), default=0)
    throttled_ms = sum(part.throttled_ms for part in known)
    seconds = max(elapsed_s, 1e-9)
    return {
        "connection-count": opened - closed,
        "connection-creation-total": opened,
        "connection-creation-rate": opened / seconds,
        "connection-close-total": closed,
        "connection-close-rate": closed / seconds,
        "failed-connection-total": sum(part.failed for part in known),
        "request-total": requests,
        "request-rate": requests / seconds,
        "request-size-avg": bytes_out / requests if requests else 0.0,
        "request-size-max": max((part.request_bytes_max for part in known), default=0),
        "response-total": answers,
        "response-rate": answers / seconds,
        "outgoing-byte-total": bytes_out,
        "outgoing-byte-rate": bytes_out / seconds,
        "incoming-byte-total": bytes_in,
        "incoming-byte-rate": bytes_in / seconds,
        "network-io-total": requests + answers,
        "network-io-rate": (requests + answers) / seconds,
        "request-latency-avg": latency_us / answers / 1000 if answers else 0.0,
        "request-latency-max": slowest / 1000,
        "throttle-time-total": throttled_ms,
        "throttle-time-avg": throttled_ms / answers if answers else 0.0,
        "throttle-time-max": max((part.throttled_ms_max for part in known), default=0),
    }


def client_metrics(
    kind: str, nodes: Mapping[str, ConnectionStats], elapsed_s: float
) -> dict[str, dict[str, float]]:
    """Return groups of metrics: all brokers together, then each of them."""
    groups = {f"{kind}-metrics": connection_metrics(nodes.values(), elapsed_s)}
    for node, stats in nodes.items():
        groups[f"{kind}-node-metrics.node-{node}"] = connection_metrics([stats], elapsed_s)
    return groups


def with_count(groups: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return the groups with one more, which has the number of metrics."""
    count = sum(map(len, groups.values()))
    return {"kafka-metrics-count": {"count": count}, **groups}


def refuse_raw(raw: bool) -> None:
    """Reject kafka-python's `metrics(raw=True)`: there are no objects behind our numbers."""
    if raw:
        raise InvalidValueError("raw=True: metrics are plain numbers; call metrics() without it")
