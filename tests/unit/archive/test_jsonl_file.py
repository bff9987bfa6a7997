"""Lines of JSON give back what was written, and a bad line is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.archive.records import EVERY_KIND, row

from barnabas.archive.jsonl_file import JsonLinesWriter, read_json_lines
from barnabas.archive.text import ArchiveError


def test_a_round_trip(tmp_path: Path) -> None:
    writer = JsonLinesWriter(tmp_path / "a.jsonl")
    writer.write(EVERY_KIND)
    writer.close()
    assert list(read_json_lines(tmp_path / "a.jsonl")) == [row(each) for each in EVERY_KIND]


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"value": "a"}\n\n{"value": null, "key": "k", "headers": null}')
    assert list(read_json_lines(path)) == [
        (None, b"a", [], None, None),
        (b"k", None, [], None, None),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "line 2: Expecting property name"),
        (b"[]", "line 2: must be an object with a value"),
        (b'{"key": "k"}', "line 2: must be an object with a value"),
        (b'{"value": 5}', "line 2: 5 must be one of"),
        (b'{"value": "", "timestamp": "now"}', "line 2: timestamp='now': must be a whole number"),
        (b'{"value": "", "partition": true}', "line 2: partition=True: must be a whole number"),
        (b'{"value": "", "headers": {}}', "line 2: headers={}: must be a list"),
        (b'{"value": "\xff"}', "line 2: .*can't decode"),
    ],
)
def test_what_is_no_record_is_named_with_its_line(
    tmp_path: Path, line: bytes, complaint: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"value": ""}\n' + line + b"\n")
    with pytest.raises(ArchiveError, match=complaint):
        list(read_json_lines(path))
