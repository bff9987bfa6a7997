"""Messages to test with: all classes, random values for a version, and what a version can carry."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.wire.apis import APIS
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.wire.schema import UNSET, Field, Message, Struct

EMBEDDED: tuple[type[Message], ...] = (ConsumerProtocolSubscription, ConsumerProtocolAssignment)

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}


def all_messages() -> list[type[Message]]:
    """Return every message class."""
    pairs = [cls for entry in APIS for cls in (entry.request, entry.response)]
    return [*pairs, *EMBEDDED]


def all_versions() -> Iterator[tuple[type[Message], int]]:
    """Yield every message class with each of its versions."""
    for cls in all_messages():
        for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
            yield cls, version


def restrict(message: Any, version: int) -> Any:
    """Return a copy that holds only what a version can carry: the rest takes its default."""
    values: dict[str, Any] = {}
    for f in message.FIELDS:
        value = getattr(message, f.name)
        if version not in f.versions:
            continue
        if value is None:
            if f.is_nullable(version) or f.default is None:
                values[f.name] = None
            continue
        if f.struct is not None:
            if f.is_array:
                value = [restrict(item, version) for item in value]
            else:
                value = restrict(value, version)
        values[f.name] = value
    return type(message)(**values)


SIZES = (0, 1, 5, 126, 127, 130, 300)


def random_message(
    cls: type[Any], version: int, source: random.Random, sizes: Sequence[int] = SIZES
) -> Any:
    """Return a message with random values in all fields that a version has.

    `sizes` are the sizes of strings and bytes.
    """
    return cls(
        **{
            f.name: _random_value(f, version, source, sizes)
            for f in cls.FIELDS
            if version in f.versions and source.random() < 0.95
        }
    )


def _random_value(f: Field, version: int, source: random.Random, sizes: Sequence[int]) -> Any:
    if f.is_nullable(version) and source.random() < 0.2:
        return None
    if f.is_array:
        count = source.choice([0, 1, 1, 2, 3])
        return [_random_item(f, version, source, sizes) for _ in range(count)]
    if f.struct is not None and f.tag is not None:
        value = _random_item(f, version, source, sizes)
        # A tagged struct of defaults is not written, and comes back as None.
        return None if value == f.struct() else value
    return _random_item(f, version, source, sizes)


def _random_item(f: Field, version: int, source: random.Random, sizes: Sequence[int]) -> Any:
    if f.struct is not None:
        return random_message(f.struct, version, source, sizes)
    kind = str(f.kind)
    if kind in BITS:
        low = 0 if kind[0] == "u" else -(2 ** (BITS[kind] - 1))
        high = low + 2 ** BITS[kind] - 1
        return source.choice([low, -1 if low < 0 else 1, 0, 1, high, source.randint(low, high)])
    if kind == "bool":
        return source.random() < 0.5
    if kind == "float64":
        return source.choice([0.0, -1.5, source.uniform(-1e9, 1e9)])
    if kind == "uuid":
        return source.randbytes(16)
    size = source.choice(sizes)
    if kind == "string":
        return "".join(source.choice("abcxyz-._0189éß€😀") for _ in range(size))
    return source.randbytes(size)


def default_of(f: Field) -> Any:
    """Return the value that a field takes when nothing is said about it."""
    if f.default is not UNSET:
        return f.default
    assert f.struct is not None or f.is_array
    return [] if f.is_array else f.kind()  # type: ignore[operator]


def as_literal(value: Any) -> Any:
    """Turn a message into plain dicts and lists, fields with default values left out."""
    if isinstance(value, Struct):
        return {
            f.name: as_literal(getattr(value, f.name))
            for f in value.FIELDS
            if getattr(value, f.name) != default_of(f)
        }
    if isinstance(value, list):
        return [as_literal(item) for item in value]
    return value


def from_literal(cls: type[Any], literal: dict[str, Any]) -> Any:
    """Turn what `as_literal` made back into a message."""
    values: dict[str, Any] = {}
    for f in cls.FIELDS:
        if f.name in literal:
            value = literal[f.name]
            if f.struct is not None and value is not None:
                inner = f.struct
                if f.is_array:
                    value = [from_literal(inner, item) for item in value]
                else:
                    value = from_literal(inner, value)
            values[f.name] = value
    assert set(literal) == set(values), f"{cls.__name__} lacks {set(literal) - set(values)}"
    return cls(**values)
