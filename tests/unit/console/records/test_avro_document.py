"""Avro as documents."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.avro_document import AvroError, AvroSchema


def test_avro_types() -> None:
    schema = AvroSchema(
        json.dumps(
            {
                "type": "record",
                "name": "All",
                "namespace": "n",
                "fields": [
                    {"name": "big", "type": "long"},
                    {"name": "maybe", "type": ["null", "string"]},
                    {"name": "price", "type": {
                        "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
                    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                    {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["a", "b"]}},
                    {"name": "next", "type": ["null", "All"]},
                ],
            }
        )
    )  # fmt: skip
    fastavro = pytest.importorskip("fastavro")
    target = io.BytesIO()
    value = {
        "big": 2**63 - 1, "maybe": "ü", "price": Decimal("-12.50"), "day": date(2026, 11, 18),
        "at": datetime(2026, 11, 18, 12, tzinfo=UTC), "kind": "b", "next": None,
    }  # fmt: skip
    fastavro.schemaless_writer(target, fastavro.parse_schema(json.loads(schema.text)), value)
    assert schema.read(target.getvalue()) == {
        "big": 2**63 - 1, "maybe": "ü", "price": Decimal("-12.50"), "day": "2026-11-18",
        "at": "2026-11-18T12:00:00.000+00:00", "kind": "b", "next": None,
    }  # fmt: skip


def test_avro_bombs_are_rejected() -> None:
    for schema, data in [
        ('{"type": "array", "items": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}', b""),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]}',
         b"\x02" * 100_000),
    ]:  # fmt: skip
        with pytest.raises(AvroError):
            AvroSchema(schema).read(data)
    with pytest.raises(AvroError):
        AvroSchema('{"type":' * 100_000)


@given(st.binary(max_size=100))
def test_other_bytes_raise_only_its_own_error(data: bytes) -> None:
    schema = AvroSchema('{"type": "map", "values": ["null", "string", "double"]}')
    try:
        found = schema.read(data)
    except AvroError:
        return
    assert isinstance(found, dict)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "not JSON"),
        ('{"type": "record", "name": "A"}', "needs fields"),
        ('{"type": "fixed", "name": "A", "size": -1}', "needs a size"),
        ('["null", "Unknown"]', "unknown type Unknown"),
        ('{"type": "enum", "name": "A"}', "needs symbols"),
    ],
)
def test_wrong_schemas_are_explained(schema: str, reason: str) -> None:
    with pytest.raises(AvroError, match=reason):
        AvroSchema(schema)


def test_named_types_are_found_by_namespace() -> None:
    schema = AvroSchema(
        '{"type": "record", "name": "a.b.Outer", "fields": [{"name": "one", "type": {"type": '
        '"fixed", "name": "Two", "size": 2}}, {"name": "other", "type": "a.b.Two"}]}'
    )
    assert schema.name == "a.b.Outer"
    assert schema.read(b"abcd") == {"one": b"ab", "other": b"cd"}
