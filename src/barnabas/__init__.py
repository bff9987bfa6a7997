"""Barnabas: Apache Kafka, rebuilt in Python.

The names that users type are here, and each is imported when it is first asked for: a command that
needs no client should not wait for one.
"""

from __future__ import annotations

__version__ = "0.1.0.dev0"

_HOMES = {
    "ConsumerGroupMetadata": "barnabas.model.group_metadata",
    "AsyncConsumerRebalanceListener": "barnabas.consumer.group.callbacks",
    "ConsumerRebalanceListener": "barnabas.consumer.group.callbacks",
    "ConsumerRecord": "barnabas.kernels",
    "DefaultSerializer": "barnabas.model.serializer",
    "Deserializer": "barnabas.model.serializer",
    "IsolationLevel": "barnabas.model.isolation",
    "JsonSerializer": "barnabas.model.serializer",
    "KafkaAdminClient": "barnabas.blocking.admin",
    "KafkaConsumer": "barnabas.blocking.consumer",
    "KafkaProducer": "barnabas.blocking.producer",
    "OffsetAndMetadata": "barnabas.structs",
    "OffsetAndTimestamp": "barnabas.structs",
    "OffsetSpec": "barnabas.admin.offsets",
    "Serializer": "barnabas.model.serializer",
    "TopicPartition": "barnabas.model.ids",
    "TopicPartitionReplica": "barnabas.structs",
    "TransactionHandle": "barnabas.producer.handle",
}
"""Where each name lives; types are in the stub beside this file."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # not needed by commands, whose Ctrl-C waits for this file

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
