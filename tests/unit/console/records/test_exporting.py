"""Found records as files."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.archive.csv_file import read_csv
from barnabas.archive.jsonl_file import read_json_lines as read_archive
from barnabas.archive.parquet_file import read_parquet
from barnabas.console.records.exporting import (
    csv_lines,
    json_line,
    parquet_file,
    parquet_missing,
    read_json_lines,
    safe_cell,
)
from barnabas.console.records.rows import Kind, Row
from barnabas.console.records.sending import RECORDS_MAX, SendingError

BYTES = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=10).map(str.encode))
HEADERS = st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3).map(tuple)
ROWS = st.builds(
    Row,
    st.just(Kind.RECORD),
    st.integers(0, 9),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**41),
    st.just(0),
    BYTES,
    BYTES,
    HEADERS,
)


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_lines_of_json_come_back(rows: list[Row]) -> None:
    text = "".join(json_line("t", row) for row in rows)
    drafts = read_json_lines(text, "copy", keep_partition=True)
    assert [(each.key, each.value, each.headers, each.timestamp) for each in drafts] == [
        (row.key, row.value, row.headers, row.timestamp) for row in rows
    ]
    assert [each.partition for each in drafts] == [row.partition for row in rows]


def test_the_archive_reads_the_same_files(tmp_path) -> None:
    row = Row(Kind.RECORD, 3, 7, 5, 7, b"k", b"\xff", (("a", b"1"),))
    lines, cells, parquet = (tmp_path / f"f.{each}" for each in ("jsonl", "csv", "parquet"))
    expected = (b"k", b"\xff", [("a", b"1")], 5, 3)
    lines.write_text(json_line("t", row))
    assert list(read_archive(lines)) == [expected]
    cells.write_text(csv_lines("t", [row], heading=True), newline="")
    assert list(read_csv(cells)) == [expected]
    pytest.importorskip("pyarrow")
    assert parquet_missing() is None
    parquet.write_bytes(parquet_file("t", [row]))
    (batch,) = read_parquet(parquet)
    assert batch.to_pylist()[0]["key"] == b"k"


@given(st.lists(ROWS, max_size=4))
def test_no_cell_is_a_formula(rows: list[Row]) -> None:
    found = list(csv.reader(io.StringIO(csv_lines("=t", rows, heading=False), newline="")))
    assert len(found) == len(rows)
    for cells in found:
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)


@pytest.mark.parametrize("cell", ["=1", "+1", "-1", "@a", "\t=1", "\r=1"])
def test_formulas_get_an_apostrophe(cell: str) -> None:
    assert safe_cell(cell) == "'" + cell


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n", "no record"),
        ("{}", "line 1: must be an object with a value"),
        ('{"value": 1}', "line 1: value"),
        ('\n{"value": "a", "headers": [["a"]]}', "line 2: headers"),
        ('{"value": "a", "partition": 1.5}', "line 1: partition"),
        ('{"value": {"base64": "!"}}', "line 1: value is not base64"),
        ('{"value": "a"}\n' * (RECORDS_MAX + 1), f"more than {RECORDS_MAX}"),
        ("[" * 100_000, "line 1"),
        ('{"value": "\\ud800"}', "line 1"),
    ],
)
def test_wrong_lines_are_explained(text: str, reason: str) -> None:
    with pytest.raises(SendingError, match=reason):
        read_json_lines(text, "t", keep_partition=True)


def test_a_value_of_null_is_a_tombstone() -> None:
    (draft,) = read_json_lines(json.dumps({"key": "a", "value": None}), "t", keep_partition=False)
    assert (draft.value, draft.partition) == (None, None)
