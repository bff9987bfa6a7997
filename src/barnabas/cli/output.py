"""What commands print: tables for people, plain columns for pipes, JSON for machines.

rich draws tables only if stdout is a terminal: importing it takes longer than most commands run. In
a pipe, a table is plain text with aligned columns and the header in the first line, so that `awk`
can read it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any


def print_json(value: Any) -> None:
    """Print one JSON document, indented for a terminal and on one line otherwise."""
    indent = 2 if sys.stdout.isatty() else None
    print(json.dumps(value, indent=indent, ensure_ascii=False))


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None
) -> None:
    """Print rows under column names; numbers are aligned to the right, None shows as `-`."""
    cells = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    right = [
        bool(rows) and all(cell is None or isinstance(cell, int) for cell in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(columns)
    if sys.stdout.isatty():
        _print_rich(columns, cells, right, title)
        return
    if title is not None:
        print(title)
    widths = [max(len(text) for text in column) for column in zip(columns, *cells, strict=True)]
    for row in [list(columns), *cells]:
        padded = (
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(row, widths, right, strict=True)
        )
        print("  ".join(padded).rstrip())


def _print_rich(
    columns: Sequence[str], cells: list[list[str]], right: list[bool], title: str | None
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        padding=(0, 1, 0, 0),  # so that a topic's description fits in 80 columns
        pad_edge=False,
    )
    for column, to_right in zip(columns, right, strict=True):
        table.add_column(column, justify="right" if to_right else "left", overflow="fold")
    for row in cells:
        # Text, not markup: a topic may well be called "[bold]".
        table.add_row(*(Text(text) for text in row))
    Console().print(table)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size_bytes: int | None) -> str | None:
    """Return a size in the unit that leaves one to four digits."""
    if size_bytes is None:
        return None
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{size_bytes} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
