"""A file's format is told by its name or by the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.archive.formats import Format, files_of, format_of
from barnabas.archive.text import ArchiveError


def test_endings() -> None:
    assert format_of(Path("a/b.parquet")) is Format.PARQUET
    assert format_of(Path("b.CSV")) is Format.CSV
    assert format_of(Path("b.jsonl")) is Format.JSONL
    assert format_of(Path("parquet")) is None


def test_files_of_a_directory_come_in_order_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.csv", "a.parquet", "c.csv", ".d.csv", "notes.txt"):
        (tmp_path / name).touch()
    assert [(path.name, format) for path, format in files_of(tmp_path, None)] == [
        ("a.parquet", Format.PARQUET),
        ("b.csv", Format.CSV),
        ("c.csv", Format.CSV),
    ]
    assert [path.name for path, _ in files_of(tmp_path, Format.PARQUET)] == ["a.parquet"]
    with pytest.raises(ArchiveError, match="the directory has no jsonl file"):
        files_of(tmp_path, Format.JSONL)


def test_a_file_of_another_name_needs_its_format() -> None:
    with pytest.raises(ArchiveError, match="--format"):
        files_of(Path("a.txt"), None)
    assert files_of(Path("a.txt"), Format.CSV) == [(Path("a.txt"), Format.CSV)]
