"""Positions read as people type them."""

from __future__ import annotations

import argparse
from datetime import datetime

import pytest

from barnabas.cli.position import Beginning, End, Offset, Position, Timestamp, parse_position

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("beginning", Beginning()),
        ("end", End()),
        ("0", Offset(0)),
        ("1500", Offset(1500)),
        ("@1500", Timestamp(1500)),
        ("250ms", Timestamp(NOW - 250)),
        ("15m", Timestamp(NOW - 900_000)),
        ("2h", Timestamp(NOW - 7_200_000)),
        ("1d", Timestamp(NOW - 86_400_000)),
        ("2026-01-31T12:00:00Z", Timestamp(1_769_860_800_000)),
        ("2026-01-31T12:00:00.250+01:00", Timestamp(1_769_857_200_250)),
        ("2026-01-31", Timestamp(int(datetime(2026, 1, 31).timestamp() * 1000))),
    ],
)
def test_positions(text: str, expected: Position) -> None:
    assert parse_position(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "-1", "latest", "5w", "@", "2026-13-01", "٣"])
def test_anything_else_names_what_there_is(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="beginning, end, an offset"):
        parse_position(text, NOW)
