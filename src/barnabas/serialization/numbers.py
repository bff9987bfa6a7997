"""Numbers of fixed sizes, big-endian, as in Java; and booleans."""

from __future__ import annotations

import struct
from typing import Any, ClassVar

from barnabas.model.errors import SerializationError
from barnabas.model.serializer import Deserializer, Headers, Serializer


class _WholeSerializer(Serializer):
    """A whole number of a fixed number of bits."""

    layout: ClassVar[struct.Struct]

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, int) or isinstance(data, bool):
            raise SerializationError(
                f"{type(self).__name__} got {type(data).__name__}: must be a whole number"
            )
        try:
            return self.layout.pack(data)
        except struct.error:
            limit = 1 << (8 * self.layout.size - 1)
            raise SerializationError(
                f"{type(self).__name__} got {data}: must be {-limit} to {limit - 1}"
            ) from None


class ShortSerializer(_WholeSerializer):
    """A whole number in 2 bytes."""

    layout = struct.Struct(">h")


class IntegerSerializer(_WholeSerializer):
    """A whole number in 4 bytes."""

    layout = struct.Struct(">i")


class LongSerializer(_WholeSerializer):
    """A whole number in 8 bytes."""

    layout = struct.Struct(">q")


class _FloatingSerializer(Serializer):
    """An IEEE 754 number of a fixed number of bits."""

    layout: ClassVar[struct.Struct]

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, int | float) or isinstance(data, bool):
            raise SerializationError(
                f"{type(self).__name__} got {type(data).__name__}: must be a number"
            )
        try:
            return self.layout.pack(data)
        except OverflowError:
            bits = 8 * self.layout.size
            raise SerializationError(
                f"{type(self).__name__} got {data}: too large for {bits} bits"
            ) from None


class FloatSerializer(_FloatingSerializer):
    """A number in 4 bytes; further digits are lost."""

    layout = struct.Struct(">f")


class DoubleSerializer(_FloatingSerializer):
    """A number in 8 bytes, the precision of Python's float."""

    layout = struct.Struct(">d")


class _NumberDeserializer(Deserializer):
    """A number of a fixed size."""

    layout: ClassVar[struct.Struct]
    named: ClassVar[str]
    """Kafka's name for itself in the error about a wrong size."""

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        if data is None:
            return None
        if len(data) != self.layout.size:
            raise SerializationError(
                f"Size of data received by {self.named} is not {self.layout.size}"
                f" (it is {len(data)})"
            )
        return self.layout.unpack(data)[0]


class ShortDeserializer(_NumberDeserializer):
    """A whole number of 2 bytes."""

    layout, named = ShortSerializer.layout, "ShortDeserializer"


class IntegerDeserializer(_NumberDeserializer):
    """A whole number of 4 bytes."""

    layout, named = IntegerSerializer.layout, "IntegerDeserializer"


class LongDeserializer(_NumberDeserializer):
    """A whole number of 8 bytes."""

    layout, named = LongSerializer.layout, "LongDeserializer"


class FloatDeserializer(_NumberDeserializer):
    """A number of 4 bytes."""

    layout, named = FloatSerializer.layout, "Deserializer"


class DoubleDeserializer(_NumberDeserializer):
    """A number of 8 bytes."""

    layout, named = DoubleSerializer.layout, "Deserializer"


class BooleanSerializer(Serializer):
    """One byte, 1 or 0."""

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, bool):
            raise SerializationError(
                f"BooleanSerializer got {type(data).__name__}: must be True or False"
            )
        return b"\x01" if data else b"\x00"


class BooleanDeserializer(Deserializer):
    """One byte, 1 or 0."""

    def deserialize(self, topic: str, headers: Headers, data: Any) -> bool | None:
        if data is None:
            return None
        if len(data) != 1:
            raise SerializationError(
                f"Size of data received by BooleanDeserializer is not 1 (it is {len(data)})"
            )
        if data[0] > 1:
            raise SerializationError(f"Unexpected byte received by BooleanDeserializer: {data[0]}")
        return bool(data[0])
