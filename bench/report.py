"""What was measured, as a table for people, as Markdown for the docs, and as JSON for later.

A ratio above 1 always means that ours is better, whichever way the unit points. Medians stand with
the smallest and largest value of the run; a ratio whose ranges overlap is marked, since it decides
nothing.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

CAPTION = "Median [min-max]; ~ marks a ratio whose ranges overlap."
OURS = "barnabas"
Better = Literal["higher", "lower"]


@dataclass
class Figure:
    """One metric of one scenario: every repetition, by broker."""

    scenario: str
    metric: str
    better: Better
    values: dict[str, list[float]] = field(default_factory=dict)

    def ratio(self, ours: str, peer: str) -> str:
        """Say how many times better ours is, with a mark when the ranges overlap."""
        if not (self.values.get(ours) and self.values.get(peer)):
            return ""
        mine, theirs = self.values[ours], self.values[peer]
        numerator, denominator = (mine, theirs) if self.better == "higher" else (theirs, mine)
        if statistics.median(denominator) == 0:
            return ""
        times = statistics.median(numerator) / statistics.median(denominator)
        overlap = min(mine) <= max(theirs) and min(theirs) <= max(mine)
        return f"{times:.2f}×{' ~' if overlap else ''}"


@dataclass
class Report:
    """All figures of a run, and the conditions under which they hold."""

    conditions: list[str]
    figures: list[Figure] = field(default_factory=list)

    def add(self, scenario: str, metric: str, better: Better, broker: str, value: float) -> None:
        """Note one repetition's value."""
        for figure in self.figures:
            if (figure.scenario, figure.metric) == (scenario, metric):
                break
        else:
            figure = Figure(scenario, metric, better)
            self.figures.append(figure)
        figure.values.setdefault(broker, []).append(value)

    def brokers(self) -> list[str]:
        """What was measured: ours first, the others in the order they first appear."""
        names = dict.fromkeys(name for figure in self.figures for name in figure.values)
        return sorted(names, key=lambda name: name.lower() != OURS)

    def rows(self) -> Iterable[list[str]]:
        """Yield scenario, metric, one cell for each broker, and the ratio when there are two."""
        brokers = self.brokers()
        for figure in self.figures:
            row = [figure.scenario, figure.metric]
            row += [_cell(figure.values.get(broker, [])) for broker in brokers]
            if len(brokers) == 2:
                row.append(figure.ratio(*brokers))
            yield row

    def headings(self) -> list[str]:
        """The heads of the columns that `rows` yields."""
        brokers = self.brokers()
        return ["scenario", "metric", *brokers, *(["ours is better"] if len(brokers) == 2 else [])]

    def show(self) -> None:
        """Print the conditions and a table."""
        # Into a pipe or a file the table has room; a terminal has its own width.
        console = Console() if sys.stdout.isatty() else Console(width=160)
        for line in self.conditions:
            console.print(line, highlight=False)
        table = Table(caption=escape(CAPTION))
        for index, heading in enumerate(self.headings()):
            table.add_column(heading, justify="left" if index < 2 else "right")
        previous = None
        for row in self.rows():
            if previous not in (None, row[0]):
                table.add_section()
            table.add_row("" if row[0] == previous else row[0], *row[1:])
            previous = row[0]
        console.print(table)

    def markdown(self) -> str:
        """The same table for a page."""
        headings = self.headings()
        lines = [f"- {line}" for line in self.conditions]
        lines += ["", "| " + " | ".join(headings) + " |", "|" + " --- |" * len(headings)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows()]
        return "\n".join([*lines, "", CAPTION])

    def save(self, directory: Path, name: str = "broker") -> Path:
        """Write every value as JSON, and return the file."""
        directory.mkdir(parents=True, exist_ok=True)
        moment = datetime.now(UTC)
        file = directory / f"{name}-{moment:%Y%m%dT%H%M%SZ}.json"
        content = {"at": moment.isoformat(), **asdict(self)}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return file


def machine() -> str:
    """Describe the machine in one line."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores = len(os.sched_getaffinity(0))
    busy = os.getloadavg()[0]
    return (
        f"{cores} cores ({model}), Python {platform.python_version()}, load average {busy:.1f} at"
        " the start; brokers and load share this machine"
    )


def _cell(values: list[float]) -> str:
    if not values:
        return "-"
    median = statistics.median(values)
    if len(values) == 1:
        return _number(median)
    return f"{_number(median)} [{_number(min(values))}-{_number(max(values))}]"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
