"""How many processors there are for this process: as many tasks can run at once on this machine."""

from __future__ import annotations

import os


def cores() -> int:
    """Return those that the process may use; where nobody can say that (macOS), all."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
