"""Serializers as objects, which the options of producers and consumers take besides functions.

A function only gets the data; an object also gets the topic and the headers, and is closed with its
client. None stays None both ways, because it is the value of a tombstone.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

Headers = Sequence[tuple[str, bytes | None]] | None


class Serializer(ABC):
    """Serializes keys or values to bytes."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:  # noqa: B027
        """Called with the client's options, by Kafka's names, where the client made the object."""

    @abstractmethod
    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        """Return bytes, or None."""

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Called when the producer is closed."""


class Deserializer(ABC):
    """Deserializes the bytes of keys or values to objects."""

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:  # noqa: B027
        """Called with the client's options, by Kafka's names, where the client made the object."""

    @abstractmethod
    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        """Return the object; `data` is bytes, or None."""

    def close(self) -> None:  # noqa: B027
        """Called when the consumer is closed."""


class DefaultSerializer(Serializer, Deserializer):
    """Strings in an encoding; bytes are sent as they are.

    KafkaProducer(value_serializer=DefaultSerializer("utf-16"))
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        self.encoding = encoding

    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return data
        return data.encode(self.encoding)

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return None if data is None else data.decode(self.encoding)


class JsonSerializer(DefaultSerializer):
    """Any JSON value.

    KafkaConsumer("orders", value_deserializer=JsonSerializer())
    """

    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return None if data is None else json.dumps(data).encode(self.encoding)

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return None if data is None else json.loads(data.decode(self.encoding))


def close_serializers(*given: object) -> None:
    """Close the serializers that can be closed, when a client is closed."""
    for each in given:
        close = getattr(each, "close", None)
        if callable(close) and not isinstance(each, type):
            close()
