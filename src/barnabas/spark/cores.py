"""How many cores this process may use: the number of tasks that can run at once."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the cores that the process may use; all if that is unknown (macOS)."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
