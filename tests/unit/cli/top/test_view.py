"""The terminal is drawn on, keys come as they are pressed, and all is as before at the end."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import select
import signal
import termios
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.top.screen import Line
from barnabas.cli.top.view import MAIN_SCREEN, View

PATIENCE_S = 20.0
OTHER_SCREEN = b"\x1b[?1049h"


class Terminal:
    """A terminal whose other end is ours."""

    def __init__(self) -> None:
        self.ours, theirs = pty.openpty()
        self.input = os.fdopen(os.dup(theirs))
        self.output = os.fdopen(theirs, "w")
        self.seen = b""

    @property
    def mode(self) -> list[Any]:
        return termios.tcgetattr(self.input)

    def press(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def wait_for(self, text: bytes) -> None:
        """Read what is drawn until a text has come."""
        end_s = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], end_s - time.monotonic())
            assert ready, f"{text!r} is not in {self.seen!r}"
            self.seen += os.read(self.ours, 65_536)

    def close(self) -> None:
        self.input.close()
        self.output.close()
        os.close(self.ours)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    for name, value in (("TERM", "xterm"), ("COLUMNS", "40"), ("LINES", "6")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    terminal = Terminal()
    yield terminal
    terminal.close()


class Session:
    """What a view has told, and a turn to wait for it."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.resized = 0
        self._told = asyncio.Event()

    def view(self) -> View:
        return View(self._press, self._resize)

    def _press(self, key: str) -> None:
        self.keys.append(key)
        self._told.set()

    def _resize(self) -> None:
        self.resized += 1
        self._told.set()

    async def until(self, is_met: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_met():
                self._told.clear()
                await self._told.wait()


def test_drawing_keys_and_the_way_back(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    # Here and not in the fixture: pytest sets its own streams after that.
    monkeypatch.setattr("sys.stdin", terminal.input)
    monkeypatch.setattr("sys.stdout", terminal.output)
    before = terminal.mode

    async def session() -> None:
        told = Session()
        with told.view() as view:
            assert view.size == (40, 6)
            assert terminal.mode != before, "keys come without Enter"
            view.show([Line("barnabas top", "title"), Line("x" * 60), Line("lost", "bad")])
            terminal.wait_for(b"lost")
            assert terminal.seen.count(b"x") == 40, "what is too wide is cut, and not wrapped"
            terminal.press(b"hq")
            await told.until(lambda: "q" in told.keys)
            assert told.keys == ["h", "q"]
            os.kill(os.getpid(), signal.SIGWINCH)
            await told.until(lambda: told.resized > 0)
        assert terminal.mode == before

    asyncio.run(session())
    terminal.wait_for(MAIN_SCREEN[:8])
    assert terminal.seen.index(OTHER_SCREEN) < terminal.seen.index(b"barnabas top")


def test_a_process_that_ends_at_once_leaves_the_terminal_as_it_was(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", terminal.input)
    monkeypatch.setattr("sys.stdout", terminal.output)
    resorts: list[Callable[[], None] | None] = []
    monkeypatch.setattr(INTERRUPTION, "last_resort", resorts.append)
    before = terminal.mode

    async def session() -> None:
        with Session().view():
            terminal.wait_for(OTHER_SCREEN)
            [end] = resorts
            assert end is not None
            end()
            terminal.wait_for(MAIN_SCREEN)
            assert terminal.mode == before

    asyncio.run(session())
    assert resorts[1:] == [None], "at the end there is nothing left to do"


def test_without_a_keyboard_it_is_only_drawn(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.stdout", terminal.output)
    before = terminal.mode

    async def session() -> None:
        with Session().view() as view:
            view.show([Line("here", "note")])
            terminal.wait_for(b"here")
            assert terminal.mode == before

    asyncio.run(session())
