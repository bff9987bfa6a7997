"""Parquet files are written in bounded groups, and read by the columns that they have."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.archive.parquet_file import (
    ParquetFileWriter,
    count_rows,
    need_pyarrow,
    read_parquet,
    schema,
)
from barnabas.archive.text import ArchiveError


def batch(count: int) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {
            "topic": "t",
            "partition": 0,
            "offset": number,
            "timestamp": 1000,
            "timestamp_type": 0,
            "key": None,
            "value": b"v" * 100,
            "headers": [],
        }
        for number in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, schema())


def test_rows_are_written_in_groups_of_bounded_size(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    writer = ParquetFileWriter(path, group_bytes=10_000)
    for _ in range(10):
        writer.write(batch(50))
    writer.close()
    assert count_rows(path) == 500
    assert pq.read_metadata(path).num_row_groups == 5
    assert sum(each.num_rows for each in read_parquet(path)) == 500


def test_an_export_of_nothing_is_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ParquetFileWriter(path).close()
    assert count_rows(path) == 0
    assert pq.read_schema(path).names == schema().names


def test_other_columns_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "own.parquet"
    pq.write_table(pa.table({"price": [1, 2], "value": ["a", "b"], "key": ["x", None]}), path)
    [found] = read_parquet(path)
    assert found.to_pylist() == [{"key": "x", "value": "a"}, {"key": None, "value": "b"}]


def test_files_that_are_not_of_this_kind_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("value\n")
    with pytest.raises(ArchiveError, match=r"a\.parquet: "):
        list(read_parquet(path))
    with pytest.raises(ArchiveError, match=r"a\.parquet: "):
        count_rows(path)
    pq.write_table(pa.table({"price": [1]}), path)
    with pytest.raises(ArchiveError, match="must have a column value, has only price"):
        list(read_parquet(path))


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ArchiveError, match=r"pip install 'barnabas\[arrow\]'"):
        need_pyarrow()
