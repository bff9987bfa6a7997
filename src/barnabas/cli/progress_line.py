"""One line on the terminal that shows the progress of a long command, and is redrawn.

It is drawn on stderr, and only if that is a terminal; lines that must stay are printed above it.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.live import Live


class ProgressLine:
    """The line, inside `with`; nothing without a terminal."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._live: Live | None = None
        self._wanted = wanted and sys.stderr.isatty()

    @property
    def is_drawn(self) -> bool:
        """Whether there is a terminal to draw on."""
        return self._live is not None

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(text), refresh=True)

    def print_line(self, text: str) -> None:
        """Print a line that stays."""
        if self._live is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._live.console.print(text, markup=False, highlight=False)

    def __enter__(self) -> ProgressLine:
        if self._wanted:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True), transient=True, auto_refresh=False
            ).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, value, traceback)
            self._live = None
