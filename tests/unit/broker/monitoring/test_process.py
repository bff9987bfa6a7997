"""What is read of the process: from Linux's files, as far as they can be read."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from barnabas.broker.monitoring.process import ProcessMetrics, build_labels
from barnabas.metrics.catalogue import process as catalogue
from barnabas.metrics.metric import Metric

STAT = (
    "4711 (a name) S) S 1 2 3 4 -1 5 6 7 8 9 250 50 0 0 20 0 13 0 {start} 1048576000 2500 "
    "18446744073709551615\n"
)


def read(proc: Path) -> dict[Metric, dict[str, float]]:
    return {metric: dict(series) for metric, series in ProcessMetrics(proc).collect()}


def write_proc(proc: Path, *, io: bool = True) -> None:
    (proc / "self" / "fd").mkdir(parents=True)
    ticks = os.sysconf("SC_CLK_TCK")
    (proc / "self" / "stat").write_text(STAT.format(start=50 * ticks))
    (proc / "stat").write_text("cpu 1 2 3\nbtime 1700000000\nprocesses 9\n")
    if io:
        (proc / "self" / "io").write_text("rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\n")


def test_the_files_are_read(tmp_path: Path) -> None:
    write_proc(tmp_path)
    found = read(tmp_path)
    assert found[catalogue.THREADS] == {"": 13}
    assert found[catalogue.START_TIME] == {"": 1_700_000_050}
    assert found[catalogue.VIRTUAL_BYTES] == {"": 1_048_576_000}
    assert found[catalogue.RESIDENT_BYTES] == {"": 2500 * os.sysconf("SC_PAGESIZE")}
    assert found[catalogue.DISK_READ_BYTES] == {"": 4096}
    assert found[catalogue.DISK_WRITE_BYTES] == {"": 8192}
    assert found[catalogue.CPU_SECONDS][""] > 0
    assert set(found[catalogue.GC_COLLECTIONS]) == {f'generation="{n}"' for n in range(3)}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """A container may hide the disk, another system everything."""
    write_proc(tmp_path / "hidden", io=False)
    found = read(tmp_path / "hidden")
    assert catalogue.DISK_READ_BYTES not in found
    assert catalogue.THREADS in found
    found = read(tmp_path / "absent")
    assert catalogue.THREADS not in found
    assert catalogue.MAX_FDS in found


@pytest.mark.skipif(sys.platform != "linux", reason="the files are Linux's")
def test_this_process() -> None:
    found = read(Path("/proc"))
    (descriptors,) = found[catalogue.OPEN_FDS].values()
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(10)]
    try:
        (now,) = read(Path("/proc"))[catalogue.OPEN_FDS].values()
        assert now >= descriptors + 5  # other tests' threads may close some
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert 0 < found[catalogue.START_TIME][""] < time.time()
    assert found[catalogue.RESIDENT_BYTES][""] < found[catalogue.VIRTUAL_BYTES][""]
    assert found[catalogue.MAX_FDS][""] > 10


def test_what_runs_here() -> None:
    version, kernels, python = build_labels("1.2", "cython")
    assert (version, kernels) == ("1.2", "cython")
    assert sys.version.startswith(python)
