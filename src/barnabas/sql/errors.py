"""Errors of a query, in one line or with the position in the query."""

from __future__ import annotations

from barnabas.model.errors import BarnabasError


class SqlError(BarnabasError):
    """A query that cannot be run."""


class UnknownTopicError(SqlError):
    """A query names a table that is not a topic."""


def at_position(query: str, position: int, what: str) -> SqlError:
    """Return an error that names the line and the column, and shows the query there."""
    position = max(0, min(position, len(query)))
    before = query[:position]
    line, column = before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1
    rest = query[position:].split("\n", 1)[0].strip()
    shown = f"{rest[:30]}…" if len(rest) > 30 else rest
    return SqlError(f"{what}, in line {line} at column {column}: {shown or 'the end'}")
