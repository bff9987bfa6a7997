"""The last lines of the process's log, kept in memory for the console.

    ring = LineRing()
    logging.getLogger().addHandler(ring)
    ring.lines(level=logging.WARNING, logger="barnabas.controller", text="orders")

Both the number of lines and their size are bounded, so that a flood drops old lines and nothing
else.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from barnabas.logging.formats import message_of
from barnabas.logging.text import cut, printable
from barnabas.model.observations import LogLine

LINES_MAX = 2000
CHARACTERS_MAX = 1_000_000
LINE_MAX = 4000
"""Characters of one line with its traceback."""


class LineRing(logging.Handler):
    """Keeps lines that pass the levels of their loggers."""

    def __init__(self, lines_max: int = LINES_MAX, characters_max: int = CHARACTERS_MAX) -> None:
        super().__init__()
        self._lines: deque[LogLine] = deque()
        self._lines_max = lines_max
        self._characters_max = characters_max
        self._characters = 0
        self._count = 0
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; called by any thread, with the handler's lock."""
        try:
            text = message_of(record)
            if record.exc_info:
                traceback = self._formatter.formatException(record.exc_info).splitlines()
                text += "".join(f"\n{printable(line)}" for line in traceback)
        except Exception as failure:  # noqa: BLE001 - a mistake in a log call stops nothing
            text = f"{record.msg!s} (its arguments could not be written: {failure})"
        text = cut(text, LINE_MAX)
        self._count += 1
        line = LogLine(self._count, int(record.created * 1000), record.levelno, record.name, text)
        self._lines.append(line)
        self._characters += len(text)
        while len(self._lines) > self._lines_max or self._characters > self._characters_max:
            self._characters -= len(self._lines.popleft().text)

    @property
    def count(self) -> int:
        """How many lines there were, kept or not."""
        return self._count

    def lines(
        self, *, level: int = 0, logger: str = "", text: str = "", limit: int = LINES_MAX
    ) -> Sequence[LogLine]:
        """Return the newest lines first: from a level on, of a logger and those below it.

        `text` is looked for in any case, in the message and in the logger's name.
        """
        self.acquire()
        try:
            kept = list(self._lines)
        finally:
            self.release()
        part = text.lower()
        found: list[LogLine] = []
        for line in reversed(kept):
            if line.level < level or not (
                not logger or line.logger == logger or line.logger.startswith(logger + ".")
            ):
                continue
            if part and part not in line.text.lower() and part not in line.logger.lower():
                continue
            found.append(line)
            if len(found) >= limit:
                break
        return found
