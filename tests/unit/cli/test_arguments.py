"""Arguments convert as documented, and misuse names the value."""

from __future__ import annotations

import argparse

import pytest

from barnabas.cli.arguments import (
    add_connection,
    assignment,
    count,
    escaped,
    index,
    seconds,
    separator,
)


def test_escapes_become_bytes() -> None:
    assert escaped(r"a\tb\n\r\0\\\x41é") == b"a\tb\n\r\0\\A\xc3\xa9"
    assert escaped("") == b""


@pytest.mark.parametrize("text", [r"\q", "end\\", r"\xZZ"])
def test_unknown_escapes_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        escaped(text)


def test_assignments_split_at_the_first_sign() -> None:
    assert assignment("a=b=c") == ("a", "b=c")
    assert assignment("a=") == ("a", "")
    for text in ("a", "=b"):
        with pytest.raises(argparse.ArgumentTypeError, match="name=value"):
            assignment(text)


def test_numbers_have_bounds() -> None:
    assert (count("3"), index("0"), seconds("0.5")) == (3, 0, 0.5)
    for convert, text in [
        (count, "0"),
        (index, "-1"),
        (count, "x"),
        (seconds, "0"),
        (seconds, "nan"),
        (seconds, "inf"),
        (seconds, "x"),
    ]:
        with pytest.raises(argparse.ArgumentTypeError, match=repr(text)):
            convert(text)


def test_a_separator_cannot_be_empty() -> None:
    assert separator(r"\t") == b"\t"
    with pytest.raises(argparse.ArgumentTypeError, match="empty"):
        separator("")


@pytest.mark.parametrize("spelling", ["--bootstrap", "--bootstrap-server"])
def test_the_cluster_is_named_as_in_kafkas_commands(spelling: str) -> None:
    parser = argparse.ArgumentParser()
    add_connection(parser)
    assert parser.parse_args([spelling, "a:1,b:2"]).bootstrap == "a:1,b:2"
