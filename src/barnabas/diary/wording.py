"""Words that several sentences use: durations, sizes, moments, numbers of things, who did it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

Data: TypeAlias = Mapping[str, Any]

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def span(milliseconds: float) -> str:
    """Return a duration with the unit that fits."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 120_000:
        return f"{milliseconds / 1000:.1f} s"
    if milliseconds < 7_200_000:
        return f"{milliseconds / 60_000:.0f} min"
    if milliseconds < 172_800_000:
        return f"{milliseconds / 3_600_000:.1f} h"
    return f"{milliseconds / 86_400_000:.1f} days"


def size(count: float) -> str:
    """Return a number of bytes with the unit that fits."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"


def moment(milliseconds: int) -> str:
    """Return a time of day with its date, in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def listed(names: Any) -> str:
    """Return names in a row."""
    return ", ".join(map(str, names)) or "none"


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def by(data: Data) -> str:
    """Return who asked for it, and from where."""
    who = data.get("principal") or data.get("client_id") or "a client"
    return f"{who} at {data['host']}" if data.get("host") else str(who)
