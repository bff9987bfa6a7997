"""Real brokers for tests: `with Cluster() as cluster: connect(cluster.bootstrap)`.

`KafkaContainer` is the same under the interface of testcontainers.

The pytest plugin of this package is loaded by every pytest run in an environment with Barnabas, so
importing it must cost next to nothing: the broker is imported when a cluster starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.testing.cluster import Cluster

if TYPE_CHECKING:
    from barnabas.testing.kafka_container import KafkaContainer

__all__ = ["Cluster", "KafkaContainer"]


def __getattr__(name: str) -> Any:
    if name == "KafkaContainer":
        from barnabas.testing.kafka_container import KafkaContainer

        return KafkaContainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
