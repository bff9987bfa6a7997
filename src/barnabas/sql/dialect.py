"""Translates the dialect of `barnabas sql` to DuckDB's.

Names that are not plain words are put in backticks, as in Spark; DuckDB needs double quotes. A
column of every topic is called offset, which DuckDB takes for the start of its OFFSET clause: it
is quoted unless a number follows. Strings, quoted names and comments stay as they are.

Each replacement is as long as what it replaces or its growth is known, so that a position in the
new query maps to one in the original.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORDS = re.compile(
    r"""
    (?P<kept> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ )
    | (?P<quoted> `(?:[^`]|``)*` )
    | (?P<offset> (?<![\w.$]) offset (?![\w$]) (?! \s* (?:\d|\$|\?|\()) )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class Translated(NamedTuple):
    """A query in DuckDB's dialect; `shifts` are (position in the new query, what to subtract)."""

    text: str
    shifts: tuple[tuple[int, int], ...]

    def original(self, position: int) -> int:
        """Return the position in the query as it was typed."""
        shift = 0
        for start, off in self.shifts:
            if start > position:
                break
            shift = off
        return position - shift


def to_duckdb(query: str) -> Translated:
    """Translate quotes and the word offset."""
    parts: list[str] = []
    shifts: list[tuple[int, int]] = []
    end = grown = size = 0
    for found in _WORDS.finditer(query):
        if found["kept"] is not None:
            continue
        before = query[end : found.start()]
        if found["quoted"] is not None:
            name = found[0][1:-1].replace("``", "`")
            new = '"' + name.replace('"', '""') + '"'
        else:
            new = f'"{found[0]}"'
        parts += [before, new]
        size += len(before) + len(new)
        grown += len(new) - len(found[0])
        end = found.end()
        if len(new) != len(found[0]):
            shifts.append((size, grown))
    parts.append(query[end:])
    return Translated("".join(parts), tuple(shifts))


def quoted(name: str) -> str:
    """Return a name quoted for DuckDB."""
    return '"' + name.replace('"', '""') + '"'
