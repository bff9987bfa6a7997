"""Polled records as Spark's rows: its columns, types and order, or what a transform makes."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas.consumer.arrow import schema  # noqa: E402
from barnabas.model.errors import ConfigError  # noqa: E402
from barnabas.spark.source_rows import SourceRows, check_columns, load_transform, source_ddl  # noqa: E402
from barnabas.spark.values.value_format import ValueFormat  # noqa: E402

BINARY = ValueFormat()
TIME = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC)
LAYOUT = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        (
            "headers",
            pa.list_(
                pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
            ),
        ),
    ]
)


def polled(value: bytes = b'{"id": 5}') -> Any:
    return pa.RecordBatch.from_pylist(
        [
            {
                "topic": "t",
                "partition": 3,
                "offset": 7,
                "timestamp": TIME,
                "timestamp_type": 1,
                "key": None,
                "value": value,
                "headers": [{"key": "h", "value": None}],
            }
        ],
        schema=schema(),
    )


def keep_ids(batch: Any) -> Any:
    return pa.RecordBatch.from_pydict({"id": batch.column("offset")})


def give_nothing(batch: Any) -> None:
    return None


def test_rows_have_exactly_the_declared_layout() -> None:
    batch = SourceRows(LAYOUT, BINARY, None)(polled())
    assert batch.schema.equals(LAYOUT)
    assert batch.to_pylist() == [
        {
            "key": None,
            "value": b'{"id": 5}',
            "topic": "t",
            "partition": 3,
            "offset": 7,
            "timestamp": TIME,
            "timestampType": 1,
            "headers": [{"key": "h", "value": None}],
        }
    ]


def test_values_that_are_read_stand_beside_their_errors() -> None:
    layout = pa.schema([("value", pa.struct([("id", pa.int32())])), ("valueError", pa.string())])
    batch = SourceRows(layout, ValueFormat("json", "id INT"), None)(polled())
    assert batch.to_pylist() == [{"value": {"id": 5}, "valueError": None}]


def test_a_transform_makes_the_rows() -> None:
    layout = pa.schema([("id", pa.int32())])
    rows = SourceRows(layout, BINARY, f"{__name__}:keep_ids")
    assert rows(polled()).equals(pa.RecordBatch.from_pydict({"id": [7]}, schema=layout))
    with pytest.raises(ValueError, match="the batch lacks other; it has id"):
        SourceRows(pa.schema([("other", pa.int32())]), BINARY, f"{__name__}:keep_ids")(polled())
    with pytest.raises(TypeError, match="returned NoneType"):
        SourceRows(layout, BINARY, f"{__name__}:give_nothing")(polled())


def read_ids(batch: Any) -> Any:
    ids = [None if each is None else each["id"] for each in batch["value"].to_pylist()]
    return pa.RecordBatch.from_pydict(
        {"id": pa.array(ids, pa.int64()), "why": batch["valueError"], "raw": batch["rawValue"]}
    )


def test_a_transform_gets_values_that_are_read() -> None:
    layout = pa.schema([("id", pa.int32()), ("why", pa.string()), ("raw", pa.binary())])
    value_format = ValueFormat("json", "id INT", with_raw=True)
    check_columns(layout, value_format, f"{__name__}:read_ids")
    rows = SourceRows(layout, value_format, f"{__name__}:read_ids")
    assert rows(polled()).to_pylist() == [{"id": 5, "why": None, "raw": None}]
    [broken] = rows(polled(b"[]")).to_pylist()
    assert broken == {"id": None, "why": "not a JSON object", "raw": b"[]"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("json.dumps", "must be package.module:function"),
        ("json:nothing", "could not be loaded"),
        ("no_such_module:f", "could not be loaded"),
        ("json:__name__", "must be a function"),
    ],
)
def test_a_transform_that_is_not_there_is_named(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_transform(path)


def test_columns_follow_the_options() -> None:
    assert source_ddl(BINARY, True).startswith("key BINARY, value BINARY, topic STRING")
    assert source_ddl(BINARY, True).endswith("headers ARRAY<STRUCT<key: STRING, value: BINARY>>")
    assert source_ddl(ValueFormat("string"), False).endswith("valueError STRING")
    assert "value STRUCT<id INT>" in source_ddl(ValueFormat("json", "id INT"), False)


def test_fewer_columns_than_there_are() -> None:
    layout = pa.schema([("offset", pa.int64()), ("timestamp", pa.timestamp("us", tz="UTC"))])
    for value_format in (BINARY, ValueFormat("json", "id INT")):
        check_columns(layout, value_format, None)
        batch = SourceRows(layout, value_format, None)(polled())
        assert batch.schema.equals(layout)
        assert batch.to_pylist() == [{"offset": 7, "timestamp": TIME}]


@pytest.mark.parametrize(
    ("names", "value_format", "message"),
    [
        (["offset", "valu"], BINARY, "unknown column valu; must be among key, value, topic"),
        (["offset", "valueError"], ValueFormat("json", "id INT"), "needs the column value among"),
        (["value", "valueError"], BINARY, "valueError needs a valueFormat"),
        (["value"], ValueFormat("json", "id INT"), "type int32: must be a struct"),
    ],
)
def test_columns_that_cannot_be_made_are_named(
    names: list[str], value_format: ValueFormat, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_columns(pa.schema([(name, pa.int32()) for name in names]), value_format, None)


def test_types_that_nobody_reads_are_told_before_a_task_runs() -> None:
    kind = pa.struct([("sizes", pa.map_(pa.string(), pa.int32()))])
    sizes = ValueFormat("json", "sizes MAP<STRING, INT>")
    with pytest.raises(ConfigError, match=r"valueFormat=json.*map<string, int32> is not supported"):
        check_columns(pa.schema([("value", kind)]), sizes, None)
    with pytest.raises(ConfigError, match=r"valueFormat=json.*map<string, int32> is not supported"):
        check_columns(pa.schema([("total", pa.int64())]), sizes, "m:f")
    tags = ValueFormat("csv", "id INT, tags ARRAY<STRING>")
    with pytest.raises(ConfigError, match=r"valueFormat=csv.*list<.*> is not supported"):
        check_columns(pa.schema([("total", pa.int64())]), tags, "m:f")
    with pytest.raises(ConfigError, match=r"schema 'id NUMBER': 'NUMBER' is unexpected"):
        check_columns(pa.schema([("n", pa.int64())]), ValueFormat("json", "id NUMBER"), "m:f")
    check_columns(pa.schema([("n", pa.int64())]), ValueFormat("csv", "id INT, at DATE"), "m:f")


def test_bytes_that_cannot_be_read_are_kept_when_asked_for() -> None:
    layout = pa.schema(
        [
            ("value", pa.struct([("id", pa.int32())])),
            ("valueError", pa.string()),
            ("rawValue", pa.binary()),
        ]
    )
    kept = ValueFormat("json", "id INT", with_raw=True)
    assert source_ddl(kept, False).endswith("valueError STRING, rawValue BINARY")
    [good] = SourceRows(layout, kept, None)(polled()).to_pylist()
    assert good == {"value": {"id": 5}, "valueError": None, "rawValue": None}
    [bad] = SourceRows(layout, kept, None)(polled(b"{oops")).to_pylist()
    assert (bad["value"], bad["rawValue"]) == (None, b"{oops")
    assert bad["valueError"]
