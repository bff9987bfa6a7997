"""Serializers for strings and numbers, and the context that serializers get."""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import Any

from barnabas.compat.confluent_kafka.error import SerializationError

__all__ = [
    "Deserializer",
    "DoubleDeserializer",
    "DoubleSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "MessageField",
    "SerializationContext",
    "SerializationError",
    "Serializer",
    "StringDeserializer",
    "StringSerializer",
]

_DOUBLE = struct.Struct(">d")
_INTEGER = struct.Struct(">i")


class MessageField(StrEnum):
    """Which part of a message is serialized."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


class SerializationContext:
    """Where an object goes: its topic, the part of the message, the headers."""

    def __init__(self, topic: str | None, field: MessageField, headers: Any = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class Serializer:
    """Makes bytes of an object; to be subclassed."""

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Return the bytes of an object; raise SerializationError."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what the serializer has opened."""


class Deserializer:
    """Makes an object of bytes; to be subclassed."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Return the object of some bytes; raise SerializationError."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what the deserializer has opened."""


class DoubleSerializer(Serializer):
    """Numbers as eight bytes, as Java's DoubleSerializer."""

    def __call__(self, obj: float | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _packed(_DOUBLE, obj)


class DoubleDeserializer(Deserializer):
    """Eight bytes as a number."""

    def __call__(
        self, value: bytes | None, ctx: SerializationContext | None = None
    ) -> float | None:
        found: float | None = _unpacked(_DOUBLE, value)
        return found


class IntegerSerializer(Serializer):
    """Whole numbers as four bytes, as Java's IntegerSerializer."""

    def __call__(self, obj: int | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _packed(_INTEGER, obj)


class IntegerDeserializer(Deserializer):
    """Four bytes as a whole number."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> int | None:
        found: int | None = _unpacked(_INTEGER, value)
        return found


class StringSerializer(Serializer):
    """Text in an encoding."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        if obj is None:
            return None
        try:
            encoded: bytes = obj.encode(self.codec)
        except (AttributeError, LookupError, UnicodeError) as failure:
            raise SerializationError(str(failure)) from failure
        return encoded


class StringDeserializer(Deserializer):
    """Text from an encoding."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        if value is None:
            return None
        try:
            return value.decode(self.codec)
        except (LookupError, UnicodeError) as failure:
            raise SerializationError(str(failure)) from failure


def _packed(form: struct.Struct, number: Any) -> bytes | None:
    if number is None:
        return None
    try:
        return form.pack(number)
    except struct.error as failure:
        raise SerializationError(str(failure)) from failure


def _unpacked(form: struct.Struct, value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return form.unpack(value)[0]
    except struct.error as failure:
        raise SerializationError(str(failure)) from failure
