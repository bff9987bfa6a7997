"""How many instructions a request costs our broker, counted by valgrind's callgrind.

Times on a shared machine differ by a fifth from run to run; counts do not, so a change of one
percent can be seen. A broker runs inside of a process under callgrind, and each kind of request is
fed to one of its connections some hundred times: with security off, with 10,000 ACLs, with quotas,
with both, and over TLS. The system calls' own work in the kernel is not counted.

    python -m bench.instructions [--markdown] [--requests N] [--against CHECKOUT]
    python -m bench.instructions --check | --record

With `--against` another checkout of this tree is counted beside it, in the modes that it has; its
kernels must be compiled. `--check` compares this tree, with security off, with the figures in
`instructions.json`, and fails if a request has become dearer; `--record` writes them, after a
change that is worth its price or has made requests cheaper. Each build of Python has figures of
its own: another compiler, another count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.instructions_child import KINDS, MODES, UNSUPPORTED
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
FIGURES = Path(__file__).with_name("instructions.json")
REQUESTS = 500
CHECKED_REQUESTS = 100
TOLERANCE = 0.03
"""By how much a request may cost more than recorded: a repetition differs by half a percent."""
MARK = "getsid"
"""The C function whose calls divide the counts."""
TIMEOUT_S = 1800

Counts = dict[str, float]
"""Instructions for each request, by kind."""


def count(mode: str, requests: int, checkout: Path) -> Counts | None:
    """Run one broker under callgrind; None if the checkout does not have the mode."""
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        directory = Path(name)
        argv = [
            "valgrind",
            "--tool=callgrind",
            f"--dump-before={MARK}",
            f"--callgrind-out-file={directory}/counts",
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "bench.instructions_child",
            mode,
            str(requests),
            str(directory),
        ]
        environment = dict(
            os.environ,
            PYTHONPATH=os.pathsep.join([str(checkout / "src"), str(ROOT)]),
            PYTHONHASHSEED="0",  # the same collisions in every run
        )
        done = subprocess.run(
            argv,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        if done.returncode == UNSUPPORTED:
            return None
        if done.returncode != 0:
            raise RuntimeError(f"{mode} under valgrind failed:\n{done.stderr[-3000:]}")
        totals = dumped(directory)
    # One dump before each kind is measured, and one after it.
    assert len(totals) == 2 * len(KINDS), f"{len(totals)} dumps, expected {2 * len(KINDS)}"
    measured = totals[1::2]
    return {kind: total / requests for kind, total in zip(KINDS, measured, strict=True)}


def dumped(directory: Path) -> list[int]:
    """Return the instructions of each dump, in order; the last file is that of the exit."""
    numbered = {
        int(file.suffix[1:]): file for file in directory.glob("counts.*") if file.suffix[1:]
    }
    totals = []
    for number in sorted(numbered):
        text = numbered[number].read_text()
        if f"--dump-before={MARK}" not in text.partition("events:")[0]:
            continue
        (total,) = re.findall(r"^(?:summary|totals): (\d+)$", text, re.MULTILINE)[:1]
        totals.append(int(total))
    return totals


def interpreter() -> str:
    """Return what counts depend on beside the tree: the build of Python, the kind of machine."""
    built = f"{platform.python_compiler()} {sysconfig.get_config_var('CONFIG_ARGS')}"
    digest = hashlib.sha256(built.encode()).hexdigest()[:8]
    name = platform.python_implementation()
    return f"{name} {platform.python_version()} {platform.machine()} {digest}"


def recorded() -> Counts | None:
    """Return the figures of this interpreter, or None if it has none."""
    found: Counts | None = json.loads(FIGURES.read_text()).get(interpreter())
    return found


def record(counts: Counts) -> None:
    """Write the figures of this interpreter."""
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    figures[interpreter()] = {kind: round(value) for kind, value in counts.items()}
    FIGURES.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")


def dearer(counts: Counts, expected: Counts) -> list[str]:
    """Return one line for each kind that costs more than recorded, beyond the tolerance."""
    assert set(counts) == set(expected), f"{FIGURES.name} has other kinds: record it again"
    return [
        f"{kind}: {counts[kind]:,.0f} instructions a request, {counts[kind] / price - 1:+.1%} on"
        f" the recorded {price:,.0f} (tolerance {TOLERANCE:.0%})"
        for kind, price in expected.items()
        if counts[kind] > price * (1 + TOLERANCE)
    ]


def check() -> int:
    """Print each kind next to its recorded figure; return 1 if one has become dearer."""
    expected = recorded()
    if expected is None:
        print(f"no figures of {interpreter()} in {FIGURES.name}; write them with --record")
        return 0
    counts = count("off", CHECKED_REQUESTS, ROOT)
    assert counts is not None
    for kind, price in expected.items():
        print(
            f"{kind:<24} {counts[kind]:>10,.0f}  recorded {price:>10,.0f}"
            f"  {counts[kind] / price - 1:+.1%}"
        )
    worse = dearer(counts, expected)
    for line in worse:
        print(line, file=sys.stderr)
    return 1 if worse else 0


def rows(counts: dict[str, Counts], base: str) -> list[list[str]]:
    """Return one row for each kind: the counts of each column, with the ratio to the base."""
    found = []
    for kind in KINDS:
        row = [kind]
        for column, values in counts.items():
            cell = f"{values[kind]:,.0f}"
            if column != base:
                cell += f" ({values[kind] / counts[base][kind]:.3f})"
            row.append(cell)
        found.append(row)
    return found


def markdown(headings: list[str], body: list[list[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Instructions that a request costs our broker.")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="how many of each kind")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), metavar="MODE")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="count this one, too")
    guard = parser.add_mutually_exclusive_group()
    guard.add_argument("--check", action="store_true", help="compare with the recorded figures")
    guard.add_argument("--record", action="store_true", help="write the figures to compare with")
    args = parser.parse_args(arguments)
    if shutil.which("valgrind") is None:
        print("instructions were not counted: valgrind is not installed")
        return 0
    if args.check:
        return check()
    if args.record:
        found = count("off", args.requests, ROOT)
        assert found is not None
        record(found)
        return 0
    counts: dict[str, Counts] = {}
    trees = [("", ROOT)]
    if args.against is not None:
        checkout = args.against.resolve()
        trees.insert(0, (f"{checkout.name}: ", checkout))
    for label, tree in trees:
        for mode in args.modes:
            print(f"counting {label}{mode}", file=sys.stderr, flush=True)
            found = count(mode, args.requests, tree)
            if found is None:
                print(f"{label}has no {mode}", file=sys.stderr, flush=True)
            else:
                counts[label + mode] = found
    base = next(iter(counts))
    headings = ["instructions a request", *counts]
    body = rows(counts, base)
    if args.markdown:
        print(markdown(headings, body))
        return 0
    table = Table(caption=f"In brackets the ratio to {base!r}.")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left")
    for row in body:
        table.add_row(*row)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
