"""Java properties: read as Java reads them, written so that they read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.properties import read_properties, write_properties
from barnabas.model.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\nb = 2\nc: 3\nd 4\ne\t5", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}),
        ("# comment\n! comment\n\n  # comment\na=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=", {"a": ""}),
        ("a", {"a": ""}),
        ("=a", {"": "a"}),
        ("a=x\\\n   y\\\n  z", {"a": "xyz"}),
        ("a=x\\\n# part of the value", {"a": "x# part of the value"}),
        ("a=ends with one \\\\\nb=2", {"a": "ends with one \\", "b": "2"}),
        ("a=unfinished\\", {"a": "unfinished"}),
        ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
        ("a=\\t\\n\\r\\f\\\\\\q", {"a": "\t\n\r\f\\q"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=trailing blank ", {"a": "trailing blank "}),
        ("log.dirs=/tmp/a\\ b,/tmp/c", {"log.dirs": "/tmp/a b,/tmp/c"}),
        ("", {}),
    ],
)
def test_a_file_is_read(text: str, properties: dict[str, str]) -> None:
    assert read_properties(text) == properties


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz", "a=\\u"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="four hexadecimal digits"):
        read_properties(text)


def test_a_file_is_written_in_order_after_its_comment() -> None:
    written = write_properties({"version": "0", "broker.id": "1", "a b": " x\\y"}, "made\nby hand")
    assert written == "# made\n# by hand\nversion=0\nbroker.id=1\na\\ b=\\ x\\\\y\n"


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(ANY_TEXT, ANY_TEXT))
def test_what_is_written_reads_back(properties: dict[str, str]) -> None:
    written = write_properties(properties)
    assert read_properties(written) == properties
    assert written.isascii()
