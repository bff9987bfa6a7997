"""What a check finds: how bad it is, in which words, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Severity(StrEnum):
    """How bad a finding is."""

    GREEN = "green"
    """All is well."""
    AMBER = "amber"
    """It works, and may not for long; or it could not be checked."""
    RED = "red"
    """It does not work."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    check: str
    about: str
    """What was looked at: an address, a broker, a directory, a partition."""
    severity: Severity
    text: str
    step: str | None = None
    """What to do next."""


class Check(Protocol):
    """Measured facts that can be judged."""

    def judge(self) -> Finding:
        """Return what the facts mean."""


def green(check: str, about: str, text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, about, Severity.GREEN, text)


def amber(check: str, about: str, text: str, step: str) -> Finding:
    """Return a finding that should be looked at."""
    return Finding(check, about, Severity.AMBER, text, step)


def red(check: str, about: str, text: str, step: str) -> Finding:
    """Return a finding that must be mended."""
    return Finding(check, about, Severity.RED, text, step)


@dataclass(frozen=True, slots=True)
class NotChecked:
    """The reason why something could not be checked."""

    check: str
    about: str
    reason: str
    step: str

    def judge(self) -> Finding:
        """Return what was not checked."""
        return amber(self.check, self.about, f"not checked: {self.reason}", self.step)
