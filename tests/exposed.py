"""A strict reader of what a scrape returns: text 0.0.4 or OpenMetrics 1.0, every rule checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
KINDS = {"counter", "gauge", "histogram", "untyped", "unknown"}
ESCAPES = {r"\\": "\\", r"\n": "\n", r"\"": '"'}


class Series(NamedTuple):
    """A name and its labels."""

    name: str
    labels: tuple[tuple[str, str], ...]


@dataclass
class Family:
    """A metric with its series."""

    kind: str
    help: str
    samples: dict[Series, float] = field(default_factory=dict)


class Exposed(dict[str, Family]):
    """All families by name, as TYPE has it; and what the comments say."""

    comments: list[str]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of one series."""
        wanted = tuple(sorted(labels.items()))
        found = [
            value
            for family in self.values()
            for series, value in family.samples.items()
            if series.name == name and tuple(sorted(series.labels)) == wanted
        ]
        assert len(found) == 1, (name, labels, found)
        return found[0]

    def series(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the series of one name by their labels."""
        return {
            series.labels: value
            for family in self.values()
            for series, value in family.samples.items()
            if series.name == name
        }

    @property
    def names(self) -> set[str]:
        """The names of all series."""
        return {series.name for family in self.values() for series in family.samples}


def parse(text: str, *, openmetrics: bool = False) -> Exposed:
    """Read a scrape; fail with the line that breaks a rule."""
    found = Exposed()
    found.comments = []
    assert text.endswith("\n")
    lines = text[:-1].split("\n")
    if openmetrics:
        assert lines.pop() == "# EOF"
    name, help = "", ""
    for line in lines:
        if line.startswith("# HELP "):
            _, _, name, help = line.split(" ", 3)
            assert name not in found, f"{name} is not contiguous"
        elif line.startswith("# TYPE "):
            _, _, typed, kind = line.split(" ")
            assert typed == name, line
            assert kind in KINDS, line
            assert (kind == "untyped") <= (not openmetrics), line
            found[name] = Family(kind, help)
        elif line.startswith("#"):
            assert not openmetrics, f"OpenMetrics has no comments: {line}"
            found.comments.append(line)
        else:
            _add(found[name], name, line, openmetrics)
    for family_name, family in found.items():
        assert family.samples, f"{family_name} has no series"
        if family.kind == "histogram":
            _check_histogram(family_name, family)
    return found


def _add(family: Family, name: str, line: str, openmetrics: bool) -> None:
    match = SAMPLE.fullmatch(line)
    assert match is not None, line
    sample, labels, value = match[1], match[2] or "", match[3]
    suffixes: tuple[str, ...] = ("",)
    if family.kind == "histogram":
        suffixes = ("_bucket", "_sum", "_count")
    elif family.kind == "counter" and openmetrics:
        suffixes = ("_total",)
    assert sample in {f"{name}{suffix}" for suffix in suffixes}, f"{line}: not of {name}"
    series = Series(sample, _labels(labels, line))
    assert series not in family.samples, f"twice: {line}"
    number = float(value)
    if family.kind == "counter":
        assert number >= 0, line
    family.samples[series] = number


def _labels(text: str, line: str) -> tuple[tuple[str, str], ...]:
    found = []
    at = 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match is not None, line
        value = re.sub(r"\\.", lambda escape: ESCAPES[escape[0]], match[2])
        found.append((match[1], value))
        at = match.end()
        assert at == len(text) or text[at] == ",", line
        at += 1
    names = [name for name, _ in found]
    assert len(names) == len(set(names)), line
    return tuple(found)


def _check_histogram(name: str, family: Family) -> None:
    """Buckets grow, the last one is all, and each distribution has a sum and a count."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for series, value in family.samples.items():
        if series.name.endswith("_bucket"):
            others = dict(series.labels)
            le = float(others.pop("le"))
            buckets.setdefault(tuple(others.items()), []).append((le, value))
    for labels, pairs in buckets.items():
        assert [le for le, _ in pairs] == sorted({le for le, _ in pairs}), name
        counts = [count for _, count in pairs]
        assert counts == sorted(counts), name
        assert pairs[-1][0] == float("inf"), name
        assert family.samples[Series(f"{name}_count", labels)] == counts[-1], name
        assert Series(f"{name}_sum", labels) in family.samples, name
