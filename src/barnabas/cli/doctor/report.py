"""The report: a line for each finding as it is made, a last line that counts, or one document."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

from barnabas.cli.doctor.finding import Check, Finding, Severity
from barnabas.cli.output import counted, print_json

_COLOURS = {Severity.GREEN: "32", Severity.AMBER: "33", Severity.RED: "31"}
_SEVERITY_WIDTH = max(len(severity) for severity in Severity)
_CHECK_WIDTH = 12


class Report:
    """The findings so far."""

    def __init__(self, *, json: bool, colour: bool) -> None:
        self.findings: list[Finding] = []
        self._json = json
        self._colour = colour

    def judge(self, check: Check) -> Finding:
        """Judge a check, and print the finding."""
        return self.add(check.judge())

    def add(self, finding: Finding) -> Finding:
        """Print a finding."""
        self.findings.append(finding)
        if not self._json:
            print(line(finding, colour=self._colour), flush=True)
        return finding

    def close(self, at_ms: int) -> None:
        """Print the last line, or the document."""
        counts = self.counts()
        if self._json:
            print_json(
                {
                    "at": at_ms,
                    **{severity.value: counts[severity] for severity in Severity},
                    "findings": [document(finding) for finding in self.findings],
                }
            )
            return
        parts = ", ".join(f"{counts[severity]} {severity}" for severity in Severity)
        print(f"{counted(len(self.findings), 'check')}: {parts}")

    def exit_code(self, *, strict: bool) -> int:
        """Return 1 if something is red, or amber and that counts; 0 otherwise."""
        counts = self.counts()
        return int(bool(counts[Severity.RED] or (strict and counts[Severity.AMBER])))

    def counts(self) -> Counter[Severity]:
        """Return how many findings there are of each severity."""
        return Counter(finding.severity for finding in self.findings)


def line(finding: Finding, *, colour: bool) -> str:
    """Return a finding in one line."""
    word = finding.severity.ljust(_SEVERITY_WIDTH)
    if colour:
        word = f"\x1b[{_COLOURS[finding.severity]}m{word}\x1b[0m"
    text = f"{finding.about}: {finding.text}" if finding.about else finding.text
    text = " ".join(text.split())
    next_step = f"; next: {finding.step}" if finding.step else ""
    return f"{word}  {finding.check.ljust(_CHECK_WIDTH)}  {text}{next_step}"


def document(finding: Finding) -> dict[str, Any]:
    """Return a finding for machines."""
    return {
        "check": finding.check,
        "about": finding.about,
        "severity": finding.severity.value,
        "text": finding.text,
        "next": finding.step,
    }


def has_colour() -> bool:
    """Return whether stdout is a terminal that shows colours, and nothing forbids them."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
