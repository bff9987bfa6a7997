"""What a metric is: its name, kind, labels and meaning. `metrics.catalogue` declares each one once.

    BYTES_IN = Metric(
        "kafka_server_brokertopicmetrics_bytesin_total",
        Kind.COUNTER,
        "Bytes of records appended, as clients sent them.",
        ("topic",),
        bean="kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
    )

The name is the one under which it is exposed by default: for Kafka's metrics what the rules of the
JMX exporter make of the bean's name, for our own a name that begins with `barnabas_`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a metric behaves, and how it is exposed."""

    COUNTER = "counter"
    """Only increases; its name ends with `_total`."""
    GAUGE = "gauge"
    QUANTILES = "quantiles"
    """A distribution as Kafka shows it: gauges per quantile, and `_count`."""
    BUCKETS = "buckets"
    """A distribution as a Prometheus histogram: `_bucket`, `_sum` and `_count`."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One row of the catalogue."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    bean: str = ""
    """Kafka's name in JMX without the labels' properties; empty for our own metrics."""
    scale: float = 1.0
    """The exposed unit per recorded one: 0.001 for what is recorded in µs and exposed in ms."""


def label_text(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """Return labels as they stand between the braces of a series; empty values are left out."""
    return ",".join(
        f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True) if value
    )


def escaped(value: str) -> str:
    """Escape a label's value."""
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
