"""Columns in Spark's words as Arrow types."""

from __future__ import annotations

import pytest

from barnabas.model.errors import ConfigError
from barnabas.spark.values.ddl import struct_of, type_of

pa = pytest.importorskip("pyarrow")


def test_plain_and_nested_columns() -> None:
    kind = struct_of(
        "id BIGINT, `a b`: string NOT NULL, tags ARRAY<STRING>, at TIMESTAMP, price decimal(10,2), "
        "item STRUCT<name: STRING, sizes: MAP<STRING, ARRAY<INT>>>, born DATE"
    )
    item = pa.struct([("name", pa.string()), ("sizes", pa.map_(pa.string(), pa.list_(pa.int32())))])
    assert kind == pa.struct(
        [
            ("id", pa.int64()),
            ("a b", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("at", pa.timestamp("us", tz="UTC")),
            ("price", pa.decimal128(10, 2)),
            ("item", item),
            ("born", pa.date32()),
        ]
    )


def test_a_type_alone() -> None:
    assert type_of("STRUCT<x: DOUBLE>") == pa.struct([("x", pa.float64())])
    assert type_of("string") == pa.string()


@pytest.mark.parametrize(
    "text",
    ["", "id", "id NUMBER", "id INT,", "a ARRAY<INT", "a ARRAY<INT>>", "a DECIMAL(99,2)", "a `"],
)
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="columns look like: id BIGINT, name STRING") as failure:
        struct_of(text)
    assert repr(text) in str(failure.value)
