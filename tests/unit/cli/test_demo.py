"""What `barnabas demo` shows."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from barnabas.cli.demo import _drawn, _head, _status, _tell
from barnabas.pipeline.demo.demo import free_port
from barnabas.pipeline.demo.windows import Window
from barnabas.pipeline.templates import Project

FLOW = {
    "flow": "page_counts_to_topic",
    "rows": 1234,
    "rows_per_second": 49.6,
    "lag": 7,
    "behind_seconds": 1.2,
    "batch_ms": 800,
}
WINDOW = Window("2026-01-02T03:04:05.000Z", {"/": 12, "/cart": 3})


def demo(tmp_path: Path, **changed: Any) -> Any:
    return SimpleNamespace(
        **{
            "bootstrap": "127.0.0.1:9092",
            "console": None,
            "project": Project(tmp_path / "demo", "127.0.0.1:9092"),
            "sent": 5000,
            "lacking": None,
            "flows": [FLOW],
            "windows": lambda: [WINDOW],
            **changed,
        }
    )


def drawn(shown: Any) -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(_drawn(shown))
        return console.export_text()


def test_the_terminal_shows_clicks_flows_and_windows(tmp_path: Path) -> None:
    text = drawn(demo(tmp_path))
    assert "5,000 clicks sent" in text
    [flow] = [line for line in text.splitlines() if "page_counts_to_topic" in line]
    assert flow.split() == ["page_counts_to_topic", "1,234", "50", "7", "1", "s", "800", "ms"]
    [window] = [line for line in text.splitlines() if "03:04:05" in line]
    assert window.split() == ["03:04:05", "12", "0", "0", "3", "0"]
    assert "Spark is starting" in drawn(demo(tmp_path, flows=[], windows=list))


def test_a_window_is_told_once_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("barnabas.cli.demo.DRAW_S", 0)
    part = Window(WINDOW.start, {"/": 12})
    looks = [[part], [WINDOW], [WINDOW], [WINDOW]]

    def windows() -> list[Window]:
        shown.failure = "over" if len(looks) == 1 else None
        return looks.pop(0)

    shown = demo(tmp_path, windows=windows, failure=None, look=lambda: None)
    assert _tell(shown, None) == "over"
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("window")]
    assert lines == ["window 03:04:05: 15 clicks: / 12, /cart 3"]


def test_lines_say_the_same(tmp_path: Path) -> None:
    assert _status(demo(tmp_path)) == ("5,000 clicks sent; page_counts_to_topic 1,234 read, lag 7")
    new = {**FLOW, "rows": 0, "lag": None}
    assert (
        _status(demo(tmp_path, flows=[new]))
        == "5,000 clicks sent; page_counts_to_topic is starting"
    )
    assert _status(demo(tmp_path, flows=[])) == "5,000 clicks sent; Spark is starting"
    assert _status(demo(tmp_path, lacking="no java")) == "5,000 clicks sent"


def test_the_head_says_where_to_look(tmp_path: Path) -> None:
    text = "\n".join(_head(demo(tmp_path), tmp_path))
    assert "barnabas groups describe demo.page_counts_to_topic --bootstrap 127.0.0.1:9092" in text
    assert f"pipeline: {tmp_path}/demo/transformations/clicks.py" in text
    text = "\n".join(_head(demo(tmp_path, lacking="no java"), tmp_path))
    assert "no pipeline: no java" in text
    assert "page-counts" not in text


def test_the_consoles_address_comes_first(tmp_path: Path) -> None:
    with_console = demo(tmp_path, console="http://127.0.0.1:8080/")
    assert next(_head(with_console, tmp_path)) == "console on http://127.0.0.1:8080/"
    assert next(_head(demo(tmp_path), tmp_path)).startswith("broker on 127.0.0.1:9092")


def test_a_port_that_is_taken_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert free_port(port) == 0
    assert free_port(port) == port
    assert free_port(0) == 0
