"""Records print as the format says, and as JSON without losing a byte."""

from __future__ import annotations

import argparse
import json

import pytest

from barnabas.cli.record_format import compile_format, json_line, parse_format
from barnabas.records.batch import Record

FULL = Record(7, 1700, b"k", b"\xff\x00", (("h", b"1"), ("n", None)))
EMPTY = Record(8, 1701, None, None, ())


def show(text: str, record: Record, null: bytes = b"") -> bytes:
    return compile_format(parse_format(text), null)("t", 3, record)


def test_every_letter() -> None:
    assert show(r"%t %p %o %T %h %k %K %V%%\n", FULL) == b"t 3 7 1700 h=1,n= k 1 2%\n"
    assert show("%v", FULL) == b"\xff\x00"


def test_null_prints_as_its_marker_and_has_size_minus_one() -> None:
    assert show("%k|%v|%K|%V|%h", EMPTY, b"NULL") == b"NULL|NULL|-1|-1|"
    assert show("%h", FULL, b"NULL") == b"h=1,n=NULL"


def test_percent_signs_escape_themselves() -> None:
    assert show("%%v%%%v", Record(0, 0, None, b"x", ())) == b"%v%x"


@pytest.mark.parametrize("text", ["%z", "50%", r"\q%v"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_format(text)


def test_json_keeps_text_readable_and_bytes_whole() -> None:
    line = json_line("t", 3, FULL)
    assert line.endswith(b"}\n")
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 1700,
        "key": "k",
        "value": {"base64": "/wA="},
        "headers": [["h", "1"], ["n", None]],
    }
    assert json.loads(json_line("t", 3, EMPTY))["value"] is None
