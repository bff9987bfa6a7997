"""The report: lines with words, colours only for terminals, a document, exit codes."""

from __future__ import annotations

import json
import os
import pty

import pytest

from barnabas.cli.doctor.finding import Finding, amber, green, red
from barnabas.cli.doctor.report import Report, has_colour, line

WELL = green("connect", "broker-1:9092", "0.4 ms")
RISK = amber("clock", "", "late", "use NTP")
FAULT = red("sasl", "broker-1:9092", "rejected:\n wrong password", "check it")


def report(*findings: Finding, json: bool = False) -> Report:
    made = Report(json=json, colour=False)
    for finding in findings:
        made.add(finding)
    return made


def test_a_finding_is_one_line_with_the_next_step() -> None:
    assert line(WELL, colour=False) == "green  connect       broker-1:9092: 0.4 ms"
    assert line(RISK, colour=False) == "amber  clock         late; next: use NTP"
    assert line(FAULT, colour=False) == (
        "red    sasl          broker-1:9092: rejected: wrong password; next: check it"
    )


def test_colour_is_added_to_the_word() -> None:
    assert line(FAULT, colour=True).startswith("\x1b[31mred  \x1b[0m  sasl")


@pytest.mark.parametrize(
    ("findings", "lenient", "strict"),
    [((WELL,), 0, 0), ((WELL, RISK), 0, 1), ((RISK, FAULT), 1, 1), ((), 0, 0)],
)
def test_red_fails_and_amber_if_that_is_wanted(
    findings: tuple[Finding, ...], lenient: int, strict: int
) -> None:
    made = report(*findings)
    assert made.exit_code(strict=False) == lenient
    assert made.exit_code(strict=True) == strict


def test_the_last_line_counts(capsys: pytest.CaptureFixture[str]) -> None:
    report(WELL, RISK, FAULT).close(0)
    assert capsys.readouterr().out.splitlines()[-1] == "3 checks: 1 green, 1 amber, 1 red"


def test_machines_get_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    report(WELL, FAULT, json=True).close(1234)
    document = json.loads(capsys.readouterr().out)
    assert (document["at"], document["green"], document["amber"], document["red"]) == (
        1234,
        1,
        0,
        1,
    )
    assert document["findings"][1] == {
        "check": "sasl",
        "about": "broker-1:9092",
        "severity": "red",
        "text": "rejected:\n wrong password",
        "next": "check it",
    }


def test_only_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours):
        monkeypatch.setattr("sys.stdout", terminal)
        assert has_colour()
        monkeypatch.setenv("NO_COLOR", "1")
        assert not has_colour()
        monkeypatch.delenv("NO_COLOR")
        monkeypatch.setenv("TERM", "dumb")
        assert not has_colour()
    with open(os.devnull, "w") as file:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stdout", file)
        assert not has_colour()
