"""What the parts of a compaction share: means, pieces of work, and aborts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

WORK_BYTES = 4 * 1024 * 1024
"""How much one piece of work reads or writes: short enough to stop soon, or to wait after it."""

PAUSE_S = 50e-6
"""A thread that never rests is left on its core to the end of its slice (some milliseconds), also
when the loop or a client wakes up there. One that rests between two buffers lets them in."""

Work: TypeAlias = Callable[[], int]  # returns how many bytes it read and wrote


class Means(NamedTuple):
    """What a compaction may use."""

    map_bytes: int
    load_factor: float
    buffer_bytes: int


class Aborted(Exception):
    """The compaction was asked to stop, or its segments are no longer those of the log."""


def give_way() -> None:
    """Yield this core to waiting threads."""
    time.sleep(PAUSE_S)


def go_on(is_aborted: Callable[[], bool]) -> None:
    """Raise Aborted if the compaction must stop."""
    if is_aborted():
        raise Aborted
