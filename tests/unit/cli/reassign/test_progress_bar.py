"""The bar is for people: elsewhere nothing is written."""

from __future__ import annotations

import io

import pytest

from barnabas.admin.moves.progress import Progress
from barnabas.cli.reassign.progress_bar import progress_bar
from barnabas.model.ids import TopicPartition


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def moving(number: int, copied: int, total: int) -> Progress:
    return Progress(TopicPartition("t", number), (1, 2), (2,), total > 0, copied, total, (2,))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    found = Terminal()
    monkeypatch.setattr("sys.stderr", found)
    return found


def test_what_is_done_still_counts(terminal: Terminal) -> None:
    with progress_bar() as show:
        show([moving(0, 0, 1024), moving(1, 512, 1024)])
        show([moving(0, 0, 0), moving(1, 768, 1024)])
    last = terminal.getvalue().rpartition("partitions being reassigned: ")[2]
    assert last.startswith("1 "), "one of them is done"
    assert "1.8/2.0 KiB" in last, "2048 bytes in all, of which 256 are left"


def test_empty_partitions_are_a_full_bar(terminal: Terminal) -> None:
    with progress_bar() as show:
        show([moving(0, 0, 0)])
    last = terminal.getvalue().rpartition("partitions being reassigned: ")[2]
    assert last.startswith("0 ")
    assert "1/1 bytes" in last


def test_a_file_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    with progress_bar() as show:
        show([moving(0, 1, 2)])
    assert file.getvalue() == ""
