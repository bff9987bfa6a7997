"""Cases of checks: facts, and what they must be judged as."""

from __future__ import annotations

from barnabas.cli.doctor.finding import Check, Severity

Case = tuple[Check, Severity, str]
"""A check, how bad it is, and words of its text or its next step."""


def assert_judged(case: Case) -> None:
    check, severity, words = case
    finding = check.judge()
    assert finding.severity is severity, finding
    assert words in f"{finding.about} {finding.text} {finding.step}", finding
    # What is not green says what to do.
    assert (finding.step is None) is (severity is Severity.GREEN), finding
