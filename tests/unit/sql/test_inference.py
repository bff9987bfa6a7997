"""Columns of JSON values, told from a sample."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.spark.values.ddl import struct_of
from barnabas.sql.inference import Fields, fit, has_mixed, infer, to_ddl


def inferred(*values: Any) -> Fields:
    found = infer(json.dumps(value).encode() for value in values)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("values", "ddl"),
    [
        ([{"a": 1, "b": "x"}, {"b": "y", "c": True}], "`a` BIGINT, `b` STRING, `c` BOOLEAN"),
        ([{"a": 1}, {"a": 1.5}], "`a` DOUBLE"),
        ([{"a": 2**70}], "`a` DOUBLE"),
        ([{"a": None}, {"a": 3}], "`a` BIGINT"),
        ([{"a": None}], "`a` STRING"),
        ([{"a": 1}, {"a": "one"}], "`a` STRING"),
        ([{"a": True}, {"a": 1}], "`a` STRING"),
        ([{"a": [1, None]}, {"a": []}], "`a` ARRAY<BIGINT>"),
        ([{"a": {"b": 1}}, {"a": {"c": "x"}}], "`a` STRUCT<`b`: BIGINT, `c`: STRING>"),
        ([{"a": {}}], "`a` STRING"),
        ([{"a": {"id": 1, "Id": 2}}], "`a` STRING"),
        ([{"we`ird na-me": 1}], "`we``ird na-me` BIGINT"),
    ],
)
def test_columns_of_a_sample(values: list[Any], ddl: str) -> None:
    found = to_ddl(inferred(*values))
    assert found == ddl
    assert len(struct_of(found)) == len(values[0] | values[-1])


@pytest.mark.parametrize("sample", [[], [b"text"], [b'{"a": 1}', b"[1]"], [b"{}"], [b"\xff"]])
def test_other_values_have_no_columns(sample: list[bytes]) -> None:
    assert infer(sample) is None


def test_values_are_made_to_fit() -> None:
    fields = inferred(
        {"i": 1, "d": 1.5, "s": "x", "m": 1, "n": None, "l": [1], "o": {"p": 1}}, {"m": "text"}
    )
    assert has_mixed(fields)
    assert fit({"d": 2, "m": {"x": [1]}, "n": 7, "extra": 1}, fields) == {
        **dict.fromkeys("islo"),
        "d": 2.0,
        "m": '{"x": [1]}',
        "n": "7",
    }
    for wrong in ({"i": 1.5}, {"i": "1"}, {"s": 1}, {"l": 1}, {"o": []}, [], "x"):
        with pytest.raises(ValueError, match="is not"):
            fit(wrong, fields)
    assert not has_mixed(inferred({"i": 1, "n": None}))
