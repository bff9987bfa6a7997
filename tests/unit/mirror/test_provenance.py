"""The header has the origin of a record, and keeps it from being copied back there."""

from __future__ import annotations

from typing import Any

from barnabas.kernels import ConsumerRecord
from barnabas.mirror.provenance import HEADER, Stamp, origin_offset


def record(offset: int, headers: list[tuple[str, bytes | None]] | None = None) -> ConsumerRecord:
    fields: dict[str, Any] = {
        "topic": "t",
        "partition": 0,
        "leader_epoch": 0,
        "offset": offset,
        "timestamp": 1000 + offset,
        "timestamp_type": 0,
        "key": b"k",
        "value": None,
        "headers": headers or [],
        "checksum": None,
        "serialized_key_size": 1,
        "serialized_value_size": -1,
        "serialized_header_size": -1,
    }
    return ConsumerRecord(**fields)


def test_a_record_keeps_its_fields_and_gets_one_header_more() -> None:
    [row] = Stamp("west", "east").rows([record(7, [("trace", b"1"), ("empty", None)])])
    key, value, headers, timestamp = row
    assert (key, value, timestamp) == (b"k", None, 1007)
    assert list(headers) == [("trace", b"1"), ("empty", None), (HEADER, b"west:7")]


def test_a_record_that_has_been_on_the_target_does_not_go_back() -> None:
    there = record(3, [(HEADER, b"east:90")])
    through = record(4, [(HEADER, b"east:91"), (HEADER, b"north:2")])
    other = record(5, [(HEADER, b"north:1")])
    rows = Stamp("west", "east").rows([there, through, other])
    assert [list(headers) for _, _, headers, _ in rows] == [
        [(HEADER, b"north:1"), (HEADER, b"west:5")]
    ]


def test_an_id_that_begins_like_another_is_another() -> None:
    rows = Stamp("west", "east").rows([record(1, [(HEADER, b"eastern:5")])])
    assert len(rows) == 1


def test_the_origin_is_the_last_header_of_that_cluster() -> None:
    headers = [(HEADER, b"west:1"), (HEADER, b"north:5"), (HEADER, b"west:8"), ("x", b"west:9")]
    assert origin_offset(headers, "west") == 8
    assert origin_offset(headers, "north") == 5
    assert origin_offset(headers, "east") is None
    assert origin_offset([(HEADER, None)], "west") is None
    assert origin_offset([(HEADER, b"west:many")], "west") is None
