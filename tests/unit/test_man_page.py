"""The manual page, read by the program that shows it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from tools import man_page

from barnabas.cli.main import COMMANDS, Command


def test_groff_shows_all_of_it_without_a_complaint() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-ww", "-Tutf8", "-Kutf8", "-P-c", "-rLL=100n"],
        input=man_page.page(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = re.sub(r".\x08", "", done.stdout)  # bold and underlined letters
    for command in COMMANDS:
        assert f"\nBARNABAS {command.name.upper()}\n" in text
    assert re.search(r"\n +barnabas perf produce TOPIC \[OPTION\]\.\.\.", text)
    assert re.search(r"\n +--bootstrap HOST:PORT\[,\.\.\.\]\n +brokers to connect to first", text)
    assert "\n         barnabas perf consume orders --records 100000 --json\n" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (".x", "\\&.x"),
        ("'x'", "\\&'x'"),
        (r"a \t b", r"a \et b"),
        ("--all", r"\-\-all"),
        ('"q"', r"\(dqq\(dq"),
    ],
)
def test_nothing_is_taken_for_a_request(text: str, shown: str) -> None:
    assert man_page.line(text) == shown


def test_no_line_is_a_request_that_the_page_does_not_make(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(re.findall(r"^[.']\S*", man_page.page(), re.M)) <= {
        *('.\\"', ".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I", ".BR", ".RI", ".RB"),
        *(".nf", ".fi", ".ft"),
    }
    hostile = Command("x", "barnabas.cli.tools", ".so /etc/passwd")
    monkeypatch.setattr(man_page, "COMMANDS", (hostile,))
    assert "\n.so" not in man_page.page()
