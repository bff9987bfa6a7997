"""Values in Avro and Protocol Buffers: their types as Spark's, and bytes that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")
pytest.importorskip("fastavro", reason="pip install 'barnabas[schemas]'")
descriptor_pb2 = pytest.importorskip(
    "google.protobuf.descriptor_pb2", reason="pip install 'barnabas[schemas]'"
)

from tests.unit.spark.schemas import MESSAGE, ORDER, VALUE, avro, descriptors  # noqa: E402

from barnabas.model.errors import ConfigError  # noqa: E402
from barnabas.spark.values.avro import avro_ddl  # noqa: E402
from barnabas.spark.values.protobuf import protobuf_ddl  # noqa: E402
from barnabas.spark.values.value_format import ValueFormat, parse_value_format  # noqa: E402

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


def test_avro_becomes_structs() -> None:
    good = avro(VALUE)
    read = ValueFormat("avro", json.dumps(ORDER)).reader()
    found, errors = read(pa.array([good, None, good + b"!", good[:-2], b""]), ORDER_KIND)
    assert found.to_pylist() == [{**VALUE, "counts": [("x", 1)]}, None, None, None, None]
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


def test_avro_names_have_their_namespaces() -> None:
    money = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
    order = {
        "type": "record",
        "name": "Order",
        "namespace": "com.shop",
        "fields": [
            {"name": "price", "type": money},
            {"name": "tax", "type": "com.shop.Money"},
            {"name": "tip", "type": ["null", "Money"]},
        ],
    }
    assert avro_ddl(json.dumps(order)) == (
        "STRUCT<`price`: STRUCT<`cents`: BIGINT>, `tax`: STRUCT<`cents`: BIGINT>, "
        "`tip`: STRUCT<`cents`: BIGINT>>"
    )


def test_a_uuid_in_avro_is_its_text() -> None:
    value_format = ValueFormat("avro", '{"type": "string", "logicalType": "uuid"}')
    text = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
    found, errors = value_format.reader()(pa.array([b"\x48" + text.encode()]), value_format.type())
    assert found.to_pylist() == [text]
    assert errors.to_pylist() == [None]


NODE = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not an Avro schema"),
        ('"strin"', "unknown Avro type strin"),
        ('["null", "int", "string"]', "a column has one type"),
        (json.dumps(NODE), "N must not contain itself"),
        ('{"type": "int", "logicalType": "time-millis"}', "time-millis has no type"),
        ("[[]]", "a column has one type"),
        ('{"type": "array"}', "not an Avro schema in JSON .lacks 'items'"),
        ('{"type": "bytes", "logicalType": "decimal"}', "needs a precision"),
    ],
)
def test_avro_that_no_column_can_hold_is_refused(schema: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        avro_ddl(schema)


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
    found, errors = value_format.reader()(pa.array([MESSAGE, b"\xff", None]), kind)
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


def without_an_import() -> bytes:
    """Return what protoc writes without --include_imports."""
    found = descriptor_pb2.FileDescriptorSet.FromString(descriptors())
    found.file[0].dependency.append("google/protobuf/timestamp.proto")
    return bytes(found.SerializeToString())


def test_protobuf_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no message shop\.Nothing"):
        protobuf_ddl(descriptors(), "shop.Nothing")
    with pytest.raises(ConfigError, match="not a set of descriptors"):
        protobuf_ddl(b"\xff\xff", "shop.Order")
    with pytest.raises(
        ConfigError, match=r"incomplete .*; write them with protoc --include_imports"
    ):
        protobuf_ddl(without_an_import(), "shop.Order")
    with pytest.raises(ConfigError, match=r"must be FILE#package\.Message"):
        parse_value_format({"valueformat": "protobuf", "valueschema": "shop.Order"})
    with pytest.raises(ConfigError, match="No such file"):
        parse_value_format({"valueformat": "protobuf", "valueschema": f"{tmp_path}/x#M"})
