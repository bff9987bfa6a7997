"""Writes OTLP metrics, field by field, as clients push them."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

GAUGE, SUM, HISTOGRAM, EXPONENTIAL, SUMMARY = 5, 7, 9, 10, 11
DELTA, CUMULATIVE = 1, 2
_ATTRIBUTES_AT = {GAUGE: 7, SUM: 7, HISTOGRAM: 9, EXPONENTIAL: 1, SUMMARY: 7}


def varint(value: int) -> bytes:
    """Encode a number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def whole(number: int, value: int) -> bytes:
    """Encode a field with a number."""
    return varint(number << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def eight(number: int, data: bytes) -> bytes:
    """Encode a field of eight bytes."""
    return varint(number << 3 | 1) + data


def sized(number: int, data: bytes | str) -> bytes:
    """Encode a field with bytes, a string or a message."""
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(key: str, value: object) -> bytes:
    """Encode a KeyValue."""
    if isinstance(value, bool):
        content = whole(2, value)
    elif isinstance(value, int):
        content = whole(3, value)
    elif isinstance(value, float):
        content = eight(4, pack("<d", value))
    else:
        content = sized(1, str(value))
    return sized(1, key) + sized(2, content)


def number(value: float | int, attributes: Mapping[str, object] | None = None) -> bytes:
    """Encode a NumberDataPoint."""
    content = eight(6, pack("<q", value)) if isinstance(value, int) else eight(4, pack("<d", value))
    pairs = [sized(7, attribute(*pair)) for pair in (attributes or {}).items()]
    return eight(2, bytes(8)) + eight(3, bytes(8)) + content + b"".join(pairs)


def distribution(
    kind: int, count: int, total: float, attributes: Mapping[str, object] | None = None
) -> bytes:
    """Encode a data point of a histogram or summary."""
    at = _ATTRIBUTES_AT[kind]
    pairs = [sized(at, attribute(*pair)) for pair in (attributes or {}).items()]
    return eight(4, pack("<Q", count)) + eight(5, pack("<d", total)) + b"".join(pairs)


def metric(
    name: str, kind: int, *points: bytes, unit: str = "1", temporality: int = DELTA
) -> bytes:
    """Encode a Metric."""
    body = b"".join(sized(1, point) for point in points)
    if kind in (SUM, HISTOGRAM, EXPONENTIAL):
        body += whole(2, temporality)
    if kind == SUM:
        body += whole(3, 1)
    return sized(1, name) + sized(2, "what it is") + sized(3, unit) + sized(kind, body)


def metrics_data(*metrics: bytes) -> bytes:
    """Encode MetricsData of one resource and scope."""
    resource = sized(1, sized(1, attribute("client_rack", "r1")))
    scope = sized(1, sized(1, "a client")) + b"".join(sized(2, each) for each in metrics)
    return sized(1, resource + sized(2, scope))
