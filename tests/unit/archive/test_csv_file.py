"""CSV gives back what was written, and names the line that it cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.archive.records import EVERY_KIND, record, row

from barnabas.archive.csv_file import CsvWriter, read_csv
from barnabas.archive.text import ArchiveError

LINES = st.none() | st.binary() | st.text(alphabet='a ",;\r\n\\\t\0').map(str.encode)
Cells = list[tuple[bytes | None, bytes | None]]


def test_a_round_trip(tmp_path: Path) -> None:
    writer = CsvWriter(tmp_path / "a.csv")
    writer.write(EVERY_KIND[:3])
    writer.write(EVERY_KIND[3:])
    writer.close()
    assert list(read_csv(tmp_path / "a.csv")) == [row(each) for each in EVERY_KIND]


@given(st.lists(st.tuples(LINES, LINES), max_size=5))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, cells: Cells) -> None:
    """Carriage returns alone, too, which are the end of a line only to those who read."""
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    records = [record(number, *pair) for number, pair in enumerate(cells)]
    writer = CsvWriter(path)
    writer.write(records)
    writer.close()
    assert list(read_csv(path)) == [row(each) for each in records]


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("value,key\nhello,1\nworld,\\N\n")
    assert list(read_csv(path)) == [
        (b"1", b"hello", [], None, None),
        (None, b"world", [], None, None),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 0: the first line must name columns"),
        ("key\n1\n", "line 1: the first line must name columns"),
        ("value,partition\na,x\n", r"line 2: invalid literal"),
        ("value,partition\na,-3\n", r"line 2: partition=-3: must be a whole number"),
        ("value,key\na\n", "line 2: must have as many cells as there are columns"),
        ("value\na,b\n", "line 2: must have as many cells as there are columns"),
        ("value\nfine\n\\q\n", "line 3: .*a backslash must be followed"),
        ("value,headers\na,[1]\n", r"line 2: header 1: must be \[name, value\]"),
        ("value,headers\na,{\n", "line 2: Expecting property name"),
    ],
)
def test_what_is_no_record_is_named_with_its_line(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ArchiveError, match=complaint):
        list(read_csv(path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b"value\n\xff\xff\n")
    with pytest.raises(ArchiveError, match="can't decode"):
        list(read_csv(path))
