r"""Records as a table of strings; cells are those of `text.py`, headers are JSON.

topic,partition,offset,timestamp,timestamp_type,key,value,headers
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from barnabas.archive.rows import Row, checked_headers, checked_number
from barnabas.archive.text import ArchiveError, from_cell, to_cell, to_json
from barnabas.kernels import ConsumerRecord

COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_type",
    "key",
    "value",
    "headers",
)
CELL_MAX = 2**31 - 1
"""The maximum length of a cell: csv's own limit of 128 KiB is far below that of a record."""


class _Lines:
    """Ends lines with a newline only, while csv assumes both characters.

    csv quotes a cell that contains a character of its line end, and to some readers a lone
    carriage return is a line end.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line.removesuffix("\r\n") + "\n")


class CsvWriter:
    """A file that is appended to by lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="")
        self._rows = csv.writer(_Lines(self._file), lineterminator="\r\n")
        self._rows.writerow(COLUMNS)

    def write(self, records: Sequence[ConsumerRecord]) -> None:
        """Append records."""
        self._rows.writerows(
            (
                record.topic,
                record.partition,
                record.offset,
                record.timestamp,
                record.timestamp_type,
                to_cell(record.key),
                to_cell(record.value),
                _headers(record),
            )
            for record in records
        )

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


def _headers(record: ConsumerRecord) -> str:
    if not record.headers:
        return ""
    pairs = [[name, to_json(value)] for name, value in record.headers]
    return json.dumps(pairs, ensure_ascii=False)


def read_csv(path: Path) -> Iterator[Row]:
    """Yield rows; raise ArchiveError, with the line's number, for a line that is not a record."""
    csv.field_size_limit(CELL_MAX)
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        try:
            if "value" not in (lines.fieldnames or ()):
                raise ValueError(f"the first line must name columns, including value: {COLUMNS}")
            for cells in lines:
                yield _row(cells)
        except (ValueError, csv.Error) as failure:
            raise ArchiveError(f"{path} line {lines.line_num}: {failure}") from failure


def _row(cells: dict[str, str | None]) -> Row:
    if None in cells or None in cells.values():
        raise ValueError("must have as many cells as there are columns")
    headers = cells.get("headers")
    return (
        _bytes(cells, "key"),
        _bytes(cells, "value"),
        checked_headers(json.loads(headers)) if headers else [],
        _number(cells, "timestamp"),
        _number(cells, "partition"),
    )


def _bytes(cells: dict[str, str | None], name: str) -> bytes | None:
    cell = cells.get(name)
    return None if cell is None else from_cell(cell)


def _number(cells: dict[str, str | None], name: str) -> int | None:
    cell = cells.get(name)
    return checked_number(name, int(cell)) if cell else None
