"""The counts that a pipeline has sent, window by window, for a small table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

WINDOWS_MAX = 8


@dataclass(frozen=True, slots=True)
class Window:
    """A closed window."""

    start: str
    clicks: Mapping[str, int]

    @property
    def total(self) -> int:
        """Clicks on all pages."""
        return sum(self.clicks.values())


class Windows:
    """The last windows."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, int]] = {}
        self.seen = 0

    def add(self, value: bytes) -> None:
        """Add a record of the counts topic."""
        count = json.loads(value)
        self.seen += 1
        self._found.setdefault(count["window_start"], {})[count["page"]] = int(count["clicks"])
        while len(self._found) > WINDOWS_MAX:
            del self._found[min(self._found)]

    def latest(self) -> list[Window]:
        """Return the windows, the newest first."""
        return [Window(start, dict(self._found[start])) for start in sorted(self._found)[::-1]]
