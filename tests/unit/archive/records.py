"""Records as a consumer gives them."""

from __future__ import annotations

from typing import Any

from barnabas.archive.rows import Headers, Row
from barnabas.kernels import ConsumerRecord


def record(
    offset: int,
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Headers | None = None,
    *,
    timestamp: int = 1000,
    partition: int = 2,
) -> ConsumerRecord:
    fields: dict[str, Any] = {
        "topic": "orders",
        "partition": partition,
        "leader_epoch": 0,
        "offset": offset,
        "timestamp": timestamp,
        "timestamp_type": 0,
        "key": key,
        "value": value,
        "headers": headers or [],
        "checksum": None,
        "serialized_key_size": -1,
        "serialized_value_size": -1,
        "serialized_header_size": -1,
    }
    return ConsumerRecord(**fields)


def row(found: ConsumerRecord) -> Row:
    return (found.key, found.value, list(found.headers), found.timestamp, found.partition)


EVERY_KIND = [
    record(0, b"k", b"v"),
    record(1, None, b""),
    record(2, b"", None),
    record(3, None, None),
    record(4, b"\xff", b'a "quoted", text\r\nof two lines', [("h", b"\xfe"), ("h", None)]),
    record(5, b"\\N", "ünï\u2028 \x00".encode(), [("é", b"")], timestamp=0),
    record(6, b"k", b"long" * 100_000),
]
