"""The bar is for people: elsewhere nothing is written."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr

import pytest

from barnabas.admin.moves.progress import Progress
from barnabas.cli.reassign.progress_bar import progress_bar
from barnabas.model.ids import TopicPartition


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def moving(number: int, copied: int, total: int) -> Progress:
    return Progress(TopicPartition("t", number), (1, 2), (2,), total > 0, copied, total, (2,))


def drawn(*looks: Sequence[Progress], onto: io.StringIO) -> str:
    with redirect_stderr(onto), progress_bar() as show:
        for progress in looks:
            show(progress)
    return onto.getvalue()


def test_what_is_done_still_counts() -> None:
    looks = [[moving(0, 0, 1024), moving(1, 512, 1024)], [moving(0, 0, 0), moving(1, 768, 1024)]]
    last = drawn(*looks, onto=Terminal()).rpartition("partitions being reassigned: ")[2]
    assert last.startswith("1 "), "one of them is done"
    assert "1.8/2.0 KiB" in last, "2048 bytes in all, of which 256 are left"


def test_empty_partitions_are_a_full_bar() -> None:
    last = drawn([moving(0, 0, 0)], onto=Terminal()).rpartition("partitions being reassigned: ")[2]
    assert last.startswith("0 ")
    assert "1/1 bytes" in last


def test_a_file_gets_nothing() -> None:
    assert drawn([moving(0, 1, 2)], onto=io.StringIO()) == ""
