"""Bytes and strings of strangers as text that is safe to look at.

What a page shows is escaped by its template. Here what is not visible becomes visible: control
characters, marks that turn the direction of text, characters without width, halves of pairs.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

SHOWN_MAX: Final = 64 * 1024
"""Bytes of a value that a page shows at first."""

WHOLE_MAX: Final = 1024 * 1024
"""Bytes of a value that a page shows on demand; larger ones are downloads."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_LINES = re.compile("[\t\n]")


def visible(text: str) -> str:
    """Return a string in which nothing is hidden; line feeds and tabs stay."""
    return _HIDDEN.sub(_symbol, text)


def visible_line(text: str) -> str:
    """Return a string on one line, in which nothing is hidden."""
    return _LINES.sub(_symbol, visible(text))


def _symbol(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 0x20:
        return chr(0x2400 + number)  # the pictures of control characters
    if number == 0x7F:
        return "\u2421"
    return f"⟨U+{number:04X}⟩"


def hex_dump(data: bytes, start: int = 0) -> str:
    """Return lines of an offset, 16 bytes, and what of them is ASCII."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        ascii_part = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{start + at:08x}  {row.hex(' '):<47}  {ascii_part}")
    return "\n".join(lines)


def time_text(timestamp_ms: int, zone: tzinfo = UTC) -> str:
    """Return a timestamp in full; the number itself if no calendar has it."""
    if timestamp_ms == -1:
        return "no time"
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
        return moment.astimezone(zone).isoformat(" ", "milliseconds")
    except OverflowError:
        return f"{timestamp_ms} ms"


def size_text(size: int) -> str:
    """Return a number of bytes for people."""
    if size < 1000:
        return f"{size} B"
    amount = size / 1000
    for unit in ("kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def count_text(count: int) -> str:
    """Return a count with its thousands apart."""
    return f"{count:,}".replace(",", "\u202f")


def cut_utf8(data: bytes, limit: int) -> bytes:
    """Return the beginning of UTF-8, not cut inside a character."""
    if len(data) <= limit:
        return data
    end = limit
    while end > max(limit - 4, 0) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
