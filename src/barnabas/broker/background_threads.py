"""Threads for work that can wait: where cores are scarce they give way to the loop.

Work on another thread that releases the GIL still takes a core from the loop, for whole slices of
the scheduler (some milliseconds) whenever more threads want to run than there are cores. A lower
priority ends that: the loop runs the moment it wakes, and the work takes what is left. It is not
the lowest one, with which a busy machine would leave it next to nothing, and a thread that waits
for a core while it holds the GIL would keep the loop waiting too.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

NICENESS = 10
"""About a tenth of a core where others want all of it; all of a core that is idle."""


def background_thread(name: str) -> ThreadPoolExecutor:
    """Return an executor of one thread of lower priority; the caller shuts it down."""
    return ThreadPoolExecutor(1, name, initializer=_give_way)


def _give_way() -> None:
    # Only Linux gives each thread a priority of its own; elsewhere the loop's would go down too.
    if sys.platform == "linux":
        thread_id = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread_id) + NICENESS
        os.setpriority(os.PRIO_PROCESS, thread_id, min(niceness, 19))
