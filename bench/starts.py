"""How long commands take to start: from the process's start to the first output, and to its end.

python -m bench.starts                 `barnabas --help`, each command, each of Kafka's tools
python -m bench.starts --repetitions 9

The exit code is 1 if a median is above its bound: 0.15 s for the first output of `barnabas --help`,
0.3 s for each command and tool to be done with its own `--help`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from barnabas.cli.kafka.tools import TOOLS
from barnabas.cli.main import COMMANDS

PROGRAM = Path(sysconfig.get_path("scripts"), "barnabas")
FIRST_OUTPUT_S, HELP_S = 0.15, 0.3


def start(*words: str) -> tuple[float, float]:
    """Return the seconds until the first output, and until the end."""
    began_s = time.perf_counter()
    with subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        first_s = time.perf_counter() - began_s
        process.stdout.read()
        code = process.wait()
    if code:
        raise SystemExit(f"{' '.join(words)}: exit code {code}")
    return first_s, time.perf_counter() - began_s


def medians(repetitions: int, *words: str) -> tuple[float, float]:
    """Return the medians of some starts, after one that fills caches."""
    start(*words)
    first, end = zip(*(start(*words) for _ in range(repetitions)), strict=True)
    return statistics.median(first), statistics.median(end)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how long commands take to start.")
    parser.add_argument("--repetitions", type=int, default=5, help="starts of each (default: 5)")
    repetitions = parser.parse_args().repetitions
    table = Table("command", "first output (ms)", "end (ms)", "bound (ms)")
    slow = False
    names = [command.name for command in COMMANDS] + [tool.name for tool in TOOLS]
    for name in [None, *names]:
        words = ("--help",) if name is None else (name, "--help")
        first_s, end_s = medians(repetitions, *words)
        bound_s, measured_s = (FIRST_OUTPUT_S, first_s) if name is None else (HELP_S, end_s)
        slow = slow or measured_s > bound_s
        mark = " !" if measured_s > bound_s else ""
        shown = f"{bound_s * 1000:.0f}{mark}"
        row = (" ".join(words), f"{first_s * 1000:.0f}", f"{end_s * 1000:.0f}", shown)
        table.add_row(*row)
    Console().print(table)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
