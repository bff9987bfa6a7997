"""Lists whose entries have a serializer of their own, in Kafka's layout (KIP-466).

The first byte is the layout of entries. 0: those of a fixed size one after the other, preceded by
the positions of those that are null; 1: each preceded by its size, -1 for null.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from barnabas.config.clients.classes import ROLES, made
from barnabas.model.errors import SerializationError
from barnabas.model.serializer import Deserializer, Headers, Serializer
from barnabas.serialization.numbers import (
    DoubleDeserializer,
    DoubleSerializer,
    FloatDeserializer,
    FloatSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    LongDeserializer,
    LongSerializer,
    ShortDeserializer,
    ShortSerializer,
)
from barnabas.serialization.strings import UUIDDeserializer, UUIDSerializer

_CONSTANT_SIZE, _VARIABLE_SIZE = 0, 1
_NULL = -1
_INT = struct.Struct(">i")

_FIXED_SERIALIZERS = (
    ShortSerializer,
    IntegerSerializer,
    FloatSerializer,
    LongSerializer,
    DoubleSerializer,
    UUIDSerializer,
)
_FIXED_SIZES: dict[type, int] = {
    ShortDeserializer: 2,
    IntegerDeserializer: 4,
    FloatDeserializer: 4,
    LongDeserializer: 8,
    DoubleDeserializer: 8,
    UUIDDeserializer: 36,
}


class ListSerializer(Serializer):
    """A list: `ListSerializer(IntegerSerializer())`, or by `list.value.serializer.inner`."""

    def __init__(self, inner: Serializer | None = None) -> None:
        self.inner = inner

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.inner = self.inner or _inner(configs, is_key, "serializer")

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, list | tuple):
            raise SerializationError(f"ListSerializer got {type(data).__name__}: must be a list")
        if self.inner is None:
            raise SerializationError("ListSerializer has no serializer for its entries")
        fixed = type(self.inner) in _FIXED_SERIALIZERS
        written = bytearray([_CONSTANT_SIZE if fixed else _VARIABLE_SIZE])
        if fixed:
            nulls = [position for position, entry in enumerate(data) if entry is None]
            for number in (len(nulls), *nulls):
                written += _INT.pack(number)
        written += _INT.pack(len(data))
        for entry in data:
            if entry is not None:
                packed = self.inner.serialize(topic, headers, entry)
                written += packed if fixed else _INT.pack(len(packed)) + bytes(packed)
            elif not fixed:
                written += _INT.pack(_NULL)
        return bytes(written)

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()


class ListDeserializer(Deserializer):
    """A list: `ListDeserializer(StringDeserializer())`, or by `list.value.deserializer.inner`."""

    def __init__(self, inner: Deserializer | None = None) -> None:
        self.inner = inner

    def configure(self, configs: Mapping[str, Any], is_key: bool) -> None:
        self.inner = self.inner or _inner(configs, is_key, "deserializer")

    def deserialize(self, topic: str, headers: Headers, data: Any) -> list[Any] | None:
        if data is None:
            return None
        if self.inner is None:
            raise SerializationError("ListDeserializer has no deserializer for its entries")
        source = _Source(bytes(data))
        strategy = source.take(1)[0]
        size, nulls = None, frozenset[int]()
        if strategy == _CONSTANT_SIZE:
            size = _FIXED_SIZES.get(type(self.inner))
            if size is None:
                raise SerializationError(
                    f"entries of a fixed size cannot be deserialized by {type(self.inner).__name__}"
                )
            nulls = frozenset(source.number() for _ in range(source.count()))
        elif strategy != _VARIABLE_SIZE:
            raise SerializationError(f"Invalid serialization strategy flag value {strategy}")
        found: list[Any] = []
        for position in range(source.count(nulls)):
            length = source.number() if size is None else size
            if length == _NULL or position in nulls:
                found.append(None)
            else:
                found.append(self.inner.deserialize(topic, headers, source.take(length)))
        return found

    def close(self) -> None:
        if self.inner is not None:
            self.inner.close()


class _Source:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise SerializationError(
                f"End of the stream was reached prematurely: {size} bytes at {self._at} of "
                f"{len(self._data)}"
            )
        taken, self._at = self._data[self._at : end], end
        return taken

    def number(self) -> int:
        read: int = _INT.unpack(self.take(_INT.size))[0]
        return read

    def count(self, nulls: frozenset[int] = frozenset()) -> int:
        """Return how many entries follow; a count beyond the remaining bytes is rejected."""
        read = self.number()
        if not 0 <= read <= len(self._data) + len(nulls):
            raise SerializationError(f"a list of {read} entries in {len(self._data)} bytes")
        return read


def _inner(configs: Mapping[str, Any], is_key: bool, kind: str) -> Any:
    name = f"list.{'key' if is_key else 'value'}.{kind}.inner"
    return made(name, ROLES[kind], configs.get(name), configs, is_key)
