"""The result of a query: rows as Arrow batches that arrive one after another, for a file or output.

    .parquet   the columns as they are
    .csv       one line per row; lists and objects as JSON, bytes as UTF-8 or \\x and hexadecimal
    .jsonl     one object per line
    .json      one list of objects

A file is written under a hidden name, and renamed when it is complete.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.archive.text import to_cell, to_json
from barnabas.sql.errors import SqlError

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".parquet", ".csv", ".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class Result:
    """Columns, and batches that can be iterated over once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def limited(self, rows: int) -> Result:
        """Return the same with at most that many rows; later ones are not fetched."""
        return Result(self.schema, _limited(self.batches, rows))


def _limited(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch[:rows] if batch.num_rows > rows else batch
        rows -= batch.num_rows
        if rows <= 0:
            return


def check_output(path: Path, overwrite: bool) -> None:
    """Raise SqlError if a result cannot be written to that file."""
    if path.suffix not in ENDINGS:
        raise SqlError(f"--output {path}: must end in one of {', '.join(ENDINGS)}")
    if path.is_dir():
        raise SqlError(f"--output {path}: is a directory")
    if path.exists() and not overwrite:
        raise SqlError(f"--output {path}: already exists; --overwrite replaces it")


def write(result: Result, path: Path) -> int:
    """Write a result to a file; return its number of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.part")
    try:
        rows = _WRITERS[path.suffix](result, hidden)
        os.replace(hidden, path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    return rows


def _write_parquet(result: Result, path: Path) -> int:
    import pyarrow.parquet as pq

    rows = 0
    with pq.ParquetWriter(path, result.schema, compression="zstd") as writer:
        for batch in result.batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _write_csv(result: Result, path: Path) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(result.schema.names)
        for batch in result.batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                writer.writerow(["" if cell is None else text(cell) for cell in row])
            rows += batch.num_rows
    return rows


def _write_json_lines(result: Result, path: Path) -> int:
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        for batch in result.batches:
            for row in objects(batch):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            rows += batch.num_rows
    return rows


def _write_json(result: Result, path: Path) -> int:
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for batch in result.batches:
            for row in objects(batch):
                file.write(",\n " if rows else "\n ")
                file.write(json.dumps(row, ensure_ascii=False))
                rows += 1
        file.write("\n]\n")
    return rows


_WRITERS: dict[str, Callable[[Result, Path], int]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".json": _write_json,
}


def objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as JSON values; of columns with the same name the last one counts."""
    names = batch.schema.names
    cells = [[plain(cell) for cell in column.to_pylist()] for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def plain(cell: Any) -> Any:
    """Return a cell as a JSON value."""
    if isinstance(cell, bytes):
        return to_json(cell)
    if isinstance(cell, datetime):
        return time_text(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, Decimal):
        # DuckDB sums whole numbers as decimals without a fraction.
        return int(cell) if cell.as_tuple().exponent == 0 else str(cell)
    if isinstance(cell, timedelta):
        return str(cell)
    if isinstance(cell, float) and not math.isfinite(cell):
        return None  # JSON cannot express it
    if isinstance(cell, dict):
        return {str(name): plain(each) for name, each in cell.items()}
    if isinstance(cell, list | tuple):
        return [plain(each) for each in cell]
    return cell


def text(cell: Any) -> str:
    """Return a cell that is not null as a string."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bytes):
        return to_cell(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, dict | list | tuple):
        return json.dumps(plain(cell), ensure_ascii=False)
    return str(plain(cell))


def time_text(moment: datetime) -> str:
    """Return a time as 2026-01-31T12:00:00.123Z."""
    written = moment.isoformat(
        timespec="milliseconds" if moment.microsecond % 1000 == 0 else "auto"
    )
    return written.replace("+00:00", "Z").replace(".000", "")
