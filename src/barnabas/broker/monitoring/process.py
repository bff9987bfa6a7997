"""What the operating system and Python know of the process; read at each scrape."""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from barnabas.metrics.catalogue import process as catalogue
from barnabas.metrics.metric import Metric, label_text

PROC = Path("/proc")
"""Linux's directory of processes; elsewhere only what every system says is collected."""


class ProcessMetrics:
    """The numbers of this process."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._started_s: float | None = None

    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]]]:
        """Yield the numbers of the process, and of Python's garbage collector."""
        times = os.times()
        yield catalogue.CPU_SECONDS, [("", times.user + times.system)]
        yield catalogue.MAX_FDS, [("", resource.getrlimit(resource.RLIMIT_NOFILE)[0])]
        try:
            fields = self._stat()
            started_s = self._start_time_s(int(fields[19]))
            descriptors = self._descriptors()
        except (OSError, IndexError, ValueError):
            fields = []
        if fields:
            yield catalogue.THREADS, [("", int(fields[17]))]
            yield catalogue.START_TIME, [("", started_s)]
            yield catalogue.VIRTUAL_BYTES, [("", int(fields[20]))]
            yield catalogue.RESIDENT_BYTES, [("", int(fields[21]) * resource.getpagesize())]
            yield catalogue.OPEN_FDS, [("", descriptors)]
        disk = self._disk()
        if disk is not None:
            yield catalogue.DISK_READ_BYTES, [("", disk[0])]
            yield catalogue.DISK_WRITE_BYTES, [("", disk[1])]
        labels = catalogue.GC_COLLECTIONS.labels
        generations = [
            (label_text(labels, (str(number),)), stats)
            for number, stats in enumerate(gc.get_stats())
        ]
        for metric, key in (
            (catalogue.GC_COLLECTIONS, "collections"),
            (catalogue.GC_COLLECTED, "collected"),
            (catalogue.GC_UNCOLLECTABLE, "uncollectable"),
        ):
            yield metric, [(text, stats[key]) for text, stats in generations]

    def _stat(self) -> list[str]:
        """Return the fields of /proc/self/stat behind the name, which may contain anything."""
        text = (self._proc / "self" / "stat").read_text()
        return text[text.rindex(")") + 2 :].split()

    def _start_time_s(self, ticks_after_boot: int) -> float:
        if self._started_s is None:
            lines = (self._proc / "stat").read_text().splitlines()
            (boot_s,) = (int(line.split()[1]) for line in lines if line.startswith("btime "))
            self._started_s = boot_s + ticks_after_boot / os.sysconf("SC_CLK_TCK")
        return self._started_s

    def _descriptors(self) -> int:
        """Count open descriptors; newer kernels give the number as the directory's size."""
        directory = self._proc / "self" / "fd"
        return directory.stat().st_size or len(os.listdir(directory))

    def _disk(self) -> tuple[int, int] | None:
        """Return the bytes read from and written to disks; containers may forbid to know them."""
        try:
            lines = (self._proc / "self" / "io").read_text().splitlines()
            found = dict(line.split(": ") for line in lines)
            return int(found["read_bytes"]), int(found["write_bytes"])
        except (OSError, KeyError, ValueError):
            return None


def build_labels(version: str, kernels: str) -> tuple[str, str, str]:
    """Return the labels of what runs here."""
    return version, kernels, ".".join(map(str, sys.version_info[:3]))
