"""Bytes survive as text, whatever they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.archive.text import from_cell, from_json, to_cell, to_json

ANY = st.none() | st.binary() | st.text().map(str.encode)


@given(ANY)
def test_json_keeps_every_byte(data: bytes | None) -> None:
    assert from_json(json.loads(json.dumps(to_json(data)))) == data


@given(ANY)
def test_a_cell_keeps_every_byte(data: bytes | None) -> None:
    assert from_cell(to_cell(data)) == data


def test_cells_are_readable() -> None:
    assert to_cell(None) == "\\N"
    assert to_cell(b"") == ""
    assert to_cell("é".encode()) == "é"
    assert to_cell(b"\xff\x00") == "\\xff00"
    assert to_cell(b"\\N") == "\\x5c4e"  # else it would come back as null


@pytest.mark.parametrize("cell", ["\\", "\\n", "\\xf", "\\xzz", "\\NN"])
def test_a_backslash_that_begins_nothing_known_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="a backslash must be followed"):
        from_cell(cell)


@pytest.mark.parametrize("found", [5, [], {}, {"base64": 5}, {"base64": "", "x": 1}])
def test_json_that_is_no_bytes_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        from_json(found)


def test_broken_base64_is_refused() -> None:
    with pytest.raises(ValueError, match="'a!' is not base64"):
        from_json({"base64": "a!"})
