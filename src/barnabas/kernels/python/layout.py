"""Where the fields of one record are: the walk that validation, reading and the Arrow path share.

    length varint | attributes int8 | timestampDelta varlong | offsetDelta varint
    | keyLength varint | key | valueLength varint | value
    | headerCount varint | (keyLength varint | key | valueLength varint | value)*

Nothing outside [position, end) is ever read, and a record that is returned is consistent to its
last byte.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.kernels.contract import Buffer, Fault


class RecordFault(Exception):
    """A fault of the current record; never leaves the kernels."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class Layout(NamedTuple):
    """A record's numbers and the positions of its fields; a length of -1 is null."""

    end: int
    timestamp_delta: int
    offset_delta: int
    key_start: int
    key_length: int
    value_start: int
    value_length: int
    headers_start: int
    header_count: int


def read_layout(buffer: Buffer, position: int, end: int) -> Layout:
    """Find the fields of the record at position; raise RecordFault if they disagree."""
    length, position = read_varint(buffer, position, end, Fault.CUT)
    if length < 0:
        raise RecordFault(Fault.LENGTH)
    if length > end - position:
        raise RecordFault(Fault.CUT)
    end = position + length
    if position == end:
        raise RecordFault(Fault.LENGTH)
    position += 1  # attributes: no bit is defined
    timestamp_delta, position = read_varint(buffer, position, end, Fault.LENGTH, size_max=10)
    offset_delta, position = read_varint(buffer, position, end, Fault.LENGTH)
    key_start, key_length = _read_field(buffer, position, end, Fault.FIELD)
    position = key_start + max(key_length, 0)
    value_start, value_length = _read_field(buffer, position, end, Fault.FIELD)
    position = value_start + max(value_length, 0)
    header_count, position = read_varint(buffer, position, end, Fault.LENGTH)
    if not 0 <= header_count <= end - position:
        raise RecordFault(Fault.HEADERS)
    headers_start = position
    for _ in range(header_count):
        name_start, name_length = _read_field(buffer, position, end, Fault.HEADERS)
        if name_length < 0:
            raise RecordFault(Fault.HEADERS)
        start, size = _read_field(buffer, name_start + name_length, end, Fault.HEADERS)
        position = start + max(size, 0)
    if position != end:
        raise RecordFault(Fault.LENGTH)
    return Layout(
        end,
        timestamp_delta,
        offset_delta,
        key_start,
        key_length,
        value_start,
        value_length,
        headers_start,
        header_count,
    )


def read_varint(
    buffer: Buffer, position: int, end: int, past_end: Fault, size_max: int = 5
) -> tuple[int, int]:
    """Return the zigzag number at position and the position after it."""
    value = shift = 0
    for index in range(position, position + size_max):
        if index >= end:
            raise RecordFault(past_end)
        byte = buffer[index]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            value &= 0xFFFFFFFF if size_max == 5 else 0xFFFFFFFFFFFFFFFF
            return value >> 1 ^ -(value & 1), index + 1
    raise RecordFault(Fault.VARINT)


def wrap64(value: int) -> int:
    """Return the value as a signed 64-bit register would hold it."""
    return ((value + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def _read_field(buffer: Buffer, position: int, end: int, negative: Fault) -> tuple[int, int]:
    length, position = read_varint(buffer, position, end, Fault.LENGTH)
    if length < -1:
        raise RecordFault(negative)
    if length > end - position:
        raise RecordFault(Fault.LENGTH)
    return position, length
