"""A topic as a table: columns told from a sample, and rows of polled batches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.model.errors import ConfigError
from barnabas.spark.offset_ranges import OffsetRange
from barnabas.sql.errors import SqlError
from barnabas.sql.table import TableRows, TopicTable, make_table

pa = pytest.importorskip("pyarrow")

RANGES = [OffsetRange("t", 0, 0, 10)]


def table(*values: bytes | None, keys: bytes | None = b"k", **options: Any) -> TopicTable:
    return make_table("t", RANGES, [(keys, value) for value in values], **options)


def polled(*values: bytes | None) -> Any:
    from barnabas.consumer.arrow import schema

    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["t"] * count).dictionary_encode(),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([1_700_000_000_123] * count, pa.timestamp("ms", tz="UTC")),
            "timestamp_type": pa.array([0] * count, pa.int8()),
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(
                [[{"key": "h", "value": b"1"}]] * count, schema().field("headers").type
            ),
        },
    )


def rows(found: TopicTable, *values: bytes | None) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = TableRows(found)(polled(*values)).to_pylist()
    return made


def test_fields_of_json_objects_are_columns() -> None:
    found = table(b'{"id": 1, "tags": ["a"]}', None, b'{"id": 2, "at": {"x": 1.5}}')
    [row, gone] = rows(found, b'{"id": 7, "tags": [], "at": {"x": 2}, "new": 1}', None)
    assert row["timestamp"].isoformat() == "2023-11-14T22:13:20.123000+00:00"
    del row["timestamp"]
    assert row == {
        "partition": 0,
        "offset": 0,
        "key": "k",
        "value": '{"id": 7, "tags": [], "at": {"x": 2}, "new": 1}',
        "headers": [{"key": "h", "value": b"1"}],
        "id": 7,
        "tags": [],
        "at": {"x": 2.0},
        "valueError": None,
    }
    assert (gone["value"], gone["id"], gone["valueError"]) == (None, None, None)


def test_fields_with_names_that_are_taken_get_others() -> None:
    found = table(b'{"timestamp": 5, "Key": "x", "id": 1, "ID": 2, "valueError": 3}')
    assert found.names == {
        "timestamp": "value_timestamp",
        "Key": "value_Key",
        "id": "id",
        "ID": "value_ID",
        "valueError": "value_valueError",
    }
    [row] = rows(found, b'{"timestamp": 5, "Key": "x", "id": 1, "ID": 2, "valueError": 3}')
    assert (row["value_timestamp"], row["value_Key"], row["id"], row["value_ID"]) == (5, "x", 1, 2)


def test_values_that_do_not_fit_are_null_and_counted() -> None:
    made = TableRows(table(b'{"id": 1}'))
    batch = made(
        polled(b'{"id": 1}', b'{"id": "two"}', b"no json", b'{"id":\n3}', None)
    ).to_pylist()
    assert [row["id"] for row in batch] == [1, None, None, 3, None]
    assert [row["valueError"] is None for row in batch] == [True, False, False, True, True]
    assert made.unreadable == 2
    assert made.first_unreadable == 'partition 0 offset 1: "two" is not BIGINT'


@pytest.mark.parametrize(
    "value",
    [
        b"null",
        b'{"id": %s}' % (b"[" * 100_000),
        b'{"name": "\\ud800"}',
    ],
    ids=["null", "deep", "half a character"],
)
def test_no_value_harms_those_beside_it(value: bytes) -> None:
    good = b'{"id": 1, "at": 0.5, "name": "x"}'
    made = TableRows(table(good))
    odd, even = made(polled(value, good)).to_pylist()
    assert (even["id"], even["at"], even["name"], even["valueError"]) == (1, 0.5, "x", None)
    assert (odd["id"], odd["at"], odd["name"]) == (None, None, None)
    assert made.unreadable == (value != b"null")


def test_fields_of_several_kinds_are_text() -> None:
    found = table(b'{"a": 1}', b'{"a": "x"}')
    assert [row["a"] for row in rows(found, b'{"a": 1}', b'{"a": "x"}', b'{"a": {"b": 2}}')] == [
        "1",
        "x",
        '{"b": 2}',
    ]


def test_values_of_other_kinds_stay_text_or_bytes() -> None:
    [row] = rows(table(b"plain"), "ünï".encode())
    assert (row["key"], row["value"]) == ("k", "ünï")
    assert "valueError" not in row
    [odd] = rows(table(b"plain"), b"a\xffb")
    assert odd["value"] == "a\\xffb"
    [row] = rows(table(b"\xff\xfe", keys=b"\xff"), b"\xff\xfe")
    assert (row["key"], row["value"]) == (b"k", b"\xff\xfe")
    [row] = rows(table(b'{"id": 1}', format="binary"), b'{"id": 1}')
    assert row["value"] == b'{"id": 1}'
    [row] = rows(table(b'{"id": 1}', format="string"), b'{"id": 1}')
    assert row["value"] == '{"id": 1}'
    assert "id" not in row


def test_a_schema_or_a_format_says_what_values_are() -> None:
    [row] = rows(
        table(b"x", schema="id INT, at TIMESTAMP"), b'{"id": 3, "at": "2026-01-31T00:00:00Z"}'
    )
    assert (row["id"], row["at"].year) == (3, 2026)
    [row] = rows(table(format="csv", schema="id INT, name STRING"), b'4,"a,b"')
    assert (row["id"], row["name"]) == (4, "a,b")


def test_avro_values() -> None:
    fastavro = pytest.importorskip("fastavro")
    import io

    schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, {"id": 9})
    [row] = rows(table(b"\xff", format="avro", schema=json.dumps(schema)), out.getvalue())
    assert (row["id"], row["valueError"]) == (9, None)


def test_wrong_formats_are_refused() -> None:
    with pytest.raises(SqlError, match="topic t: --format json without --schema, but not all"):
        table(b"text", format="json")
    with pytest.raises(ConfigError, match="valueFormat=avro: needs valueSchema"):
        table(b"text", format="avro")
    with pytest.raises(ConfigError, match="columns look like"):
        table(b"{}", schema="id")
    with pytest.raises(ConfigError, match=r"valueFormat=json: .* cannot be read: JSON conversion"):
        table(b"{}", schema="sizes MAP<STRING, INT>")
