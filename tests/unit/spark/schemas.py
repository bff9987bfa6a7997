"""An order in Avro and in Protocol Buffers: schemas, descriptors and bytes, for tests of values."""

from __future__ import annotations

import datetime
import decimal
import io
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": ["int", "long"]}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
    ],
}
NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
VALUE: dict[str, Any] = {
    "id": 7,
    "note": None,
    "at": NOON,
    "price": decimal.Decimal("12.50"),
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "state": "DONE",
}
"""An order of the Avro schema."""

MESSAGE = b"\x08\x07\x12\x01x\x1a\x03\x0a\x01a\x1a\x03\x0a\x01b\x20\x01"
"""A `shop.Order`: field 1 varint 7, field 2 bytes "x", field 3 twice, field 4 varint 1."""


def avro(value: dict[str, Any]) -> bytes:
    """Return an order as Avro has it, without a container."""
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(ORDER), value)
    return target.getvalue()


def descriptors() -> bytes:
    """Return what protoc would write for a small file."""
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", package="shop", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="DONE", number=1)
    item = file.message_type.add(name="Item")
    item.field.add(name="sku", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    add = order.field.add
    add(name="id", number=1, type=kinds.TYPE_UINT32, label=kinds.LABEL_OPTIONAL)
    add(name="raw", number=2, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    add(
        name="items",
        number=3,
        type=kinds.TYPE_MESSAGE,
        type_name=".shop.Item",
        label=kinds.LABEL_REPEATED,
    )
    add(
        name="state",
        number=4,
        type=kinds.TYPE_ENUM,
        type_name=".shop.State",
        label=kinds.LABEL_OPTIONAL,
    )
    add(
        name="best",
        number=5,
        type=kinds.TYPE_MESSAGE,
        type_name=".shop.Item",
        label=kinds.LABEL_OPTIONAL,
    )
    return bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
