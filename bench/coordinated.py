"""Both brokers with the same options, in turn, for benchmarks of groups and of transactions."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.pair import starters
from bench.report import Report, machine
from tools.processes import RunningBroker, free_port

RESULTS = Path(__file__).resolve().parent / "results"

Scenario = Callable[[RunningBroker, Report], None]
"""Measures one broker once, and notes what it saw."""


@contextmanager
def running(
    options: Mapping[str, str], only: str | None
) -> Iterator[tuple[list[RunningBroker], str | None]]:
    """Start the brokers; stop them and remove their data at the end."""
    found, missing = starters(only)
    directory = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    brokers: list[RunningBroker] = []
    try:
        for name, start in found.items():
            brokers.append(start(directory / name, port=free_port(), options=options))
        yield brokers, missing
    finally:
        for broker in brokers:
            broker.stop()
        shutil.rmtree(directory)


def arguments(
    description: str, argv: Sequence[str] | None, scenarios: Sequence[str] = ()
) -> argparse.Namespace:
    """Read what every such benchmark is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="one repetition, little of all")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, not a table")
    parser.add_argument("--only", choices=["barnabas", "apache"], help="measure one broker alone")
    if scenarios:
        parser.add_argument("--scenario", choices=scenarios, help="measure one thing alone")
    return parser.parse_args(argv)


def measure(
    name: str,
    args: argparse.Namespace,
    options: Mapping[str, str],
    scenarios: Sequence[Scenario],
    conditions: Sequence[str],
    *,
    warm_turns: int,
    repetitions: int,
) -> None:
    """Give each scenario to each broker in turn, drop the warm-up turns, and show the rest."""
    report = Report([machine(), *conditions])
    with running(options, args.only) as (brokers, missing):
        report.conditions += [missing] if missing else []
        for turn in range(warm_turns + repetitions):
            kept = report if turn >= warm_turns else Report([])
            for scenario in scenarios:
                for broker in brokers:
                    print(f"turn {turn + 1}: {broker.name}", file=sys.stderr)
                    scenario(broker, kept)
    if args.markdown:
        print(report.markdown())
    else:
        report.show()
    print(f"every value is in {report.save(RESULTS, name)}", file=sys.stderr)
