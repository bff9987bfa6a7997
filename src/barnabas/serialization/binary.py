"""Bytes, unchanged, and nothing at all."""

from __future__ import annotations

from typing import Any

from barnabas.model.errors import SerializationError
from barnabas.model.serializer import Deserializer, Headers, Serializer


class ByteArraySerializer(Serializer):
    """Bytes, bytearrays and memoryviews, unchanged."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> Any:
        if data is None or isinstance(data, bytes | bytearray | memoryview):
            return data
        raise SerializationError(
            f"{type(self).__name__} got {type(data).__name__}: must be bytes, bytearray or "
            "memoryview"
        )


class BytesSerializer(ByteArraySerializer):
    """The same; Java has a class of its own for bytes that can be compared."""


class ByteBufferSerializer(ByteArraySerializer):
    """The same; of a memoryview, the part that it covers."""


class ByteArrayDeserializer(Deserializer):
    """Bytes, unchanged."""

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return data


class BytesDeserializer(ByteArrayDeserializer):
    """The same."""


class ByteBufferDeserializer(Deserializer):
    """Bytes as a memoryview."""

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        return None if data is None else memoryview(data)


class VoidSerializer(Serializer):
    """None, for keys or values that are never set."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> None:
        if data is not None:
            raise SerializationError(f"VoidSerializer got {type(data).__name__}: must be None")


class VoidDeserializer(Deserializer):
    """None; anything else is rejected."""

    def deserialize(self, topic: str, headers: Headers, data: Any) -> None:
        if data is not None:
            raise SerializationError("Data should be null for a VoidDeserializer.")
