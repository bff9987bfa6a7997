"""A position in a partition, as typed by users: `beginning`, `end`, an offset or a time.

    beginning | end            the first record kept | after the last one
    1500                       an offset
    2026-01-31T12:00:00Z       a time (without a zone: local time)
    @1767225600000             a time in milliseconds since 1970
    15m                        that long ago (ms, s, m, h, d)

The current time is an argument, so that a test can choose it.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import datetime

from barnabas.cli.arguments import UNITS_MS


@dataclass(frozen=True, slots=True)
class Beginning:
    """The log start offset."""


@dataclass(frozen=True, slots=True)
class End:
    """The log end offset."""


@dataclass(frozen=True, slots=True)
class Offset:
    """An exact offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first record that is not older than this."""

    timestamp_ms: int


Position = Beginning | End | Offset | Timestamp


def parse_position(text: str, now_ms: int) -> Position:
    """Parse a position."""
    if text == "beginning":
        return Beginning()
    if text == "end":
        return End()
    if text.isascii() and text.isdigit():
        return Offset(int(text))
    timestamp_ms = parse_time(text, now_ms)
    if timestamp_ms is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is none of: beginning, end, an offset (1500), a time "
            "(2026-01-31T12:00:00Z, @1767225600000), an age (15m, 2h, 1d)"
        )
    return Timestamp(timestamp_ms)


def parse_time(text: str, now_ms: int) -> int | None:
    """Parse a time to milliseconds since 1970; return None if it is not one."""
    if re.fullmatch(r"@[0-9]{1,18}", text):
        return int(text[1:])
    age = re.fullmatch(r"([0-9]{1,15})(ms|[smhd])", text)
    if age is not None:
        return now_ms - int(age[1]) * UNITS_MS[age[2]]
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
