"""Tables are plain through a pipe and drawn on a terminal; JSON fits its reader."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from barnabas.cli.output import counted, print_json, print_table, size_text


def test_a_piped_table_has_aligned_columns_and_no_decoration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(["name", "count", "note"], [["a", 5, None], ["long", 12, "x"]], title="things")
    assert capsys.readouterr().out == (
        "things\n"
        "name  count  note\n"
        "a         5  -\n"
        "long     12  x\n"
    )  # fmt: skip


def test_a_table_without_rows_is_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a", "b"], [])
    assert capsys.readouterr().out == "a  b\n"


def test_a_terminal_gets_a_drawn_table_and_indented_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = on_terminal(monkeypatch, lambda: print_table(["name"], [["[bold]"]], title="T"))
    assert "─" in shown
    assert "[bold]" in shown  # not taken for markup
    assert on_terminal(monkeypatch, lambda: print_json({"a": 1})) == '{\n  "a": 1\n}\n'


END = "<the end>"


def on_terminal(monkeypatch: pytest.MonkeyPatch, show: object) -> str:
    """Run something with a pseudo-terminal as stdout and return what it showed."""
    outer, inner = os.openpty()
    with monkeypatch.context() as patch, open(inner, "w") as terminal:
        patch.setattr(sys, "stdout", terminal)
        show()  # type: ignore[operator]
        terminal.write(END)
    shown = b""
    while not shown.endswith(END.encode()):  # it may come in pieces
        shown += os.read(outer, 1 << 16)
    os.close(outer)
    return shown.decode().removesuffix(END).replace("\r\n", "\n")


def test_piped_json_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"é": 1}])
    assert capsys.readouterr().out == '[{"é": 1}]\n'
    print_json(json.loads("null"))
    assert capsys.readouterr().out == "null\n"


@pytest.mark.parametrize(
    ("size", "text"),
    [(None, None), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes(size: int | None, text: str | None) -> None:
    assert size_text(size) == text


def test_rich_is_not_needed_for_a_pipe(tmp_path: Path) -> None:
    import subprocess

    code = "import sys; from barnabas.cli.output import print_table as p; p(['a'], [[1]])"
    code += "; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "a\n1\nFalse\n"


def test_nouns_agree_with_their_numbers() -> None:
    assert [counted(number, "file") for number in (0, 1, 2, 1_000)] == [
        "0 files",
        "1 file",
        "2 files",
        "1,000 files",
    ]
