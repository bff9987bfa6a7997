"""Values in Avro and Protocol Buffers: their types as Spark's, and bytes that are none."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")
fastavro = pytest.importorskip("fastavro", reason="pip install 'barnabas[schemas]'")
descriptor_pb2 = pytest.importorskip(
    "google.protobuf.descriptor_pb2", reason="pip install 'barnabas[schemas]'"
)

from barnabas.model.errors import ConfigError  # noqa: E402
from barnabas.spark.avro_values import avro_ddl  # noqa: E402
from barnabas.spark.protobuf_values import protobuf_ddl  # noqa: E402
from barnabas.spark.values import ValueFormat, parse_value_format  # noqa: E402

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
ORDER_KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("note", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(6, 2)),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("state", pa.string()),
    ]
)
NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)


def avro(value: dict[str, Any]) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(ORDER), value)
    return target.getvalue()


def test_avro_becomes_structs() -> None:
    value = {
        "id": 7,
        "note": None,
        "at": NOON,
        "price": decimal.Decimal("12.50"),
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "state": "DONE",
    }
    good = avro(value)
    read = ValueFormat("avro", json.dumps(ORDER)).reader()
    found, errors = read(pa.array([good, None, good + b"!", good[:-2], b""]), ORDER_KIND)
    assert found.to_pylist() == [{**value, "counts": [("x", 1)]}, None, None, None, None]
    assert errors[0].as_py() is None
    assert errors[1].as_py() is None
    assert errors[2].as_py() == f"ValueError: 1 of {len(good) + 1} bytes are left over"
    assert errors[3].as_py()
    assert errors[4].as_py()


def test_avro_types_are_sparks() -> None:
    assert avro_ddl(json.dumps(ORDER)) == (
        "STRUCT<`id`: BIGINT, `note`: STRING, `at`: TIMESTAMP, `price`: DECIMAL(6, 2), "
        "`tags`: ARRAY<STRING>, `counts`: MAP<STRING, BIGINT>, `state`: STRING>"
    )


NODE = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not an Avro schema"),
        ('"strin"', "no Avro type strin"),
        ('["null", "int", "string"]', "a column has one type"),
        (json.dumps(NODE), "N contains itself"),
        ('{"type": "int", "logicalType": "time-millis"}', "time-millis has no type"),
        ("[[]]", "a column has one type"),
    ],
)
def test_avro_that_no_column_can_hold_is_refused(schema: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        avro_ddl(schema)


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


def test_protobuf_becomes_structs(tmp_path: Path) -> None:
    file = tmp_path / "o.desc"
    file.write_bytes(descriptors())
    value_format = parse_value_format(
        {"valueformat": "protobuf", "valueschema": f"{file}#shop.Order"}
    )
    assert value_format.ddl() == (
        "STRUCT<`id`: BIGINT, `raw`: BINARY, `items`: ARRAY<STRUCT<`sku`: STRING>>, "
        "`state`: STRING, `best`: STRUCT<`sku`: STRING>>"
    )
    sku = pa.struct([("sku", pa.string())])
    kind = pa.struct(
        [
            ("id", pa.int64()),
            ("raw", pa.binary()),
            ("items", pa.list_(sku)),
            ("state", pa.string()),
            ("best", sku),
        ]
    )
    # Field 1 varint 7, field 2 bytes "x", field 3 twice, field 4 varint 1.
    good = b"\x08\x07\x12\x01x\x1a\x03\x0a\x01a\x1a\x03\x0a\x01b\x20\x01"
    found, errors = value_format.reader()(pa.array([good, b"\xff", None]), kind)
    assert found.to_pylist() == [
        {
            "id": 7,
            "raw": b"x",
            "items": [{"sku": "a"}, {"sku": "b"}],
            "state": "DONE",
            "best": None,
        },
        None,
        None,
    ]
    assert [error is None for error in errors.to_pylist()] == [True, False, True]


def test_protobuf_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no message shop\.Nothing"):
        protobuf_ddl(descriptors(), "shop.Nothing")
    with pytest.raises(ConfigError, match="not a set of descriptors"):
        protobuf_ddl(b"\xff\xff", "shop.Order")
    with pytest.raises(ConfigError, match=r"must be FILE#package\.Message"):
        parse_value_format({"valueformat": "protobuf", "valueschema": "shop.Order"})
    with pytest.raises(ConfigError, match="No such file"):
        parse_value_format({"valueformat": "protobuf", "valueschema": f"{tmp_path}/x#M"})
