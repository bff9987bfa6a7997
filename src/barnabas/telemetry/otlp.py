"""Reads OTLP metrics as clients push them: the fields of protobuf that numbers need, no others.

    for point in read_points(pushed):
        print(point.name, dict(point.attributes), point.value)

The bytes come from anyone who can connect. Every length is checked, strings are cut, nothing
recurses, and the number of fields is limited: more raises MalformedTelemetryError, like anything
that is not protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from math import isfinite
from struct import unpack
from typing import NamedTuple, TypeAlias

from barnabas.model.errors import InvalidValueError

FIELDS_MAX = 200_000
"""Maximum number of fields of one push; a push of a thousand series has about 20,000."""
POINTS_MAX = 10_000
TEXT_MAX = 256
"""Names, units and attributes are cut to this many characters."""
ATTRIBUTES_MAX = 16

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10

Value: TypeAlias = "int | memoryview"
Attributes = tuple[tuple[str, str], ...]


class MalformedTelemetryError(InvalidValueError):
    """Pushed metrics that are not OTLP, or too many."""


class PointKind(IntEnum):
    """How a number behaves; the numbers are on the wire of DescribeClientTelemetry."""

    GAUGE = 0
    SUM = 1
    """Since the client started."""
    DELTA = 2
    """Since the previous push."""


class Point(NamedTuple):
    """One number of a push."""

    name: str
    unit: str
    kind: PointKind
    attributes: Attributes
    """Sorted by name; those of the resource (the client) are left out."""
    value: float


def read_points(data: bytes) -> list[Point]:
    """Return the numbers of a push, at most POINTS_MAX.

    A distribution gives two: `NAME.count` and `NAME.sum`. What is not a finite number is left out.
    """
    return _Reader().points(memoryview(data))


class _Reader:
    """One push; counts the fields."""

    def __init__(self) -> None:
        self._fields_left = FIELDS_MAX

    def points(self, data: memoryview) -> list[Point]:
        found: list[Point] = []
        for metric in self._metrics(data):
            found += self._points_of(metric)
            if len(found) > POINTS_MAX:
                raise MalformedTelemetryError(f"more than {POINTS_MAX} numbers in one push")
        return found

    def _metrics(self, data: memoryview) -> Iterator[memoryview]:
        for resource in self._messages(data, 1):
            for scope in self._messages(resource, 2):
                yield from self._messages(scope, 2)

    def _points_of(self, metric: memoryview) -> Iterator[Point]:
        name = unit = ""
        data: list[tuple[int, memoryview]] = []
        for number, value in self._fields(metric):
            if number == 1:
                name = _text(_bytes(value))
            elif number == 3:
                unit = _text(_bytes(value))
            elif number in (5, 7, 9, 10, 11):  # gauge, sum, two kinds of histograms, summary
                data.append((number, _bytes(value)))
        for number, body in data:
            if number == 5:
                yield from self._numbers(name, unit, PointKind.GAUGE, self._messages(body, 1))
            elif number == 7:
                kind, points = self._sum(body)
                yield from self._numbers(name, unit, kind, points)
            else:
                kind, points = self._sum(body) if number != 11 else (PointKind.SUM, [])
                points = points or list(self._messages(body, 1))
                yield from self._distributions(name, unit, kind, points, number)

    def _sum(self, body: memoryview) -> tuple[PointKind, list[memoryview]]:
        """Return the points of a sum or histogram, and whether they are differences."""
        points: list[memoryview] = []
        temporality = 0
        for number, value in self._fields(body):
            if number == 1:
                points.append(_bytes(value))
            elif number == 2:
                temporality = _number(value)
        return PointKind.DELTA if temporality == 1 else PointKind.SUM, points

    def _numbers(
        self, name: str, unit: str, kind: PointKind, points: Iterator[memoryview] | list[memoryview]
    ) -> Iterator[Point]:
        for point in points:
            value: float | None = None
            attributes: list[tuple[str, str]] = []
            for number, content in self._fields(point):
                if number == 4:
                    value = _double(content)
                elif number == 6:
                    value = float(_signed(content))
                elif number == 7:
                    self._attribute(_bytes(content), attributes)
            if value is not None and isfinite(value):
                yield Point(name, unit, kind, tuple(sorted(attributes)), value)

    def _distributions(
        self, name: str, unit: str, kind: PointKind, points: list[memoryview], number_of_kind: int
    ) -> Iterator[Point]:
        attributes_at = {9: 9, 10: 1, 11: 7}[number_of_kind]
        for point in points:
            count: float | None = None
            total: float | None = None
            attributes: list[tuple[str, str]] = []
            for number, content in self._fields(point):
                if number == attributes_at:
                    self._attribute(_bytes(content), attributes)
                elif number == 4:
                    count = float(_unsigned(content))
                elif number == 5:
                    total = _double(content)
            found = tuple(sorted(attributes))
            for suffix, value, of in (("count", count, ""), ("sum", total, unit)):
                if value is not None and isfinite(value):
                    yield Point(f"{name}.{suffix}", of, kind, found, value)

    def _attribute(self, pair: memoryview, into: list[tuple[str, str]]) -> None:
        key = text = ""
        for number, value in self._fields(pair):
            if number == 1:
                key = _text(_bytes(value))
            elif number == 2:
                text = self._any_value(_bytes(value))
        if key and len(into) < ATTRIBUTES_MAX:
            into.append((key, text))

    def _any_value(self, data: memoryview) -> str:
        text = ""
        for number, value in self._fields(data):
            if number == 1:
                text = _text(_bytes(value))
            elif number == 2:
                text = "true" if _number(value) else "false"
            elif number == 3:
                whole = _number(value)
                text = str(whole - (1 << 64) if whole >> 63 else whole)
            elif number == 4:
                text = repr(_double(value))
        return text

    def _messages(self, data: memoryview, wanted: int) -> Iterator[memoryview]:
        """Yield the messages of one field."""
        for number, value in self._fields(data):
            if number == wanted:
                yield _bytes(value)

    def _fields(self, data: memoryview) -> Iterator[tuple[int, Value]]:
        """Yield the number and the content of each field: an int, or bytes."""
        position, end = 0, len(data)
        while position < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise MalformedTelemetryError(f"more than {FIELDS_MAX} fields in one push")
            tag, position = _varint(data, position)
            number, wire_type = tag >> 3, tag & 7
            if not number:
                raise MalformedTelemetryError("a field has the number 0")
            if wire_type == _VARINT:
                whole, position = _varint(data, position)
                yield number, whole
                continue
            if wire_type == _BYTES:
                size, position = _varint(data, position)
            elif wire_type == _FIXED64:
                size = 8
            elif wire_type == _FIXED32:
                size = 4
            else:
                raise MalformedTelemetryError(f"a field has the wire type {wire_type}")
            if size > end - position:
                raise MalformedTelemetryError(f"a field of {size} bytes is truncated")
            yield number, data[position : position + size]
            position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index in range(min(_VARINT_BYTES_MAX, len(data) - position)):
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + index + 1
    raise MalformedTelemetryError("a number is truncated or too long")


def _bytes(value: Value) -> memoryview:
    if isinstance(value, int):
        raise MalformedTelemetryError("a field is a number instead of bytes")
    return value


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise MalformedTelemetryError("a field is bytes instead of a number")
    return value


def _eight(value: Value) -> memoryview:
    if isinstance(value, int) or len(value) != 8:
        raise MalformedTelemetryError("a field has not the 8 bytes of its number")
    return value


def _double(value: Value) -> float:
    number: float = unpack("<d", _eight(value))[0]
    return number


def _signed(value: Value) -> int:
    number: int = unpack("<q", _eight(value))[0]
    return number


def _unsigned(value: Value) -> int:
    number: int = unpack("<Q", _eight(value))[0]
    return number


def _text(data: memoryview) -> str:
    """Return a string that is safe to print, and short."""
    text = bytes(data[: 4 * TEXT_MAX]).decode("utf-8", "replace")[:TEXT_MAX]
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
