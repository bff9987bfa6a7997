"""Text of others in a log line: what clients chose must neither forge a line nor fill the log."""

from __future__ import annotations

TEXT_MAX = 200
"""Characters of a value that clients may have chosen; the rest is cut."""

CUT = "…"


def cut(text: str, length: int = TEXT_MAX) -> str:
    """Return at most this many characters, and a mark if more were cut."""
    return text if len(text) <= length else text[:length] + CUT


def printable(text: str) -> str:
    r"""Return text on one line: line breaks, control and direction marks become \n, \x1b, \u202e.

    What is left has one meaning for every reader: a terminal, `grep`, a log collector.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
