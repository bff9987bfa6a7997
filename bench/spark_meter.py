"""Time, and CPU of a process and all that it starts, while something runs.

Spark's work is done by a JVM and by Python processes that come and go; those that ended are not in
any sum that the system keeps (PySpark's daemon does not wait for its workers). So the tree is
looked at several times a second, and what each process had used when it was last seen counts.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

_LOOK_S = 0.1


class TreeMeter:
    """Wall time and CPU of the tree under one process, between `with` and its end."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._done = threading.Event()
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self.wall_s = 0.0

    def __enter__(self) -> TreeMeter:
        self._first = self._look()
        self._last = dict(self._first)
        self._thread = threading.Thread(target=self._watch, name="meter", daemon=True)
        self._thread.start()
        self._began_s = time.perf_counter()
        return self

    def __exit__(self, *about: object) -> None:
        self.wall_s = time.perf_counter() - self._began_s
        self._done.set()
        self._thread.join()
        self._last |= self._look()

    @property
    def cpu_s(self) -> float:
        """What the tree has used, processes that have ended included."""
        return sum(used - self._first.get(pid, 0.0) for pid, used in self._last.items())

    def _watch(self) -> None:
        while not self._done.wait(_LOOK_S):
            self._last |= self._look()

    def _look(self) -> dict[int, float]:
        """Return the CPU seconds of each process of the tree, all its threads."""
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text()
                except OSError:
                    continue  # it has ended meanwhile
                parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
        found = {}
        for pid in parents:
            above: int | None = pid
            while above is not None and above != self._root:
                above = parents.get(above)
            if above == self._root:
                try:
                    # The process's CPU clock (clock_getcpuclockid of Linux).
                    found[pid] = time.clock_gettime((~pid << 3) | 2)
                except OSError:
                    continue
        return found
