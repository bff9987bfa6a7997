"""The wire format of schema registries' clients: a 0, the schema's id, the payload.

    00 | id, 4 bytes, big-endian | Protobuf alone: which message of the schema | payload

A message is identified by its path of positions in the schema's file, as zigzag varints preceded by
their count; the first message, in most files the only one, is a single 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from barnabas.model.errors import SerializationError

_HEAD = struct.Struct(">BI")
ID_MAX = 0xFFFF_FFFF


def frame(schema_id: int, payload: bytes, indexes: bytes = b"") -> bytes:
    """Return a payload preceded by the id of its schema."""
    return _HEAD.pack(0, schema_id) + indexes + payload


def unframe(data: bytes) -> tuple[int, bytes]:
    """Return the id of the schema, and what follows it."""
    if len(data) < _HEAD.size:
        raise SerializationError(
            f"{len(data)} bytes: a value with a schema id has at least {_HEAD.size}"
        )
    magic, schema_id = _HEAD.unpack_from(data)
    if magic != 0:
        raise SerializationError(f"first byte {magic}: a value with a schema id begins with 0")
    return schema_id, data[_HEAD.size :]


def message_indexes(path: Sequence[int]) -> bytes:
    """Return the encoded path of a message in its file."""
    if list(path) == [0]:
        return b"\0"
    return b"".join(_varint(number) for number in (len(path), *path))


def read_indexes(data: bytes) -> tuple[list[int], bytes]:
    """Return the path of a message, and what follows it."""
    count, at = _read_varint(data, 0)
    if count == 0:
        return [0], data[at:]
    if not 0 < count <= len(data):
        raise SerializationError(f"message path of {count} indexes in {len(data)} bytes")
    path = []
    for _ in range(count):
        step, at = _read_varint(data, at)
        path.append(step)
    return path, data[at:]


def checked_id(schema_id: int | None) -> int | None:
    """Return a schema id that fits in the frame."""
    if schema_id is not None and not 0 <= schema_id <= ID_MAX:
        raise ValueError(f"schema_id={schema_id}: must be 0 to {ID_MAX}")
    return schema_id


def _varint(number: int) -> bytes:
    left = number << 1  # zigzag of a number that is not negative
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise SerializationError("a message's path in its schema is truncated")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
