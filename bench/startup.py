"""How long commands take to their first output: `barnabas`, its commands, and Kafka's tools.

    python -m bench.startup [--runs N] [--markdown] [--only NAME]

Each command is a process of its own that prints its help; the time is that from its start to the
first byte. Rows that are slower than promised are marked, and the exit code is 1: 0.15 s for
`barnabas --help`, 0.3 s for all others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from bench.report import Report

from barnabas.cli.kafka.tools import TOOLS
from barnabas.cli.main import COMMANDS

OVERVIEW_S, COMMAND_S = 0.15, 0.3
"""What is promised."""
METRIC = "first output, ms"


def first_output_s(words: list[str]) -> float:
    """Start a command, and return the seconds until it has printed something."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "barnabas.cli", *words], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        first = os.read(process.stdout.fileno(), 1)
        took_s = time.perf_counter() - began
        process.stdout.read()
    if not first or process.returncode:
        raise RuntimeError(f"barnabas {' '.join(words)}: exit code {process.returncode}")
    return took_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="runs of each command")
    parser.add_argument("--only", default="", help="commands whose names contain this")
    parser.add_argument("--markdown", action="store_true", help="print the table for the docs")
    arguments = parser.parse_args()
    names = ["", *(each.name for each in (*COMMANDS, *TOOLS))]
    report = Report([f"{arguments.runs} runs of each, with bytecode written before"])
    late = []
    for name in names:
        if arguments.only not in name:
            continue
        words = [name, "--help"] if name else ["--help"]
        first_output_s(words)  # compiles what is new
        shown = " ".join(["barnabas", *words])
        times_s = [first_output_s(words) for _ in range(arguments.runs)]
        for took_s in times_s:
            report.add(shown, METRIC, "lower", "barnabas", took_s * 1000)
        if sorted(times_s)[len(times_s) // 2] > (COMMAND_S if name else OVERVIEW_S):
            late.append(shown)
    if arguments.markdown:
        print(report.markdown())
    else:
        report.show()
    for shown in late:
        print(f"slower than promised: {shown}", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
