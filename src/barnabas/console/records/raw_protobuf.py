"""Protocol Buffers without their schema: field numbers, and the likeliest reading of each value.

The bytes do not say what a field means. Whole numbers are shown unsigned; a field with a length is
a string if it is text, a message if its bytes are one, else bytes. Every byte must fit, within
limits, or it is not taken for a message at all.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from barnabas.console.records.display import visible

DEPTH_MAX: Final = 20
FIELDS_MAX: Final = 20_000
NUMBER_MAX: Final = 536_870_911
_VARINT, _FIXED64, _LENGTH, _GROUP, _END_GROUP, _FIXED32 = range(6)
_FIXED = {_FIXED64: struct.Struct("<Q"), _FIXED32: struct.Struct("<I")}


class NotProtobufError(ValueError):
    """Bytes that are not a message."""


def read_message(data: bytes) -> dict[str, Any]:
    """Return the fields of a message by their numbers; a list if there are several of one."""
    return _Reader().read(memoryview(data), 0)


class _Reader:
    def __init__(self) -> None:
        self._left = FIELDS_MAX

    def read(self, data: memoryview, depth: int) -> dict[str, Any]:
        if depth > DEPTH_MAX:
            raise NotProtobufError(f"nested deeper than {DEPTH_MAX} levels")
        fields: dict[str, list[Any]] = {}
        at = 0
        while at < len(data):
            self._left -= 1
            if self._left < 0:
                raise NotProtobufError(f"more than {FIELDS_MAX} fields")
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            if not 0 < number <= NUMBER_MAX:
                raise NotProtobufError(f"field number {number}")
            found, at = self._field(data, at, kind, depth)
            fields.setdefault(str(number), []).append(found)
        return {number: found[0] if len(found) == 1 else found for number, found in fields.items()}

    def _field(self, data: memoryview, at: int, kind: int, depth: int) -> tuple[Any, int]:
        if kind == _VARINT:
            return _varint(data, at)
        fixed = _FIXED.get(kind)
        if fixed is not None:
            if at + fixed.size > len(data):
                raise NotProtobufError("truncated")
            return fixed.unpack_from(data, at)[0], at + fixed.size
        if kind != _LENGTH:
            raise NotProtobufError(f"wire type {kind}")  # groups are older than anything in Kafka
        length, at = _varint(data, at)
        if length > len(data) - at:
            raise NotProtobufError("truncated")
        return self._content(data[at : at + length], depth), at + length

    def _content(self, content: memoryview, depth: int) -> Any:
        raw = bytes(content)
        try:
            text = raw.decode()
            if visible(text) == text:
                return text
        except UnicodeDecodeError:
            text = None
        left = self._left
        try:
            return self.read(content, depth + 1)
        except NotProtobufError:
            # A wrong guess costs what was read for it: guesses within guesses stay linear.
            self._left = min(self._left, left - 1)
            if self._left < 0:
                raise
        return raw if text is None else text


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotProtobufError("truncated")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
