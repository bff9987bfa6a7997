"""The asyncio clients, with the names and behaviour of aiokafka.

Each is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "AIOKafkaAdminClient": "barnabas.aio.admin",
    "AIOKafkaConsumer": "barnabas.aio.consumer",
    "AIOKafkaProducer": "barnabas.aio.producer",
    "AsyncConsumerRebalanceListener": "barnabas.consumer.group.callbacks",
    "ConsumerRebalanceListener": "barnabas.consumer.group.callbacks",
    "ConsumerRecord": "barnabas.kernels",
    "ConsumerStoppedError": "barnabas.client.errors",
    "IllegalOperation": "barnabas.client.errors",
    "OffsetAndMetadata": "barnabas.structs",
    "OffsetAndTimestamp": "barnabas.structs",
    "TopicPartition": "barnabas.model.ids",
}
"""The module of each name; types are in the stub beside this file."""

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
