"""Answers on their way to files."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from barnabas.sql.errors import SqlError
from barnabas.sql.result import Result, check_output, write

pa = pytest.importorskip("pyarrow")

ROWS: list[dict[str, Any]] = [
    {
        "n": 1,
        "t": 'a "text"\nof lines',
        "b": b"\xff\x00",
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "d": Decimal("1.50"),
        "day": date(2026, 1, 31),
        "l": [{"x": 1.5, "raw": b"ok"}],
        "f": True,
    },
    {"n": None, "t": None, "b": None, "at": None, "d": None, "day": None, "l": None, "f": None},
]


def result(copies: int = 1) -> Result:
    batch = pa.RecordBatch.from_pylist(ROWS)
    return Result(batch.schema, iter([batch] * copies))


PLAIN = {
    "n": 1,
    "t": 'a "text"\nof lines',
    "b": {"base64": "/wA="},
    "at": "2026-01-31T12:00:00Z",
    "d": "1.50",
    "day": "2026-01-31",
    "l": [{"x": 1.5, "raw": "ok"}],
    "f": True,
}


def test_a_list_of_objects_and_objects_by_line(tmp_path: Path) -> None:
    expected = [PLAIN, dict.fromkeys(PLAIN)]
    assert write(result(2), tmp_path / "a.json") == 4
    assert json.loads((tmp_path / "a.json").read_text()) == expected * 2
    assert write(result(2), tmp_path / "a.jsonl") == 4
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == expected * 2
    write(Result(result().schema, iter([])), tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_csv(tmp_path: Path) -> None:
    assert write(result(), tmp_path / "a.csv") == 2
    with (tmp_path / "a.csv").open(newline="") as file:
        names, first, second = csv.reader(file)
    assert names == list(PLAIN)
    assert first == [
        *("1", 'a "text"\nof lines', "\\xff00", "2026-01-31T12:00:00Z", "1.50", "2026-01-31"),
        *('[{"x": 1.5, "raw": "ok"}]', "true"),
    ]
    assert second == [""] * 8


def test_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    assert write(result(2), tmp_path / "deep" / "a.parquet") == 4
    assert pq.read_table(tmp_path / "deep" / "a.parquet").to_pylist() == ROWS * 2


def test_a_limit_asks_for_no_more() -> None:
    taken = []

    def batches() -> Any:
        for number in range(5):
            taken.append(number)
            yield pa.RecordBatch.from_pydict({"n": [number] * 4})

    schema = pa.schema([("n", pa.int64())])
    found = list(Result(schema, batches()).limited(6).batches)
    assert [batch.num_rows for batch in found] == [4, 2]
    assert taken == [0, 1]


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    def batches() -> Any:
        yield pa.RecordBatch.from_pylist(ROWS)
        raise SqlError("lost")

    for ending in ("csv", "json", "jsonl", "parquet"):
        with pytest.raises(SqlError, match="lost"):
            write(Result(result().schema, batches()), tmp_path / f"a.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=r"must end in one of \.parquet, \.csv"):
        check_output(tmp_path / "a.txt", False)
    (tmp_path / "a.csv").write_text("old")
    with pytest.raises(SqlError, match="already exists; --overwrite replaces it"):
        check_output(tmp_path / "a.csv", False)
    check_output(tmp_path / "a.csv", True)
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(SqlError, match="is a directory"):
        check_output(tmp_path / "b.csv", True)
