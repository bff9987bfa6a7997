"""Where offsets are to be: what people type, and lines in a file."""

from __future__ import annotations

import argparse
import io

import pytest

from barnabas.cli.offset_reset import (
    Current,
    Goal,
    Shift,
    parse_goal,
    read_offsets,
    within,
    write_offsets,
)
from barnabas.cli.position import Beginning, End, Offset, Timestamp
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

NOW_MS = 1_700_000_000_000
A, B = TopicPartition("a", 0), TopicPartition("b,c", 11)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("earliest", Beginning()),
        ("beginning", Beginning()),
        ("latest", End()),
        ("current", Current()),
        ("0", Offset(0)),
        ("+5", Shift(5)),
        ("-5", Shift(-5)),
        ("2h", Timestamp(NOW_MS - 7_200_000)),
        ("@17", Timestamp(17)),
    ],
)
def test_goals(text: str, goal: Goal) -> None:
    assert parse_goal(text, NOW_MS) == goal


@pytest.mark.parametrize("text", ["", "+", "-x", "soon", "1.5"])
def test_what_is_no_goal(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="none of: earliest"):
        parse_goal(text, NOW_MS)


def test_offsets_stay_inside_of_the_log() -> None:
    starts, ends = {A: 5, B: 0}, {A: 9, B: 0}
    assert within({A: 3, B: 3}, starts, ends) == {A: 5, B: 0}
    assert within({A: 7}, starts, ends) == {A: 7}


def test_files_come_back_as_they_went() -> None:
    file = io.StringIO()
    write_offsets({B: 3, A: 7}, file)
    assert file.getvalue() == 'a,0,7\n"b,c",11,3\n'
    assert read_offsets(io.StringIO(file.getvalue() + "\n")) == {A: 7, B: 3}


@pytest.mark.parametrize("text", ["a,0", "a,0,x", "a,b,1", "a,0,1,2"])
def test_lines_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(InvalidValueError, match="line 2"):
        read_offsets(["a,0,1\n", text])


def test_an_empty_file_is_a_mistake() -> None:
    with pytest.raises(InvalidValueError, match="the file has no offsets"):
        read_offsets([])
